/** A small world around one draft: a daemon that remembers only what is durable, a platform that misbehaves, and processes that die at any moment. */

import { stepDraft } from "../../../packages/adapter/src/draft/draft.ts";
import {
	beginDraft,
	type Draft,
	type DraftCall,
	type DraftInput,
	type DraftRules,
} from "../../../packages/adapter/src/draft/draft-state.ts";
import { nonceOf } from "../../../packages/adapter/src/nonce.ts";
import type { DraftStyle } from "../../../packages/adapter/src/platform/session.ts";
import type { PlatformFault, Resume, StreamStatus } from "../../../packages/adapter/src/port.ts";
import type { ToolStatusEvent } from "../../../packages/protocol/src/protocol.ts";

export type Source =
	| ToolStatusEvent
	| { type: "token"; text: string }
	| { type: "end"; final: boolean }
	| { type: "error" };

export interface WorldOptions {
	style: DraftStyle;
	canEdit: boolean;
	textMax: number;
	lines: readonly Source[];
	errorText: string;
	random(): number;
	/** Probability of a fault per call. */
	faults: number;
	/** Deaths of the adapter or the daemon. */
	crashes: number;
	tools?: boolean;
	/** Messages may begin before there is text. */
	early?: boolean;
	placeholder?: string;
}

export interface Shown {
	id: string;
	nonce: string;
	text: string;
	writes: number;
}

interface Row {
	ordinal: number;
	nonce: string;
	from: number;
	to?: number;
	messageId?: string;
	state: "intended" | "open" | "sent";
}

/** The state of a delivery that the daemon keeps on disk. */
export class Daemon {
	cursor = 0;
	rows: Row[] = [];
	carry: string | undefined;
	shown: number | undefined;
	over: "complete" | "failed" | undefined;
	error: Extract<StreamStatus, { type: "delivery_error" }> | undefined;
	readonly ranges: [number, number][] = [];

	/** Answers with the nonce to acknowledge. */
	hear(status: StreamStatus): string | undefined {
		switch (status.type) {
			case "message_creating":
				this.rows.push({ ...status, state: "intended" });
				return status.nonce;
			case "message_created": {
				const row = this.rows.find(({ nonce }) => nonce === status.nonce);
				if (row) Object.assign(row, { messageId: status.messageId, state: "open" });
				return undefined;
			}
			case "message_removed":
				this.rows = this.rows.filter(
					({ nonce, messageId }) => nonce !== status.nonce && messageId !== (status.messageId ?? ""),
				);
				return undefined;
			case "message_updated":
				this.shown = status.to;
				return undefined;
			case "message_sent": {
				const row = this.rows.find((each) => each.nonce === status.nonce || each.messageId === status.messageId);
				if (row) Object.assign(row, { messageId: status.messageId, state: "sent", to: status.to });
				this.ranges.push([status.from ?? -1, status.to ?? -1]);
				this.cursor = status.to ?? -1;
				this.carry = status.carry;
				this.shown = undefined;
				if (status.final) this.over = "complete";
				return undefined;
			}
			case "delivery_complete":
				this.over = "complete";
				return undefined;
			case "delivery_error":
				this.over = "failed";
				this.error = status;
				return undefined;
			default:
				return undefined;
		}
	}

	resume(): Resume {
		const last = this.rows.find(({ state }) => state !== "sent");
		return {
			position: this.cursor,
			ordinal: this.rows.length,
			carry: this.carry,
			messageId: last?.state === "open" ? (last.messageId ?? "") : undefined,
			shown: last?.state === "open" ? this.shown : undefined,
			uncertain: last?.state === "intended" ? { nonce: last.nonce, to: last.to } : undefined,
		};
	}
}

export class World {
	readonly daemon = new Daemon();
	readonly messages: Shown[] = [];
	readonly counts = { crashes: 0, faults: 0, calls: 0, previews: 0, made: 0, removed: 0 };
	private readonly options: WorldOptions;
	private readonly rules: DraftRules;
	private draft: Draft;
	private inputs: DraftInput[];
	private acks: string[] = [];
	private said: StreamStatus[] = [];
	private wanted = false;
	private now = 0;

	constructor(options: WorldOptions) {
		this.options = options;
		this.rules = {
			fits: (markdown) => markdown.length <= options.textMax,
			guess: options.textMax,
			style: options.style,
			canEdit: options.canEdit,
			canRemove: options.early === true,
			lookup: "find",
			nonceWindowMs: 60_000,
			intent: true,
			tools: options.tools === true,
			early: options.early === true,
			placeholder: options.placeholder ?? "",
			errorText: options.errorText,
			nonce: (ordinal, from) => nonceOf(`delivery@${from}`, ordinal),
		};
		this.draft = beginDraft(this.rules);
		this.inputs = [{ type: "begin" }, ...options.lines];
	}

