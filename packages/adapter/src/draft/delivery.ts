/** One delivery under way: joins its draft with the account's gate and the platform's calls, and reports the outcome. */

import type { GateTicket } from "../gate/gate.ts";
import type { Rank } from "../gate/gate-step.ts";
import type { FitRules } from "../markdown/fit.ts";
import { nonceOf } from "../nonce.ts";
import type { PlatformError } from "../platform/platform-error.ts";
import type { DraftStyle, Session } from "../platform/session.ts";
import type { DeliveryFields, StreamLine, StreamStatus, Target } from "../port.ts";
import { type AdapterContext, createRenderer, createStatus, doubtWait, type ShowToolStatus } from "../serve/context.ts";
import { stepDraft } from "./draft.ts";
import { beginDraft, type Draft, type DraftCall, type DraftInput, type DraftRules, NO_TOOLS } from "./draft-state.ts";
import { type Addressed, factsOf, perform } from "./perform.ts";

export type StartLine = Extract<StreamLine, { type: "stream_start" }>;

/** A turn that is wanted. */
interface TurnRequest {
	rank: Rank;
	paced: boolean;
}

export class StreamedDelivery {
	readonly #context: AdapterContext;
	readonly #gone: () => void;
	readonly #rules: DraftRules;
	#address: Addressed;
	#draft: Draft;
	#offset: number | undefined;
	#ticket: GateTicket | undefined;
	#requested: TurnRequest | undefined;
	/** A call is under way; what its outcome makes necessary waits here. */
	#running = false;
	#wanted: TurnRequest | undefined;
	readonly #status: ShowToolStatus;
	#lastLineRead = false;
	#cancelAckLimit = () => {};
	/** Creations in a row with an unknown outcome: the next call waits, with back-off. */
	#doubt: { since: number; count: number } | undefined;
	#rest: { cancel(): void; turn: TurnRequest | undefined } | undefined;

	constructor(context: AdapterContext, line: StartLine, key: string, gone: () => void) {
		const { render, ...sizes } = createRenderer(context.platform);
		this.#context = context;
		this.#gone = gone;
		this.#rules = rulesOf(context, line, key, sizes);
		this.#address = {
			target: line.target as Target,
			fields: { delivery: line.delivery, runId: line.runId },
			facts: { runId: line.runId },
			render,
			draftId: (ordinal) => Number.parseInt(nonceOf(key, ordinal).slice(0, 7), 16) + 1,
		};
		this.#offset = line.offset;
		this.#draft = beginDraft(this.#rules, line.resume);
		this.#status = createStatus(context, this.#address.target);
		if (this.#rules.placeholder !== "") this.#advance({ type: "begin" });
	}

	take(input: DraftInput, fields: DeliveryFields): void {
		this.#offset = fields.offset ?? this.#offset;
		if (input.type === "end")
			this.#address = { ...this.#address, facts: { ...this.#address.facts, ...factsOf(fields) } };
		if (input.type === "ack") this.#cancelAckLimit();
		this.#advance(input);
	}

	/** No more lines come. Finishes what needs none; another process resumes the rest. */
	lastLine(): void {
		this.#lastLineRead = true;
		if (this.#draft.closed === undefined || this.#draft.message.at === "announced") this.drop();
	}

	drop(): void {
		this.#cancelAckLimit();
		this.#rest?.cancel();
		this.#ticket?.cancel();
		this.#ticket = undefined;
		this.#draft = { ...this.#draft, over: true };
		this.#gone();
	}

	#advance(input: DraftInput): DraftCall | undefined {
		const step = stepDraft(this.#draft, input, this.#context.clock.now(), this.#rules);
		this.#draft = step.draft;
		let call: DraftCall | undefined;
		for (const effect of step.effects) {
			if (effect.type === "say") this.#say(effect.status);
			else if (effect.type === "want") this.#want(effect);
			else if (effect.type === "call") call = effect.call;
			else this.drop();
		}
		if (this.#rules.style === "append") this.#status(step.draft.over ? NO_TOOLS : step.draft.tools);
		return call;
	}

	#say(status: StreamStatus): void {
		const fields = { ...this.#address.fields, offset: this.#offset };
		this.#context.say({ ...status, ...fields });
		if (status.type === "message_creating") {
			if (this.#lastLineRead) this.drop();
			else this.#awaitAck(status.nonce);
		}
		// The daemon may not answer the announcement of a message that is not created after all.
		if (status.type === "message_removed") this.#cancelAckLimit();
	}

	#awaitAck(nonce: string): void {
		const limitMs = this.#context.limits.ackLimitMs;
		const error = `The daemon has not confirmed the intent to create message ${nonce} within ${limitMs} ms.`;
		this.#cancelAckLimit = this.#context.clock.after(limitMs, () => {
			this.#advance({ type: "failed", fault: "unavailable", error });
		});
	}

