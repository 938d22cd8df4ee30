/** One delivery under way: joins its draft with the account's gate and the platform's calls, and reports what became of it. */

import type { GateTicket } from "../gate/gate.ts";
import type { Rank } from "../gate/gate-step.ts";
import type { ComposeRules } from "../markdown/compose.ts";
import { nonceOf } from "../nonce.ts";
import type { DraftStyle, PlatformError, Session } from "../platform/platform.ts";
import type { DeliveryFields, StreamLine, StreamStatus, Target } from "../port.ts";
import {
	type AdapterContext,
	createRenderer,
	createStatus,
	doubtWait,
	laneOf,
	type ShowToolStatus,
} from "../serve/context.ts";
import { stepDraft } from "./draft.ts";
import { beginDraft, type Draft, type DraftCall, type DraftInput, type DraftRules, NO_TOOLS } from "./draft-state.ts";
import { type Addressed, perform } from "./perform.ts";
import { factsOf } from "./run-facts.ts";

export type StartLine = Extract<StreamLine, { type: "stream_start" }>;

/** A turn that is wanted. */
interface TurnRequest {
	rank: Rank;
	paced: boolean;
}

export class StreamedDelivery {
	private readonly context: AdapterContext;
	private readonly gone: () => void;
	private readonly rules: DraftRules;
	private address: Addressed;
	private draft: Draft;
	private offset: number | undefined;
	private ticket: GateTicket | undefined;
	private requested: TurnRequest | undefined;
	/** A call is under way; what its outcome makes necessary waits here. */
	private running = false;
	private wanted: TurnRequest | undefined;
	private readonly status: ShowToolStatus;
	private lastLineRead = false;
	private cancelAckLimit = () => {};
	/** Creations in a row whose outcome was not told: the next call waits, ever longer. */
	private doubt: { since: number; count: number } | undefined;
	private rest: { cancel(): void; turn: TurnRequest | undefined } | undefined;

	constructor(context: AdapterContext, line: StartLine, key: string, gone: () => void) {
		const { render, ...sizes } = createRenderer(context.platform);
		this.context = context;
		this.gone = gone;
		this.rules = rulesOf(context, line, key, sizes);
		this.address = {
			target: line.target as Target,
			fields: { ...(line.delivery === undefined ? {} : { delivery: line.delivery }), runId: line.runId },
			facts: { runId: line.runId },
			render,
			draftId: (ordinal) => Number.parseInt(nonceOf(key, ordinal).slice(0, 7), 16) + 1,
		};
		this.offset = line.offset;
		this.draft = beginDraft(this.rules, line.resume);
		this.status = createStatus(context, this.address.target);
		if (this.rules.placeholder !== "") this.advance({ type: "begin" });
	}

	take(input: DraftInput, fields: DeliveryFields): void {
		this.offset = fields.offset ?? this.offset;
		if (input.type === "end") this.address = { ...this.address, facts: { ...this.address.facts, ...factsOf(fields) } };
		if (input.type === "ack") this.cancelAckLimit();
		this.advance(input);
	}

	/** No more lines come. What needs none is finished; the rest is left for another process to resume. */
	lastLine(): void {
		this.lastLineRead = true;
		if (this.draft.closed === undefined || this.draft.message.at === "announced") this.drop();
	}

	drop(): void {
		this.cancelAckLimit();
		this.rest?.cancel();
		this.ticket?.cancel();
		this.ticket = undefined;
		this.draft = { ...this.draft, over: true };
		this.gone();
	}

	private advance(input: DraftInput): DraftCall | undefined {
		const step = stepDraft(this.draft, input, this.context.clock.now(), this.rules);
		this.draft = step.draft;
		let call: DraftCall | undefined;
		for (const effect of step.effects) {
			if (effect.type === "say") this.say(effect.status);
			else if (effect.type === "want") this.want(effect);
			else if (effect.type === "call") call = effect.call;
			else this.drop();
		}
		if (this.rules.style === "append") this.status(step.draft.over ? NO_TOOLS : step.draft.tools);
		return call;
	}

	private say(status: StreamStatus): void {
		const offset = this.offset === undefined ? {} : { offset: this.offset };
		this.context.say({ ...status, ...this.address.fields, ...offset });
		if (status.type === "message_creating") this.awaitAck(status.nonce);
		// What was announced and is not made any more may get no answer.
		if (status.type === "message_removed") this.cancelAckLimit();
	}

