/** Questions to people: the rows that are open, who waits for each, and how they end. Of live runs, and of those that a dead daemon left. */

import { NexusError, type Random, Refused } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../bus/bus.ts";
import type { ApprovalOutcome } from "../engine/engine.ts";
import { type Approval, approvalWrites, type Decided, type Ledger, type OpenQuestion } from "../ledger/ledger.ts";
import { defined } from "../std/defined.ts";
import type { Write } from "../std/write.ts";

export interface ApprovalLimits {
	/** How long a person has for an answer. */
	waitMs: number;
	/** Arguments and questions that are longer are refused: nobody can decide about what cannot be shown whole. */
	argsCharsMax: number;
	/** Questions that wait at a time, of all runs. */
	pendingMax: number;
}

export const APPROVAL_LIMITS: ApprovalLimits = { waitMs: 10 * 60_000, argsCharsMax: 8000, pendingMax: 1000 };

/** What a person said. */
export interface ApprovalDecision {
	state: "approved" | "denied" | "answered";
	/** In words. */
	by: string;
	reason?: string;
	text?: string;
}

export interface ApprovalListener {
	/** It is on record: people can be asked. */
	opened?(row: Approval): void;
	/** `live`: its run goes on with the answer, or has ended without it. Not `live`: only a new run can. */
	closed?(row: Approval, live: boolean): void;
}

/** What others may do with questions. */
export interface ApprovalsPort {
	/** Oldest first. */
	pending(): Approval[];
	/** The first decision counts: a later one, or one that is too late, is a `conflict` that says who decided. `beside` commits with it. */
	decide(runId: string, id: string, decision: ApprovalDecision, beside?: readonly Write[]): Promise<Approval>;
	listen(listener: ApprovalListener): () => void;
	/** Says, in words, who has agreed to a call already; undefined = a person is asked. */
	relyOn(agreed: (row: Approval) => string | undefined): void;
}

interface OpenApproval {
	row: Approval;
	/** It is durable. */
	isOpen: boolean;
	resolve?: ((answer: ApprovalOutcome) => void) | undefined;
	disarm?: () => void;
}

export interface ApprovalsDeps {
	bus: Pick<Bus, "write">;
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
/** Whoever decides waits for it. */
const WRITE_MS_MAX = 5000;
const RETRY_MS = 5000;

export class Approvals implements ApprovalsPort {
	readonly #deps: ApprovalsDeps;
	/** By id. */
	readonly #entries = new Map<string, OpenApproval>();
	readonly #listeners = new Set<ApprovalListener>();
	readonly #live = new Set<string>();
	#agreed: (row: Approval) => string | undefined = () => undefined;
	#closed = false;

	constructor(deps: ApprovalsDeps) {
		this.#deps = deps;
	}

	get limits(): ApprovalLimits {
		return this.#deps.limits;
	}

