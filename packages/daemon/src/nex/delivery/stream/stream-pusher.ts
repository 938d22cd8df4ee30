/** Writes source events to a `stream` process as lines, and sends attachments between them where the adapter does not show them itself. */

import { FenceWatch } from "@nexus-stream/adapter/host";
import type { DeliveryFields, StreamLine } from "@nexus-stream/adapter/port";
import type { DeliveryMessage } from "../../../ledger/deliveries/port.ts";
import { speaks } from "../../accounts/account.ts";
import type { LineProcess } from "../../accounts/line-process.ts";
import {
	type DeliveryAttachment,
	showsPart,
	showsParts,
	showsReasoning,
	wantedAttachment,
} from "../attachments/attachment.ts";
import type { DeliveryContext } from "../delivery-context.ts";
import { isAttachmentNonce } from "../live-delivery.ts";
import type { SourceEvent } from "../source.ts";
import { isResumable } from "./half-shown.ts";
import type { StreamAttachments } from "./stream-attachments.ts";

export interface Push {
	context: DeliveryContext;
	process: LineProcess;
	attachments: StreamAttachments;
	/** Aborts when the attempt is over. */
	signal: AbortSignal;
}

export class StreamPusher {
	readonly #push: Push;
	readonly #start: number;
	readonly #fields: DeliveryFields | undefined;
	readonly #linesOf: ReturnType<typeof createLines>;
	readonly #isResumable: boolean;
	/** The adapter shows parts and reasoning itself, so no attachment can be inside a code fence. */
	readonly #showsAll: boolean;
	readonly #fence = new FenceWatch();
	/** Where the visible part of the written text ends. */
	#visibleUpTo = 0;
	/** `#visibleUpTo` at the last end of a message, and the number of such ends. */
	#visibleAtEnd = 0;
	#ends = 0;
	/** The adapter may have begun a message, with text or before it (a tool, the placeholder), that has not been ended. */
	#isBegun: boolean;
	/** Where the next token line begins. */
	#written: number;

