/** The end of a process, for runs and model calls alike: stops what is live, and ends the logs that a dead process or a failing store left open. */

import {
	createVerifier,
	decodeFrame,
	type Frame,
	isDamage,
	type LogKind,
	NexusError,
	wordsOf,
} from "@nexus-stream/protocol";
import { type Clock, within } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import { type Bus, type LogInfo, type LogWriter, orphans } from "../bus/bus.ts";
import { damagedEnding, type Ending } from "./ending.ts";
import type { BrokerLimits } from "./port.ts";

export interface RecoveryDeps {
	bus: Bus;
	clock: Clock;
	log: Log;
}

/** How long the last commit may take once everything has ended. */
const SEAL_MS_MAX = 5000;

/** Waits for live runs or calls to end, and stops those that are left at the deadline. `waited` is called in between. */
export async function drainAll(
	{ clock, log, limits }: Omit<RecoveryDeps, "bus"> & { limits: Pick<BrokerLimits, "abortGraceMs"> },
	what: "runs" | "model calls",
	live: ReadonlyMap<string, { result: Promise<unknown>; shutDown(): void }>,
	deadlineMs: number,
	waited: () => void = () => {},
): Promise<void> {
	const ended = () => Promise.allSettled([...live.values()].map(({ result }) => result));
	const isDone = await within(clock, deadlineMs, ended());
	waited();
	if (isDone) return;
	log.info({ live: live.size }, `stopping the remaining ${what}`);
	for (const one of live.values()) one.shutDown();
	if (await within(clock, limits.abortGraceMs + SEAL_MS_MAX, ended())) return;
	log.error({ live: [...live.keys()] }, `${what} did not end; recovery ends them at the next start`);
}

/**
 * A log that cannot be settled neither blocks the others nor the start of the daemon: it is returned in `later`. Logs in `waiting` were
 * returned before, and are tried again already.
 */
export async function settleOrphans<T>(
	{ bus, log }: RecoveryDeps,
	kind: LogKind,
	waiting: ReadonlySet<string>,
	settle: (info: LogInfo) => Promise<T>,
): Promise<{ settled: T[]; later: LogInfo[] }> {
	const settled: T[] = [];
	const later: LogInfo[] = [];
	await orphans.each(bus, kind, async (info) => {
		const runId = info.log;
		if (waiting.has(runId)) return;
		try {
			settled.push(await settle(info));
			log.info({ runId, kind }, "settled a log that a dead daemon left open");
		} catch (cause) {
			if (bus.isShared && orphans.isTakenByAnother(cause)) return;
			log.error({ runId, kind, err: cause }, "a log of a dead daemon could not be settled yet");
			later.push(info);
		}
	});
	return { settled, later };
}

const RETRY_MS = 5_000;

/** Retries until the store takes it; `settle` gets no log when it has ended meanwhile. Undefined when the daemon stops before. */
export async function untilSettled<T>(
	{ bus, clock, log }: RecoveryDeps,
	stopping: () => boolean,
	runId: string,
	settle: (info: LogInfo | undefined) => Promise<T>,
): Promise<T | undefined> {
	for (;;) {
		await sleep(clock, RETRY_MS);
		if (stopping()) return undefined;
		try {
			const info = await bus.describe(runId);
			const settled = await settle(info?.sealedAt === undefined ? info : undefined);
			log.info({ runId }, "settled a log that the store had refused");
			return settled;
		} catch (cause) {
			log.error({ runId, err: cause, againMs: RETRY_MS }, "a log that the store refused cannot be settled yet");
		}
	}
}

/** A log of a dead process, reopened and read. */
export interface Orphan {
	writer: LogWriter;
	/** The time of its end: the system clock may have been set back, and no answer ends before its last token. */
	now: number;
	damage: string | undefined;
}

export async function reopenOrphan(
	deps: RecoveryDeps,
	info: LogInfo,
	startedAt: number,
	take: (frame: Frame) => void,
): Promise<Orphan> {
	const writer = await deps.bus.reopen(info.log);
	let now = Math.max(deps.clock.now(), startedAt);
	const damage = await readWhole(deps, info, (frame) => {
		take(frame);
		now = Math.max(now, frame.ts);
	});
	return { writer, now, damage };
}

export const endingOf = ({ damage }: Orphan, why: Ending): Ending =>
	damage === undefined ? why : damagedEnding(why, damage);

/**
 * Passes on every intact frame, and returns the first damage. A stream is read up to its first hole: its end then has the count and checksum
 * of that part, so that no verifier takes the damaged stream for whole.
 */
async function readWhole(
	{ bus, log }: RecoveryDeps,
	info: LogInfo,
	take: (frame: Frame) => void,
): Promise<string | undefined> {
	const verifier = createVerifier({ complete: false });
	const torn = new Set<string>();
	let damage = info.damaged;
	const found = (what: string) => {
		log.error({ runId: info.log, damage: what }, "the log of a run is damaged");
		damage ??= what;
	};
	const takeRecord = (record: string) => {
		const frame = decodeFrame(record);
		const violation = verifier.push(frame);
		if (isDamage(violation)) {
			found(`${violation.message} (${violation.rule})`);
			torn.add(frame.message_id);
		}
		if (frame.type !== "stream.chunk" || !torn.has(frame.message_id)) take(frame);
	};
	const cursor = await bus.cursor({ log: info.log }, 0);
	try {
		for (let batch = await cursor.next(); batch; batch = await cursor.next()) {
			for (const record of batch.records) {
				try {
					takeRecord(record);
				} catch (cause) {
					found(wordsOf(cause));
				}
			}
		}
	} catch (cause) {
		// Records behind a damaged segment cannot be read.
		if (!(cause instanceof NexusError) || cause.code !== "data_loss") throw cause;
		found(cause.message);
	} finally {
		cursor.close();
	}
	return damage;
}
