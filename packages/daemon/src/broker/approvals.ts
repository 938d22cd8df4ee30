/** Approvals and questions to people, of live runs and of those that a dead daemon left: the open rows, their waiters and their ends. */

import { NexusError, type Random, Refused } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { ApprovalOutcome } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../bus/bus.ts";
import { type Approval, approvalWrites, type Decided } from "../ledger/approvals/port.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { defined } from "../std/defined.ts";
import type { Write } from "../std/write.ts";
import type { ApprovalDecision, ApprovalLimits, ApprovalListener, ApprovalsPort } from "./port.ts";

export const APPROVAL_LIMITS: ApprovalLimits = { waitMs: 10 * 60_000, argsCharsMax: 8000, pendingMax: 1000 };

interface OpenApproval {
	row: Approval;
	/** The row is durable. */
	isOpen: boolean;
	resolve?: ((answer: ApprovalOutcome) => void) | undefined;
	disarm?: () => void;
}

export interface ApprovalsDeps {
	bus: Pick<Bus, "write" | "listen" | "isShared">;
	ledger: Pick<Ledger, "approvals" | "turns">;
	limits: ApprovalLimits;
	clock: Clock;
	random: Random;
	log: Log;
}

/** Without the letters and digits that are mistaken for one another. A digit in second place: no word of a language looks like it. */
const LETTERS = "ABCDEFGHJKMNPQRSTVWXYZ";
const DIGITS = "23456789";
/** Keeps at most half of all ids in use, so a random draw finds a free one within a few attempts. */
const IDS_MAX = (LETTERS.length * DIGITS.length) ** 2 / 2;
/** The person who decides waits for this write. */
const WRITE_MS_MAX = 5000;
const RETRY_MS = 5000;
/** The Bus topic of decisions: the daemon that has the run reads them. */
const TOPIC = "approvals";

export class Approvals implements ApprovalsPort {
	readonly #deps: ApprovalsDeps;
	/** By id. */
	readonly #entries = new Map<string, OpenApproval>();
	readonly #listeners = new Set<ApprovalListener>();
	readonly #live = new Set<string>();
	#agreed: (row: Approval) => string | undefined = () => undefined;
	#closed = false;
	#stopListening = () => {};

	constructor(deps: ApprovalsDeps) {
		this.#deps = deps;
		const { bus, log } = deps;
		const failed = (cause: unknown) => log.warn({ err: cause }, "approvals of other daemons cannot be read");
		if (bus.isShared) this.#stopListening = bus.listen(TOPIC, () => void this.#reread().catch(failed));
	}

	get limits(): ApprovalLimits {
		return this.#deps.limits;
	}

	/** Loads the questions that an earlier daemon left open, and those of others. */
	async load(): Promise<void> {
		this.#add(await this.#deps.ledger.approvals.pending());
	}

