/** Reads the files of an earlier process's send from the run's log again: the ledger stores the text of a send, not its files. */

import { mailFiles } from "../blocks/mail.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import { readSource, type SourceEvent } from "../source.ts";
import { attachmentOf } from "./attachment.ts";
import { isAttachmentNonce, lineOf } from "./attachment-nonce.ts";

export async function recallFiles(context: DeliveryContext, nonce: string): Promise<void> {
	const { live, info, bus, signal, log, files } = context;
	const line = lineOf(nonce);
	const mail = live.row.mode === "whole" && info.delivery === "whole";
	if (!mail && !isAttachmentNonce(line)) return;
	const read: SourceEvent[] = [];
	for await (const events of readSource(bus, live.row.runId, { position: 0, signal, log })) {
		const parts = events.filter(({ event }) => event.type === "part");
		if (mail) read.push(...parts);
		const found = mail ? undefined : filesAt(context, parts, line);
		if (!found) continue;
		files.set(line, found);
		return;
	}
	if (mail && read.length > 0) files.set(line, mailFiles(context, read));
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