	/** One request at a time waits in the gate; its text is read when its turn has come. */
	#want(params: TurnRequest): void {
		if (this.#running) this.#wanted = params;
		if (this.#rest) this.#rest.turn = params;
		else if (!this.#ticket) this.#request(params);
		else if (this.#requested?.rank !== params.rank || this.#requested.paced !== params.paced) {
			this.#requested = params;
			this.#ticket.raise(params.rank, params.paced);
		}
	}

	#request({ rank, paced }: TurnRequest): void {
		this.#requested = { rank, paced };
		this.#wanted = undefined;
		const run = () => this.#run();
		const settled = (error?: PlatformError) => this.#settled(error);
		this.#ticket = this.#context.request(this.#address.target, { rank, paced, run, settled });
	}

	async #run(): Promise<void> {
		this.#running = true;
		try {
			const call = this.#advance({ type: "due" });
			if (!call) return;
			const outcome = await perform(this.#context, call, this.#address);
			if (call.type !== "find") this.#doubt = undefined;
			// The outcome decides again what is needed.
			this.#wanted = undefined;
			this.#advance(outcome);
		} catch (cause) {
			this.#running = false;
			throw cause;
		}
	}

	#settled(error: PlatformError | undefined): void {
		const wanted = this.#wanted;
		this.#running = false;
		this.#ticket = undefined;
		this.#wanted = undefined;
		if (this.#draft.over) return;
		if (!error) {
			if (wanted) this.#request(wanted);
			return;
		}
		const { fault, message, retryAfterMs } = error;
		const last = fault === "unknown_outcome" && !this.#pause(retryAfterMs);
		this.#advance({ type: "failed", fault, error: message, retryAfterMs, last });
	}

	/** Waits after an unknown outcome: with back-off, or for as long as the platform requests. False when the limit is reached. */
	#pause(requestedMs = 0): boolean {
		const { clock, limits } = this.#context;
		const { since, count } = this.#doubt ?? { since: clock.now(), count: 0 };
		this.#doubt = { since, count: count + 1 };
		const patienceMs = this.#rules.lookup === "nonce" ? limits.nonceWindowMs : limits.doubtMs;
		const waitMs = Math.max(doubtWait(limits, count + 1), Math.min(requestedMs, patienceMs - (clock.now() - since)));
		if (clock.now() + waitMs - since > patienceMs) return false;
		const cancel = clock.after(waitMs, () => {
			const params = this.#rest?.turn;
			this.#rest = undefined;
			if (params) this.#want(params);
		});
		this.#rest = { cancel, turn: undefined };
		return true;
	}
}

function styleOf(session: Session, target: Target): DraftStyle {
	const style = session.style?.(target) ?? "edit";
	const needed = { whole: session, edit: session.editing, preview: session.previewing, append: session.streaming };
	if (needed[style]) return style;
	return session.editing ? "edit" : "whole";
}

function rulesOf(context: AdapterContext, line: StartLine, key: string, sizes: FitRules): DraftRules {
	const { session, platform, limits } = context;
	const style = styleOf(session, line.target as Target);
	return {
		...sizes,
		style,
		canEdit: session.editing !== undefined,
		canRemove: session.editing?.remove !== undefined,
		lookup: session.find ? "find" : platform.info.reconcile === "nonce" ? "nonce" : "none",
		nonceWindowMs: limits.nonceWindowMs,
		// A daemon that names deliveries answers intents.
		intent: line.delivery !== undefined && platform.info.fields?.includes("intent") === true,
		tools: line.options?.tools === true,
		toolsApart: session.previewing?.toolsApart === true,
		early: style === "preview" || (style === "edit" && session.editing?.remove !== undefined),
		placeholder: line.options?.placeholder ?? "",
		errorText: line.options?.errorText ?? "",
		nonce: (ordinal, from) => nonceOf(`${key}@${from}`, ordinal),
	};
}
