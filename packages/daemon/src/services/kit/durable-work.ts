/** Durable work: a row and a log that change in one commit, so that a crash leaves both or neither. Jobs, workflows, realtime sessions and model calls are kinds of it. */

import {
	type ErrorCode,
	isErrorCode,
	LOG_KINDS,
	NexusError,
	type Reason,
	Refused,
	reasonOfFailure,
	timeOfId,
} from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import { ADMIT_MS_MAX, type Bus, type Cursor, type LogInfo, type LogWriter, orphans } from "../../bus/bus.ts";
import type { Reading, Write } from "../../std/write.ts";
import type { Audit, AuditPayload } from "../audit/port.ts";
import { type OnceRequest, once } from "./once.ts";
import { type Principal, seesApp } from "./principal.ts";
import type { Quota } from "./quota.ts";
import type { IdempotencyRows } from "./rows.ts";

export interface DurableWorkDeps {
	bus: Bus;
	rows: { idempotency: IdempotencyRows };
	audit: Audit;
	quota: Pick<Quota, "check" | "holding">;
	clock: Clock;
	log: Log;
}

export interface WorkKind {
	kind: "job" | "workflow" | "realtime" | "scenario";
	/** Its name in messages. */
	noun: string;
	/** The domain of its audit entries. */
	domain: string;
	/** Returns the id of the application that submitted the work, or undefined for an unknown id. */
	appOf(id: string, info: LogInfo | undefined): Reading<string | undefined>;
}

/** The beginning of a piece of work: its first record, and the writes of its rows. */
export interface Beginning {
	record: string;
	writes: readonly Write[];
	/** Facts for recovery and listing; JSON. */
	meta?: unknown;
	/** How long a store that refuses commits is waited for; `Infinity` for work that no client waits for. */
	patienceMs?: number;
}

export interface AuditedWork {
	appId: string;
	userId: string;
	error?: { code: string; message: string; reason?: string };
	/** In place of the error's. */
	reason?: Reason;
	caller?: string;
	payload: AuditPayload;
}

/** How long after a failed commit the same commit is tried again. */
const COMMIT_AGAIN_MS = 5000;

export class DurableWork {
	readonly #kind: WorkKind;
	readonly #deps: DurableWorkDeps;
	readonly #closed = new AbortController();

	constructor(kind: WorkKind, deps: DurableWorkDeps) {
		this.#kind = kind;
		this.#deps = deps;
	}

	/**
	 * Creates new work under the id `result`, unless its idempotency key was used before: then `id` names the first. `begin` checks whatever
	 * only new work has to pass, and calls `commit`.
	 */
	async create(
		request: OnceRequest,
		begin: (commit: (beginning: Beginning) => Promise<DurableLog>) => Promise<DurableLog>,
	): Promise<{ id: string; log: DurableLog | undefined }> {
		const { appId, body, result } = request;
		let log: DurableLog | undefined;
		const { id } = await once(this.#deps, request, async (claim) => {
			log = await begin(({ record, writes, meta, patienceMs = ADMIT_MS_MAX }) =>
				this.#deps.quota.holding(appId, Buffer.byteLength(JSON.stringify(body)), async () => {
					const spec = { log: result, kind: this.#kind.kind, meta, countedFor: appId };
					return this.#logOf(await this.#deps.bus.create(spec, [record], { with: [...writes, ...claim], patienceMs }));
				}),
			);
		});
		return { id, log };
	}

	#logOf(writer: LogWriter): DurableLog {
		return new DurableLog(writer, this.#deps, this.#closed.signal);
	}

	/** Hands what a dead daemon left to `take`, oldest first. Returns for how many of them it answered true. */
	async recover(take: (id: string, reopen: () => Promise<DurableLog>) => Promise<boolean>): Promise<number> {
		const { bus, log } = this.#deps;
		const { kind, noun } = this.#kind;
		let taken = 0;
		await orphans.each(bus, kind, async ({ log: id }) => {
			try {
				if (await take(id, async () => this.#logOf(await bus.reopen(id)))) taken++;
			} catch (cause) {
				if (bus.isShared && orphans.isTakenByAnother(cause)) return;
				log.error({ err: cause, log: id }, `a ${noun} of a dead daemon could not be taken over`);
			}
		});
		return taken;
	}

	/** The log of work that the caller may read. Rejects with `not_found` also for another application's, or with `expired`. */
	async describe(id: string, principal: Principal): Promise<LogInfo> {
		const { kind, noun } = this.#kind;
		const found = await this.#deps.bus.describe(id);
		const info = found?.kind === kind ? found : undefined;
		const appId = await this.#kind.appOf(id, info);
		if (appId === undefined || !seesApp(principal, appId))
			throw gone(noun, id, LOG_KINDS[kind].keptMs, this.#deps.clock.now());
		if (!info)
			throw new NexusError("expired", `the events of ${id} were removed by retention; read the ${noun} itself`);
		return info;
	}

	/** Reads after an offset, or from the newest record on. Work that has ended repeats its last record: no reader is left without it (Z5). */
	async cursor(
		id: string,
		after: number | undefined,
		principal: Principal,
		open = (place: number): Promise<Cursor> => this.#deps.bus.cursor({ log: id }, place),
	): Promise<Cursor> {
		const { head, sealedAt } = await this.describe(id, principal);
		const newest = Math.max(0, head - 1);
		if (sealedAt !== undefined) return open(Math.min(after ?? newest, newest));
		if (after !== undefined && after > head)
			throw new NexusError("invalid", `${id} has ${head} records so far; there is none after ${after}`);
		return open(after ?? newest);
	}

	/** The audit entry that commits with a change. */
	audited(operation: string, { appId, userId, error, reason, caller, payload }: AuditedWork): Write {
		return this.#deps.audit({
			domain: this.#kind.domain,
			operation,
			appId,
			userId: userId || undefined,
			reason: reason ?? (error && reasonOfFailure(error)),
			caller,
			payload,
		});
	}

	/** From now on a commit that fails is not tried again: the next start finds the work as it is on record. */
	close(): void {
		this.#closed.abort(stopping());
	}
}