	/** Takes note of the questions that other daemons have opened or decided. */
	async #reread(): Promise<void> {
		if (this.#closed) return;
		const rows = await this.#deps.ledger.approvals.pending();
		const pending = new Set(rows.map(keyOf));
		for (const { row, isOpen } of this.#of((one) => !pending.has(keyOf(one))))
			if (isOpen) await this.#closeAsRecorded(row);
		if (!this.#closed) this.#add(rows);
	}

	#add(rows: readonly Approval[]): void {
		for (const row of rows) {
			if (this.#entries.has(row.id)) continue;
			this.#entries.set(row.id, { row, isOpen: true });
			this.#arm(row.id);
		}
	}

	relyOn(agreed: (row: Approval) => string | undefined): void {
		this.#agreed = agreed;
	}

	listen(listener: ApprovalListener): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	pending(): Approval[] {
		const open = [...this.#entries.values()].filter(({ isOpen }) => isOpen);
		return open.map(({ row }) => row).toSorted((one, other) => one.createdAt - other.createdAt);
	}

	get isFull(): boolean {
		return this.#entries.size >= Math.min(this.limits.pendingMax, IDS_MAX);
	}

	/** Makes the row, with an id that no pending row has; already approved if a person agreed in advance. */
	begin(facts: Omit<Approval, "id" | "state">, resolve: (answer: ApprovalOutcome) => void): Approval {
		const row: Approval = { ...facts, id: this.#freshId(), state: "pending" };
		const by = row.kind === "approval" ? this.#agreed(row) : undefined;
		if (by !== undefined) return { ...row, state: "approved", by, decidedAt: row.createdAt };
		this.#entries.set(row.id, { row, isOpen: false, resolve });
		return row;
	}

	/** Its commit has landed. */
	opened(id: string): void {
		const entry = this.#entries.get(id);
		if (!entry || entry.isOpen) return;
		entry.isOpen = true;
		this.#arm(id);
		this.#notify((listener) => listener.opened?.(entry.row));
	}

	/** It was not committed. */
	forget(id: string): void {
		this.#entries.delete(id);
	}

	hold(runId: string): void {
		this.#live.add(runId);
	}

	/** Whether the run has an undecided question. */
	asks(runId: string): boolean {
		return this.#of((row) => row.runId === runId).length > 0;
	}

	/** The run has ended: its open questions stay for a new run, or were withdrawn with its turn. */
	release(runId: string, withdrawn: Decided | undefined): void {
		for (const entry of this.#of((row) => row.runId === runId)) {
			if (withdrawn) this.#close(entry.row.id, withdrawn);
			else entry.resolve = undefined;
		}
		this.#live.delete(runId);
	}

	/** A newer run withdraws the session's open questions: the writes commit with its begin. */
	superseding(session: string, runId: string): { writes: readonly Write[]; done(): void } {
		const others = () => this.#of((row) => row.session === session && row.runId !== runId);
		if (others().length === 0) return { writes: [], done() {} };
		const reason = `superseded by ${runId}`;
		const decided: Decided = { state: "withdrawn", by: "nexus", reason, at: this.#deps.clock.now() };
		return {
			writes: [approvalWrites.withdrawSession(session, decided)],
			done: () => void others().map(({ row }) => this.#close(row.id, decided)),
		};
	}

	async decide(runId: string, id: string, decision: ApprovalDecision, writes: readonly Write[] = []) {
		const { bus, ledger, clock } = this.#deps;
		const known = await ledger.approvals.get(runId, id);
		if (!known) throw new NexusError("not_found", `there is no question ${id} of run ${runId}`);
		const wanted = known.kind === "approval" ? decision.state !== "answered" : decision.state === "answered";
		if (!wanted)
			throw new NexusError("invalid", `${id} is ${known.kind === "approval" ? "an approval" : "a question"}`);
		if (known.state !== "pending") throw conflict(known);
		const decided: Decided = { ...decision, at: clock.now() };
		try {
			await bus.write([decideWrite(known, decided), ...writes], WRITE_MS_MAX);
		} catch (cause) {
			if (!(cause instanceof Refused) || cause.refusal === "fenced") throw cause;
			throw conflict((await ledger.approvals.get(runId, id)) ?? known);
		}
		return this.#close(id, decided, await this.#isElsewhere(runId)) ?? { ...known, ...rowFields(decided) };
	}

	/** The answer is not needed any more. */
	async withdraw(id: string, reason: string): Promise<void> {
		await this.#end(id, { state: "withdrawn", by: "nexus", reason, at: this.#deps.clock.now() });
	}

	/** Withdraws the questions of settled runs if the engine cannot continue them. An unsettled run may belong to another daemon. */
	async abandon(): Promise<void> {
		const { turns } = this.#deps.ledger;
		const reason = "its run was interrupted and cannot continue; send the message again";
		for (const { id, runId } of this.pending()) if (await turns.get(runId)) await this.withdraw(id, reason);
	}

	/** Stops expiring questions: that is left to the next daemon. */
	close(): void {
		this.#closed = true;
		this.#stopListening();
		for (const { disarm } of this.#entries.values()) disarm?.();
	}

	#freshId(): string {
		const { random } = this.#deps;
		const one = (letters: string) => letters[Math.floor(random() * letters.length)]!;
		for (;;) {
			const id = one(LETTERS) + one(DIGITS) + one(LETTERS) + one(DIGITS);
			if (!this.#entries.has(id)) return id;
		}
	}

	#of(fits: (row: Approval) => boolean): OpenApproval[] {
		return [...this.#entries.values()].filter(({ row }) => fits(row));
	}

	#arm(id: string): void {
		const entry = this.#entries.get(id)!;
		const { clock } = this.#deps;
		const expire = () =>
			void this.#end(id, { state: "expired", by: "nexus", reason: "no answer in time", at: clock.now() });
		entry.disarm = clock.after(Math.max(0, entry.row.expiresAt - clock.now()), expire);
	}

	/** Ends a question without a person. The write is retried; the waiting run gets its answer now, because the answer is no. */
	async #end(id: string, decided: Decided): Promise<void> {
		const { bus, clock, log } = this.#deps;
		const entry = this.#entries.get(id);
		if (!entry || this.#closed) return;
		const { runId } = entry.row;
		try {
			if (entry.isOpen) await bus.write([decideWrite(entry.row, decided)], WRITE_MS_MAX);
			this.#close(id, decided, await this.#isElsewhere(runId));
		} catch (cause) {
			// Another decision won: adopt the stored one, even if this process never received it.
			if (cause instanceof Refused) return this.#closeAsRecorded(entry.row);
			log.error({ runId, approval: id, err: cause, againMs: RETRY_MS }, "the end of an approval cannot be saved yet");
			entry.resolve?.(answerOf({ ...entry.row, ...rowFields(decided) }));
			entry.disarm = clock.after(RETRY_MS, () => void this.#end(id, decided));
		}
	}

	async #closeAsRecorded({ runId, id }: Approval): Promise<void> {
		const { bus, ledger, log } = this.#deps;
		try {
			const row = await ledger.approvals.get(runId, id);
			if (!row || row.state === "pending") return;
			const { state, decidedAt: at = row.expiresAt, by, reason, text } = row;
			// The daemon that decided it acts for a run that has ended.
			this.#close(id, { state, at, by, reason, text }, bus.isShared && !this.#live.has(runId));
		} catch (cause) {
			log.error({ runId, approval: id, err: cause }, "the outcome of an approval cannot be read");
		}
	}

	/** The run is live in another daemon, which continues it with the answer. */
	async #isElsewhere(runId: string): Promise<boolean> {
		const { bus, ledger } = this.#deps;
		return bus.isShared && !this.#live.has(runId) && !(await ledger.turns.get(runId));
	}

	#close(id: string, decided: Decided, isElsewhere = false): Approval | undefined {
		const entry = this.#entries.get(id);
		if (!entry) return undefined;
		this.#entries.delete(id);
		entry.disarm?.();
		const row: Approval = { ...entry.row, ...rowFields(decided) };
		entry.resolve?.(answerOf(row));
		const live = this.#live.has(row.runId);
		if (entry.isOpen && !isElsewhere) this.#notify((listener) => listener.closed?.(row, live));
		return row;
	}

	#notify(call: (listener: ApprovalListener) => void): void {
		for (const listener of this.#listeners) {
			try {
				call(listener);
			} catch (cause) {
				this.#deps.log.error({ err: cause }, "a listener for approvals failed");
			}
		}
	}
}

/** Without the arguments: a write only identifies the question. */
const decideWrite = ({ id, runId, session, tool, agent }: Approval, decided: Decided): Write => ({
	...approvalWrites.decide({ id, runId, session, tool, agent }, decided),
	topic: TOPIC,
});

const keyOf = ({ runId, id }: Approval): string => `${runId} ${id}`;
const rowFields = ({ at, state, ...words }: Decided) => ({ state, decidedAt: at, ...defined(words) });

/** A person decided it, not a timeout. */
export const isPersons = ({ state }: Pick<Approval, "state">): boolean =>
	state === "approved" || state === "denied" || state === "answered";

/** The outcome as the engine gets it. */
export function answerOf({ id, state, by, reason, text, digest }: Approval): ApprovalOutcome {
	if (state === "pending") throw new NexusError("internal", `${id} has no answer yet`);
	return { id, state, digest, by, reason, text };
}

function conflict({ id, state, by, reason }: Approval): NexusError {
	const who = by === undefined || by === "nexus" ? "" : ` by ${by}`;
	const why = state === "withdrawn" && reason !== undefined ? `: ${reason}` : "";
	return new NexusError("conflict", `${id} is ${state === "pending" ? "expired" : state} already${who}${why}`);
}
