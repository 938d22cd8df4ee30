/** The approvals and questions of one run: gives them ids, opens their rows, waits for answers, and records the pauses. */

import { Refused, shownJson, shownText } from "@nexus-stream/protocol";
import type { ApprovalOutcome, ToolApproval } from "@nexus-stream/protocol/engine";
import type { LogWriter } from "../../bus/bus.ts";
import { digestOf } from "../../engine/engine.ts";
import { type Approval, approvalWrites, type Decided } from "../../ledger/approvals/port.ts";
import type { Write } from "../../std/write.ts";
import { type Approvals, answerOf } from "../approvals.ts";
import { isTextOrNone } from "../frames/content.ts";
import type { ExecuteRequest } from "../port.ts";
import type { Pause } from "../watchdog.ts";
import { malformed, type ToolEvent } from "./engine-event.ts";

const CHOICES_MAX = 10;
const CHOICE_CHARS_MAX = 100;
const BECAUSE_CHARS_MAX = 500;

interface RunApprovalsOptions {
	request: Pick<ExecuteRequest, "runId" | "session" | "requester">;
	now(): number;
	/** A pause has begun or ended. */
	changed(): void;
}

/** An event as it is to be framed; with `open`, in one commit with a row. */
export interface NamedEvent {
	event: ToolEvent;
	open?: { writes: readonly Write[]; done(): void; failed(): void };
}

interface RunApproval {
	row: Approval | undefined;
	text: string;
	answer: Promise<ApprovalOutcome>;
	resolve(answer: ApprovalOutcome): void;
	isPending: boolean;
	/** The answer, once there is one. */
	given?: ApprovalOutcome;
}

export class RunApprovals {
	readonly #approvals: Approvals;
	readonly #options: RunApprovalsOptions;
	/** By the engine's id. */
	readonly #byCall = new Map<string, RunApproval>();
	readonly #pauses: Pause[] = [];
	#pending = 0;
	#kept = false;

	constructor(approvals: Approvals, options: RunApprovalsOptions) {
		this.#approvals = approvals;
		this.#options = options;
	}

	/** A person has been asked and has not answered. */
	get isWaiting(): boolean {
		return this.#pending > 0;
	}

	get pauses(): readonly Pause[] {
		return this.#pauses;
	}

	/** Gives the event the id that people see. A first `pending` opens a row, or is refused, which the engine gets as the answer. */
	take(event: ToolEvent): NamedEvent {
		const asking = checkedApproval(event);
		const approval = this.#byCall.get(asking.id);
		if (asking.state === "pending" && !approval) return this.#open(event, asking);
		if (approval?.row === undefined) return { event: without(event) };
		return { event: { ...event, asking: shown(approval, asking.choices) } };
	}