/** The log of one piece of work, and the rows that change with it. Commits are made in the order of calls. */
export class DurableLog {
	writer: LogWriter;
	readonly #deps: Pick<DurableWorkDeps, "bus" | "clock" | "log">;
	readonly #closed: AbortSignal;
	#last: Promise<unknown> = Promise.resolve();

	constructor(writer: LogWriter, deps: Pick<DurableWorkDeps, "bus" | "clock" | "log">, closed: AbortSignal) {
		this.writer = writer;
		this.#deps = deps;
		this.#closed = closed;
	}

	/** Commits records with their writes, or rejects. */
	change(records: readonly string[], writes: readonly Write[]): Promise<void> {
		return this.#inOrder(async () => void (await this.writer.appendWith(records, writes)));
	}

	/** The same, and ends the log when they are the last. A commit that fails is tried again until the daemon stops. */
	save(records: readonly string[], writes: readonly Write[], isLast: boolean): Promise<void> {
		return this.#inOrder(async () => {
			for (;;) {
				try {
					return void (await (isLast ? this.writer.seal(records, writes) : this.writer.appendWith(records, writes)));
				} catch (cause) {
					await this.#afterFailure(cause);
				}
			}
		});
	}

	/** Throws the cause when trying again is of no use. */
	async #afterFailure(cause: unknown): Promise<void> {
		const { bus, clock, log } = this.#deps;
		const id = this.writer.log;
		if (cause instanceof Refused || bus.fenced.aborted || this.#closed.aborted) throw cause;
		log.error({ err: cause, log: id, againMs: COMMIT_AGAIN_MS }, "a change could not be saved yet; trying again");
		await sleep(clock, COMMIT_AGAIN_MS, this.#closed, "due");
		if (this.#closed.aborted) throw cause;
		this.writer = await bus.reopen(id).catch(() => this.writer);
	}

	#inOrder<T>(work: () => Promise<T>): Promise<T> {
		const done = this.#last.then(work);
		this.#last = done.catch(() => {});
		return done;
	}
}

const HOUR_MS = 3_600_000;

/** The error for an id that is not stored: retention removed it, as the time in the id shows, or it never existed. */
export function gone(noun: string, id: string, keptMs: number, now: number): NexusError {
	if ((timeOfId(id) ?? Infinity) > now - keptMs) return new NexusError("not_found", `there is no ${noun} ${id}`);
	return new NexusError("expired", `a ${noun} is kept for ${keptMs / HOUR_MS} hours; ${id} is older`);
}

export const stopping = (): NexusError =>
	new NexusError("unavailable", "the daemon is stopping", { reason: "STOPPING" });

/** The error of work that has ended, as its record has it, or as far as its end alone tells. */
export function recordedError(
	error: { code: string; message: string; reason?: string } | undefined,
	usual: ErrorCode,
	message: string,
): NexusError {
	const code = error && isErrorCode(error.code) ? error.code : usual;
	return new NexusError(code, error?.message ?? message, { reason: error?.reason as Reason | undefined });
}