	constructor(push: Push, start: number) {
		const { context } = push;
		const { live, info, limits, options } = context;
		const { id, runId } = live.row;
		const shows = { parts: showsParts(context), reasoning: showsReasoning(context) };
		this.#push = push;
		this.#start = start;
		this.#written = start;
		this.#isResumable = isResumable(context);
		this.#showsAll = shows.parts && shows.reasoning;
		this.#isBegun = live.unfinished !== undefined || (options.placeholder ?? "") !== "";
		this.#fields = speaks(info, "runId") ? { delivery: id, runId } : undefined;
		this.#linesOf = createLines({
			fields: this.#fields,
			tokenCharsMax: limits.tokenCharsMax,
			// Other adapters get each passage as a message: with the lines as well they would show it twice.
			reasoning: context.reasoning && shows.reasoning,
			parts: context.parts && info.supports.includes("parts"),
		});
	}

	/** The text written so far is not only white space. */
	get hasVisibleText(): boolean {
		return this.#visibleUpTo > 0;
	}

	async push(events: readonly SourceEvent[]): Promise<void> {
		const { context, signal } = this.#push;
		let from = 0;
		for (const [at, each] of events.entries()) {
			if (each.event.type !== "part") continue;
			const isShown = showsPart(context, each.event);
			if (isShown && each.position >= this.#start) continue;
			this.#write(events.slice(from, at));
			from = at + 1;
			const wanted = isShown ? undefined : wantedAttachment(context, each);
			if (wanted && !wanted.row) await this.#attach(wanted.attachment, each);
			else if (wanted?.row && this.#isBelowUnfinished(wanted.row)) this.#endMessage(each);
			if (signal.aborted) return;
		}
		this.#write(from === 0 ? events : events.slice(from));
	}

	#write(events: readonly SourceEvent[]): void {
		const { process } = this.#push;
		for (const line of this.#linesOf(events)) process.write(line, this.#onHanded(line));
		for (const { event, position } of events) {
			if (event.type === "stream_end") {
				this.#fence.reset();
				this.#isBegun = false;
				if (this.#visibleUpTo > this.#visibleAtEnd) this.#ends++;
				this.#visibleAtEnd = this.#visibleUpTo;
			}
			if (event.type === "tool_status") this.#isBegun = true;
			if (event.type !== "token") continue;
			if (!this.#showsAll) this.#fence.push(event.text);
			if (!/\S/.test(event.text)) continue;
			this.#visibleUpTo = position + event.text.trimEnd().length;
			this.#isBegun = true;
		}
	}

	/** Tracks how much text a process may have shown that does not report it. */
	#onHanded(line: string): (() => void) | undefined {
		if (this.#isResumable || !line.startsWith('{"type":"token"')) return undefined;
		const { live } = this.#push.context;
		this.#written += (JSON.parse(line) as { text: string }).text.length;
		const reach = this.#written;
		return () => {
			live.given = Math.max(live.given ?? 0, reach);
		};
	}

	async #attach(attachment: DeliveryAttachment, event: SourceEvent): Promise<void> {
		const { attachments, signal } = this.#push;
		// A message that ended here would break the code block.
		if (this.#fence.inside) return attachments.hold();
		if (!this.#isResumable) return this.#attachWithoutPositions(attachment, event);
		this.#endMessage(event);
		await attachments.send(attachment, this.#visibleUpTo, signal);
	}

	/**
	 * Without positions a message counts as finished when the adapter reports one more finished message. After one that was not reported in
	 * time, all later attachments are deferred.
	 */
	async #attachWithoutPositions(attachment: DeliveryAttachment, event: SourceEvent): Promise<void> {
		const { attachments, signal, context } = this.#push;
		const { live } = context;
		if (attachments.isHolding) return attachments.hold();
		const finished = () =>
			live.row.messages.filter(({ state, nonce }) => state === "sent" && !isAttachmentNonce(nonce)).length;
		const before = finished();
		const due = this.#ends + 1;
		const isBegun = this.#visibleUpTo > this.#visibleAtEnd || live.unfinished !== undefined;
		this.#isBegun = isBegun;
		this.#endMessage(event);
		this.#visibleAtEnd = this.#visibleUpTo;
		if (isBegun) this.#ends = due;
		const isSent = () => finished() >= due && finished() > before && !live.unfinished;
		await attachments.sendAfter(() => !isBegun || isSent(), attachment, signal);
	}

	/** The text that follows is in a new message. A message that shows text after this position was begun later, and is not ended. */
	#endMessage({ position, offset }: SourceEvent): void {
		const { process, context } = this.#push;
		const { live } = context;
		if (this.#isBegun && (live.unfinished?.shown ?? 0) <= position)
			process.write({ type: "stream_end", runId: live.row.runId, final: false, ...this.#fields, offset });
		this.#isBegun = false;
	}

	/** An earlier process sent the attachment below a message that was still unfinished. */
	#isBelowUnfinished({ ordinal }: DeliveryMessage): boolean {
		return (this.#push.context.live.unfinished?.ordinal ?? ordinal) < ordinal;
	}
}

export interface LineRules {
	/** Included in every line; undefined for adapters that know only the basic fields. */
	fields: DeliveryFields | undefined;
	reasoning: boolean;
	parts: boolean;
	tokenCharsMax: number;
}

/** The lines of a batch as JSON. Without the stream_start, which has more fields than its event. */
export function createLines(rules: LineRules): (events: readonly SourceEvent[]) => string[] {
	const close = closer(rules.fields);
	const tokenLine = (text: string, offset: number) => `{"type":"token","text":${JSON.stringify(text)}${close(offset)}`;
	return (events) => {
		const lines: string[] = [];
		let text = "";
		let offset = 0;
		for (const each of events) {
			if (each.event.type === "token") {
				if (text !== "" && text.length + each.event.text.length > rules.tokenCharsMax) {
					lines.push(tokenLine(text, offset));
					text = "";
				}
				text += each.event.text;
				offset = each.offset;
				continue;
			}
			const line = lineOf(each, rules);
			if (!line) continue;
			if (text !== "") lines.push(tokenLine(text, offset));
			text = "";
			lines.push(JSON.stringify(line).slice(0, -1) + close(each.offset));
		}
		if (text !== "") lines.push(tokenLine(text, offset));
		return lines;
	};
}

/** The end of every line's JSON: the delivery's fields and the log offset. */
function closer(fields: DeliveryFields | undefined): (offset: number) => string {
	if (!fields) return () => "}";
	const names = JSON.stringify({ ...fields, offset: 0 }).slice(1, -2);
	return (offset) => `,${names}${offset}}`;
}

function lineOf({ event, reason, facts, damagedFrom }: SourceEvent, rules: LineRules): StreamLine | undefined {
	switch (event.type) {
		case "stream_start":
		case "token":
			return undefined;
		case "reasoning":
			return rules.reasoning ? { type: "reasoning", text: event.text } : undefined;
		case "tool_status": {
			// The basic fields have no `progress`; arguments and results are not shown in a chat.
			if (!rules.fields && event.status === "progress") return undefined;
			const { type, toolName, toolCallId, status, summary } = event;
			return { type, toolName, toolCallId, status, summary };
		}
		case "stream_end": {
			const { type, runId, final } = event;
			const ended = { type, runId, final };
			return rules.fields ? { ...ended, ...facts, reason } : ended;
		}
		case "stream_error":
			return rules.fields && damagedFrom !== undefined ? { ...event, damagedFrom } : event;
		case "part":
			return rules.parts && event.modality !== "reasoning" ? event : undefined;
		default:
			return event satisfies never;
	}
}
