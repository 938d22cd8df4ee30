/** Mail: the whole answer in one message with its files. Separate texts are divided by an empty line, which is not part of the source. */

import type { WireAttachment } from "@nexus-stream/adapter/port";
import { attachmentOf, isWanted } from "../attachments/attachment.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import { isAttachmentNonce, lineOf } from "../live-delivery.ts";
import { isEnd, readSource, type SourceEvent } from "../source.ts";
import { type BlockMachine, type DeliveryBlock, toolNote } from "./block-step.ts";

/** A line to an adapter holds 4 MiB. */
const FILES_CHARS_MAX = 3_400_000;

export function createMailMachine(context: DeliveryContext): BlockMachine {
	const { live, options } = context;
	// There is only one message: once it is on record, the delivery is done.
	const over = live.row.messages.length > 0;
	const from = live.row.cursor;
	const mail = createMail(context);
	let done: DeliveryBlock | undefined;
	return {
		take(each) {
			if (over) return;
			const { event } = each;
			mail.take(each);
			if (each.damagedFrom !== undefined) mail.drop(each.damagedFrom - from);
			if (!isEnd(event)) return;
			if (event.type === "stream_error" && options.errorText) mail.addText(options.errorText);
			const { text, to, files } = mail.content();
			if (text === "") return;
			const { facts } = each;
			done = { from, to: from + to, text, attachments: files.length > 0 ? files : undefined, facts };
		},
		tick() {},
		wakeAt: undefined,
		ready() {
			const block = done;
			done = undefined;
			return block;
		},
	};
}

function createMail(context: DeliveryContext) {
	/** `at`: the position in the source; undefined for text that is not part of it. */
	const texts: { text: string; at: number | undefined }[] = [{ text: "", at: 0 }];
	const files: WireAttachment[] = [];
	let to = 0;
	let chars = 0;
	/** Adds a text that is not part of the source. */
	const addText = (text: string) => void texts.push({ text, at: undefined }, { text: "", at: to });
	const attach = ({ event, offset }: SourceEvent) => {
		if (event.type !== "part" || !isWanted(context, event)) return;
		const attachment = attachmentOf(context, event, offset);
		if (attachment?.text) addText(attachment.text);
		for (const file of attachment?.attachments ?? []) {
			chars += file.data.length;
			if (chars <= FILES_CHARS_MAX) files.push(file);
			else addText(`[${file.name}: too large to be sent here]`);
		}
	};
	return {
		take(each: SourceEvent) {
			const { event } = each;
			if (event.type === "token") {
				texts.at(-1)!.text += event.text;
				to += event.text.length;
			} else if (event.type === "part") attach(each);
			else if (event.type === "stream_end" && event.final === false) texts.push({ text: "", at: to });
			else if (event.type === "tool_status" && event.status === "started" && context.options.tools) {
				addText(toolNote(event.summary ?? event.toolName));
			}
		},
		addText,
		/** The text from this position on is damaged. */
		drop(from: number) {
			for (const each of texts) if (each.at !== undefined) each.text = each.text.slice(0, Math.max(0, from - each.at));
			to = Math.min(to, from);
		},
		content() {
			const visible = texts.flatMap(({ text }) => (/\S/.test(text) ? [text] : [])).join("\n\n");
			return { text: visible || files.map(({ name }) => `[${name}]`).join("\n"), to, files };
		},
	};
}

export async function recallFiles(context: DeliveryContext, nonce: string): Promise<void> {
	const { live, info, bus, signal, log, files } = context;
	const line = lineOf(nonce);
	const mail = live.row.mode === "whole" && info.delivery === "whole" ? createMail(context) : undefined;
	if (!mail && !isAttachmentNonce(line)) return;
	for await (const events of readSource(bus, live.row.runId, { position: 0, signal, log })) {
		const parts = events.filter(({ event }) => event.type === "part");
		for (const part of parts) mail?.take(part);
		const found = mail ? undefined : filesAt(context, parts, line);
		if (!found) continue;
		files.set(line, found);
		return;
	}
	if (mail && mail.content().files.length > 0) files.set(line, mail.content().files);
}

function filesAt(context: DeliveryContext, events: readonly SourceEvent[], line: string) {
	for (const { event, offset } of events) {
		if (event.type !== "part") continue;
		const attachment = attachmentOf(context, event, offset);
		if (attachment?.nonce === line) return attachment.attachments ?? [];
		if (attachment?.instead?.nonce === line) return [];
	}
	return undefined;
}