	/** Lives until the delivery is over; fails when it never is. */
	run(): void {
		const { random } = this.options;
		let crashes = this.options.crashes;
		for (let steps = 0; this.daemon.over === undefined; steps++) {
			if (steps > 200_000) throw new Error("the delivery never ends");
			this.now += 10;
			if (crashes > 0 && random() < 0.05) {
				crashes--;
				this.crash(random() < 0.5);
				continue;
			}
			const ways: (() => void)[] = [];
			if (this.inputs.length > 0) ways.push(() => this.feed());
			if (this.wanted) ways.push(() => this.turn());
			if (this.acks.length > 0) ways.push(() => this.step({ type: "ack", nonce: this.acks.shift() ?? "" }));
			if (this.said.length > 0) ways.push(() => this.listen());
			if (ways.length === 0) throw new Error("nothing can happen, and the delivery is not over");
			ways[Math.floor(random() * ways.length)]?.();
		}
	}

	private feed(): void {
		const input = this.inputs.shift();
		if (input) this.step(input);
	}

	private listen(): void {
		const status = this.said.shift();
		const nonce = status && this.daemon.hear(status);
		if (nonce !== undefined) this.acks.push(nonce);
	}

	/** The adapter dies after what it said is in the pipe; the daemon dies with what it has not read. */
	private crash(ofDaemon: boolean): void {
		this.counts.crashes++;
		if (!ofDaemon) for (const status of this.said) this.daemon.hear(status);
		this.said = [];
		this.acks = [];
		this.wanted = false;
		if (this.daemon.over !== undefined) return;
		this.draft = beginDraft(this.rules, this.daemon.resume());
		this.inputs = from(this.options.lines, this.daemon.cursor);
	}

	private step(input: DraftInput): DraftCall | undefined {
		const { draft, effects } = stepDraft(this.draft, input, this.now, this.rules);
		this.draft = draft;
		let call: DraftCall | undefined;
		for (const effect of effects) {
			if (effect.type === "say") this.said.push(effect.status);
			else if (effect.type === "want") this.wanted = true;
			else if (effect.type === "call") call = effect.call;
		}
		return call;
	}

	private turn(): void {
		this.wanted = false;
		const call = this.step({ type: "due" });
		if (!call) return;
		this.counts.calls++;
		const fault = this.options.random() < this.options.faults ? this.faultFor(call) : undefined;
		if (fault === undefined || fault === "after") {
			const outcome = this.perform(call);
			this.step(fault === "after" ? { type: "failed", fault: "unknown_outcome", error: "reset" } : outcome);
			return;
		}
		this.counts.faults++;
		// The gate tries again what passes; the draft hears of it when it is given up.
		if (fault === "retry") this.wanted = true;
		else this.step({ type: "failed", fault, error: "refused" });
	}

	private faultFor(call: DraftCall): PlatformFault | "retry" | "after" {
		const once = call.type === "create" || call.type === "start" || call.type === "append";
		const roll = this.options.random();
		if (once) return roll < 0.3 ? "after" : roll < 0.6 ? "unknown_outcome" : "retry";
		const passing = call.type === "preview" || (call.type === "edit" && !call.final);
		return passing && roll < 0.5 ? (roll < 0.25 ? "unavailable" : "invalid") : "retry";
	}

	private perform(call: DraftCall): DraftInput {
		const { textMax } = this.options;
		if ("markdown" in call && call.type !== "find" && call.markdown.trim() === "") throw new Error("an empty message");
		switch (call.type) {
			case "create":
			case "start": {
				if (call.markdown.length > textMax) throw new Error("a message longer than the limit");
				const id = `m${++this.counts.made}`;
				this.messages.push({ id, nonce: call.nonce, text: call.markdown, writes: 1 });
				return { type: "created", messageId: id };
			}
			case "edit":
			case "append": {
				const message = this.messages.find(({ id }) => id === call.id);
				if (!message && !this.options.early) throw new Error("an edit of nothing");
				if (!message) return { type: "failed", fault: "gone", error: "not there" };
				message.text = call.type === "edit" ? call.markdown : message.text + call.markdown;
				message.writes++;
				if (message.text.length > textMax) throw new Error("a message longer than the limit");
				return { type: "edited" };
			}
			case "remove": {
				const at = this.messages.findIndex(({ id }) => id === call.id);
				if (at < 0) return { type: "failed", fault: "gone", error: "not there" };
				this.messages.splice(at, 1);
				this.counts.removed++;
				return { type: "edited" };
			}
			case "stop":
				return { type: "edited" };
			case "preview":
				this.counts.previews++;
				if (call.markdown.length > textMax) throw new Error("a preview longer than the limit");
				return { type: "edited" };
			case "find": {
				const found = this.messages.find(({ nonce }) => nonce === call.nonce);
				return found ? { type: "found", messageId: found.id } : { type: "found" };
			}
			default:
				return call satisfies never;
		}
	}
}

/** The lines from a source position on, as the daemon sends them after a crash. */
export function from(lines: readonly Source[], position: number): DraftInput[] {
	const rest: DraftInput[] = [];
	let at = 0;
	for (const line of lines) {
		if (line.type === "tool_status") {
			rest.push(line);
			continue;
		}
		if (line.type !== "token") {
			if (at > position || (at === position && rest.length === 0) || line.type === "error" || line.final)
				rest.push(line);
			continue;
		}
		const end = at + line.text.length;
		if (end > position) rest.push({ type: "token", text: line.text.slice(Math.max(0, position - at)) });
		at = end;
	}
	return rest;
}