	private awaitAck(nonce: string): void {
		if (this.lastLineRead) {
			this.drop();
			return;
		}
		const limitMs = this.context.limits.ackLimitMs;
		const error = `The daemon has not confirmed the intent to create message ${nonce} within ${limitMs} ms.`;
		this.cancelAckLimit = this.context.clock.after(limitMs, () => {
			this.advance({ type: "failed", fault: "unavailable", error });
		});
	}

	/** One wish at a time waits in the gate; its text is taken when its turn has come. */
	private want(params: TurnRequest): void {
		if (this.running) this.wanted = params;
		if (this.rest) this.rest.turn = params;
		else if (!this.ticket) this.request(params);
		else if (this.requested?.rank !== params.rank || this.requested.paced !== params.paced) {
			this.requested = params;
			this.ticket.raise(params.rank, params.paced);
		}
	}

	private request({ rank, paced }: TurnRequest): void {
		const { target } = this.address;
		this.requested = { rank, paced };
		this.wanted = undefined;
		this.ticket = this.context.gate.request({
			lane: laneOf(target),
			rank,
			paced,
			pace: () => this.context.pace(target),
			run: () => this.run(),
			settled: (error) => this.settled(error),
		});
	}

	private async run(): Promise<void> {
		this.running = true;
		try {
			const call = this.advance({ type: "due" });
			if (!call) return;
			const outcome = await perform(this.context, call, this.address);
			if (call.type !== "find") this.doubt = undefined;
			// The outcome says anew what is needed.
			this.wanted = undefined;
			this.advance(outcome);
		} catch (cause) {
			this.running = false;
			throw cause;
		}
	}

	private settled(error: PlatformError | undefined): void {
		const { wanted } = this;
		this.running = false;
		this.ticket = undefined;
		this.wanted = undefined;
		if (this.draft.over) return;
		if (!error) {
			if (wanted) this.request(wanted);
			return;
		}
		const wait = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
		const last = error.fault === "unknown_outcome" && !this.pause(error.retryAfterMs);
		this.advance({ type: "failed", fault: error.fault, error: error.message, ...wait, last });
	}

	/** Nothing is called for a while, as long as a gateway asks for within the patience. False when the patience is over. */
	private pause(askedMs = 0): boolean {
		const { clock, limits } = this.context;
		const { since, count } = this.doubt ?? { since: clock.now(), count: 0 };
		this.doubt = { since, count: count + 1 };
		const patienceMs = this.rules.lookup === "nonce" ? limits.nonceWindowMs : limits.doubtMs;
		const waitMs = Math.max(doubtWait(limits, count + 1), Math.min(askedMs, patienceMs - (clock.now() - since)));
		if (clock.now() + waitMs - since > patienceMs) return false;
		const cancel = clock.after(waitMs, () => {
			const params = this.rest?.turn;
			this.rest = undefined;
			if (params) this.want(params);
		});
		this.rest = { cancel, turn: undefined };
		return true;
	}
}

function styleOf(session: Session, target: Target): DraftStyle {
	const style = session.style?.(target) ?? "edit";
	const able =
		style === "whole" ||
		(style === "edit" && session.edit) ||
		(style === "preview" && session.preview) ||
		(style === "append" && session.start && session.append && session.stop);
	return able ? style : session.edit ? "edit" : "whole";
}

function rulesOf(
	context: AdapterContext,
	line: StartLine,
	key: string,
	sizes: Omit<ComposeRules, "guess">,
): DraftRules {
	const { session, platform, limits } = context;
	const style = styleOf(session, line.target as Target);
	return {
		...sizes,
		guess: platform.info.limits.textMax,
		style,
		canEdit: session.edit !== undefined,
		canRemove: session.remove !== undefined,
		lookup: session.find ? "find" : platform.info.reconcile === "nonce" ? "nonce" : "none",
		nonceWindowMs: limits.nonceWindowMs,
		// A daemon that names deliveries answers intents.
		intent: line.delivery !== undefined && platform.info.fields?.includes("intent") === true,
		tools: line.options?.tools === true,
		toolsApart: session.toolsApart === true,
		early: style === "preview" || (style === "edit" && session.remove !== undefined),
		placeholder: line.options?.placeholder ?? "",
		errorText: line.options?.errorText ?? "",
		nonce: (ordinal, from) => nonceOf(`${key}@${from}`, ordinal),
	};
}