	async answer(id: string, signal: AbortSignal): Promise<ApprovalOutcome> {
		const approval = this.#byCall.get(id);
		if (!approval) return { id, state: "withdrawn", reason: "it was never asked" };
		const { row, answer } = approval;
		if (!row || !approval.isPending) return answer;
		const withdraw = () => {
			if (!this.#kept) void this.#approvals.withdraw(row.id, "the call is not needed any more");
			this.#answered(approval, { id: row.id, state: "withdrawn", reason: "the run was stopped" });
		};
		if (signal.aborted) withdraw();
		else signal.addEventListener("abort", withdraw, { once: true });
		try {
			return await answer;
		} finally {
			signal.removeEventListener("abort", withdraw);
		}
	}

	/** The daemon stops: open questions stay open for the run that continues this one. */
	keep(): void {
		this.#kept = true;
	}

	/** The writes that commit with the turn: the end of a run withdraws its questions, unless they are kept. */
	atEnd(reason: string): { writes: readonly Write[]; done(): void } {
		const { now, request } = this.#options;
		const { runId } = request;
		if (!this.#approvals.asks(runId) || this.#kept)
			return { writes: [], done: () => this.#approvals.release(runId, undefined) };
		const decided: Decided = { state: "withdrawn", by: "nexus", reason, at: now() };
		return {
			writes: [approvalWrites.withdrawRun(runId, decided)],
			done: () => this.#approvals.release(runId, decided),
		};
	}

	#open(event: ToolEvent, asking: ToolApproval): NamedEvent {
		const { now, request } = this.#options;
		const { runId, session, requester } = request;
		const { promise: answer, resolve } = Promise.withResolvers<ApprovalOutcome>();
		this.#approvals.hold(runId);
		const { kind, question = "", choices, revision, because, once } = asking;
		const args = structuredClone(event.args ?? null);
		const text = kind === "question" ? shownText(question) : `${event.name} ${shownJson(args)}`;
		const approval: RunApproval = { row: undefined, text, answer, resolve, isPending: false };
		this.#byCall.set(asking.id, approval);
		const problem = this.#problemWith(text);
		if (problem !== undefined) {
			resolve({ id: "", state: "denied", by: "nexus", reason: problem });
			return { event: without(event) };
		}
		const row = this.#approvals.begin(
			{
				runId,
				session,
				callId: event.callId,
				tool: event.name,
				kind,
				args,
				digest: digestOf(event.name, args, revision),
				agent: event.agent,
				question: kind === "question" ? question : undefined,
				choices,
				// A person who agreed in advance has not seen these words.
				...(requester && { requester: once ? { ...requester, only: false } : requester }),
				because: because === undefined ? undefined : onOneLine(because),
				createdAt: now(),
				expiresAt: now() + this.#approvals.limits.waitMs,
			},
			(given) => this.#answered(approval, given),
		);
		approval.row = row;
		const isPending = row.state === "pending";
		if (isPending) this.#pause(approval);
		const named = { ...event, asking: shown(approval, choices) };
		const done = () => (isPending ? this.#approvals.opened(row.id) : resolve(answerOf(row)));
		const failed = () => {
			this.#approvals.forget(row.id);
			this.#answered(approval, { id: row.id, state: "denied", by: "nexus", reason: "the question could not be saved" });
		};
		return { event: named, open: { writes: [approvalWrites.open(row)], done, failed } };
	}

	#problemWith(text: string): string | undefined {
		const { argsCharsMax } = this.#approvals.limits;
		if (this.#approvals.isFull) return "too many questions wait for an answer already; try again later";
		if (text.length <= argsCharsMax) return undefined;
		return `it is too long to be shown whole to the person who decides: ${text.length} characters, at most ${argsCharsMax}; split it`;
	}

	#pause(approval: RunApproval): void {
		approval.isPending = true;
		if (this.#pending++ === 0) this.#pauses.push({ from: this.#options.now() });
		this.#options.changed();
	}

	#answered(approval: RunApproval, answer: ApprovalOutcome): void {
		approval.given ??= answer;
		approval.resolve(answer);
		if (!approval.isPending) return;
		approval.isPending = false;
		if (--this.#pending > 0) return;
		this.#pauses.at(-1)!.to = this.#options.now();
		this.#options.changed();
	}
}

/** `checkpoint` commits with the row. Never rejects: the engine gets a refusal of the store as the answer, and the frames stay whole. */
export async function opening(
	writer: LogWriter,
	records: readonly string[],
	{ writes, done, failed }: NonNullable<NamedEvent["open"]>,
	checkpoint: readonly Write[],
): Promise<void> {
	try {
		await writer.appendWith(records, [...writes, ...checkpoint]);
		done();
	} catch (cause) {
		// The call is denied; its end brings the next checkpoint.
		if (cause instanceof Refused && cause.refusal !== "fenced") for (const record of records) writer.append(record);
		failed();
	}
}

const without = ({ asking: _asking, ...event }: ToolEvent): ToolEvent => event;

/** As frames show it: the stored decision counts, not the engine's report. */
function shown({ row, text, given }: RunApproval, choices: ToolApproval["choices"]): ToolApproval {
	const { id, kind, expiresAt, because, requester } = row!;
	const { state, by } = given ?? row!;
	return {
		id,
		kind,
		state,
		question: text,
		expiresAt,
		because,
		once: kind === "approval" && requester?.only === false ? true : undefined,
		choices,
		by,
	};
}

/** User code may yield anything. */
function checkedApproval(event: ToolEvent): ToolApproval {
	const { asking: approval } = event;
	const isOne =
		typeof approval === "object" &&
		(approval.kind === "approval" || (approval.kind === "question" && typeof approval.question === "string")) &&
		[approval.id, approval.state, event.callId, event.name].every((text) => typeof text === "string") &&
		[approval.by, approval.revision, approval.because].every(isTextOrNone) &&
		(approval.choices === undefined || areChoices(approval.choices));
	if (!isOne) throw malformed(event);
	return approval;
}

const onOneLine = (text: string): string =>
	shownText(text).replaceAll("\n", " ").slice(0, BECAUSE_CHARS_MAX).toWellFormed();

const areChoices = (choices: unknown): boolean =>
	Array.isArray(choices) &&
	choices.length <= CHOICES_MAX &&
	choices.every((choice) => typeof choice === "string" && choice !== "" && choice.length <= CHOICE_CHARS_MAX);