	/** Takes up what an earlier daemon left open. */
	async load(): Promise<void> {
		for (const row of await this.#deps.ledger.approvals.pending()) {
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

	/** The row under an id that no other pending one has; decided already where somebody agreed before. */
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
		this.#tell((listener) => listener.opened?.(entry.row));
	}

	/** It was not committed. */
	forget(id: string): void {
		this.#entries.delete(id);
	}

	hold(runId: string): void {
		this.#live.add(runId);
	}

	/** Whether something of the run is not decided yet. */
	asks(runId: string): boolean {
		return this.#of((row) => row.runId === runId).length > 0;
	}

	/** The run has ended: what it left open stays for a new one, or was withdrawn with its turn. */
	release(runId: string, withdrawn: Decided | undefined): void {
		for (const { row } of this.#of((row) => row.runId === runId)) {
			if (withdrawn) this.#close(row.id, withdrawn);
			else this.#entries.get(row.id)!.resolve = undefined;
		}
		this.#live.delete(runId);
	}

	/** What commits with the begin of a newer run of the session. */
	superseding(session: string, runId: string): { writes: readonly Write[]; done(): void } {
		const decided = (): Decided => ({
			state: "withdrawn",
			by: "nexus",
			reason: `superseded by ${runId}`,
			at: this.#deps.clock.now(),
		});
		const others = () => this.#of((row) => row.session === session && row.runId !== runId);
		if (others().length === 0) return { writes: [], done() {} };
		const now = decided();
		return {
			writes: [approvalWrites.withdrawSession(session, now)],
			done: () => {
				for (const { row } of others()) this.#close(row.id, now);
			},
		};
	}

	async decide(
		runId: string,
		id: string,
		decision: ApprovalDecision,
		beside: readonly Write[] = [],
	): Promise<Approval> {
		const { bus, ledger, clock } = this.#deps;
		const known = await ledger.approvals.get(runId, id);
		if (!known) throw new NexusError("not_found", `there is no question ${id} of run ${runId}`);
		const wanted = known.kind === "approval" ? decision.state !== "answered" : decision.state === "answered";
		if (!wanted)
			throw new NexusError("invalid", `${id} is ${known.kind === "approval" ? "an approval" : "a question"}`);
		if (known.state !== "pending") throw conflict(known);
		const decided: Decided = { ...decision, at: clock.now() };
		try {
			await bus.write([approvalWrites.decide(openOf(known), decided), ...beside], WRITE_MS_MAX);
		} catch (cause) {
			if (!(cause instanceof Refused) || cause.refusal === "fenced") throw cause;
			throw conflict((await ledger.approvals.get(runId, id)) ?? known);
		}
		return this.#close(id, decided) ?? { ...known, ...rowFields(decided) };
	}

	/** Nobody needs the answer any more. */
	async withdraw(id: string, reason: string): Promise<void> {
		await this.#end(id, { state: "withdrawn", by: "nexus", reason, at: this.#deps.clock.now() });
	}

	/** What settled runs left open, where none can go on with an answer. A run that has not settled may be another daemon's. */
	async abandon(): Promise<void> {
		const { turns } = this.#deps.ledger;
		const reason = "its run was cut off and cannot go on; send the message again";
		for (const { id, runId } of this.pending()) if (await turns.get(runId)) await this.withdraw(id, reason);
	}

	/** Nothing is expired any more: that is the next daemon's. */
	close(): void {
		this.#closed = true;
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
			void this.#end(id, { state: "expired", by: "nexus", reason: "nobody answered in time", at: clock.now() });
		entry.disarm = clock.after(Math.max(0, entry.row.expiresAt - clock.now()), expire);
	}

	/** Ends it without a person. A store that fails is asked again; whoever waits is told at once, because the answer is no. */
	async #end(id: string, decided: Decided): Promise<void> {
		const { bus, clock, log } = this.#deps;
		const entry = this.#entries.get(id);
		if (!entry || this.#closed) return;
		const { runId } = entry.row;
		try {
			if (entry.isOpen) await bus.write([approvalWrites.decide(openOf(entry.row), decided)], WRITE_MS_MAX);
			this.#close(id, decided);
		} catch (cause) {
			// Somebody was faster: what is on record counts, also where nobody here was told of it.
			if (cause instanceof Refused) return this.#closeAsRecorded(entry.row);
			log.error({ runId, approval: id, err: cause, againMs: RETRY_MS }, "the end of a question cannot be saved yet");
			entry.resolve?.(answerOf({ ...entry.row, ...rowFields(decided) }));
			entry.disarm = clock.after(RETRY_MS, () => void this.#end(id, decided));
		}
	}

	async #closeAsRecorded({ runId, id }: Approval): Promise<void> {
		const { ledger, log } = this.#deps;
		try {
			const row = await ledger.approvals.get(runId, id);
			if (!row || row.state === "pending") return;
			const { state, decidedAt: at = row.expiresAt, by, reason, text } = row;
			this.#close(id, { state, at, by, reason, text });
		} catch (cause) {
			log.error({ runId, approval: id, err: cause }, "what became of a question cannot be read");
		}
	}

	#close(id: string, decided: Decided): Approval | undefined {
		const entry = this.#entries.get(id);
		if (!entry) return undefined;
		this.#entries.delete(id);
		entry.disarm?.();
		const row: Approval = { ...entry.row, ...rowFields(decided) };
		entry.resolve?.(answerOf(row));
		const live = this.#live.has(row.runId);
		if (entry.isOpen) this.#tell((listener) => listener.closed?.(row, live));
		return row;
	}

	#tell(say: (listener: ApprovalListener) => void): void {
		for (const listener of this.#listeners) {
			try {
				say(listener);
			} catch (cause) {
				this.#deps.log.error({ err: cause }, "somebody who listens to questions failed");
			}
		}
	}
}

/** Without the arguments: a write says which question it is about, and no more. */
const openOf = ({ id, runId, session, tool, agent }: Approval): OpenQuestion => ({ id, runId, session, tool, agent });

const rowFields = ({ at, state, ...words }: Decided) => ({ state, decidedAt: at, ...defined(words) });

/** Somebody decided it, and not the time. */
export const isPersons = ({ state }: Pick<Approval, "state">): boolean =>
	state === "approved" || state === "denied" || state === "answered";

/** What an engine is told. */
export function answerOf({ id, state, by, reason, text, digest }: Approval): ApprovalOutcome {
	if (state === "pending") throw new NexusError("internal", `${id} has no answer yet`);
	return { id, state, digest, by, reason, text };
}

function conflict({ id, state, by, reason }: Approval): NexusError {
	const who = by === undefined || by === "nexus" ? "" : ` by ${by}`;
	const why = state === "withdrawn" && reason !== undefined ? `: ${reason}` : "";
	return new NexusError("conflict", `${id} is ${state === "pending" ? "expired" : state} already${who}${why}`);
}
