/** Settles what a dead process or a failing store left: every such run log gets its ends and its failed turn, in one commit (I3, I5). */

import {
	type BeginFrame,
	type ChunkFrame,
	createVerifier,
	decodeFrame,
	decodeToolStatus,
	type Frame,
	injectedIn,
	isDamage,
	type Modality,
	NexusError,
	wordsOf,
} from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus, LogInfo } from "../bus/bus.ts";
import { type InboundEvent, type Ledger, type StoredMessage, type Turn, turnWrites } from "../ledger/ledger.ts";
import type { Reading, Write } from "../std/write.ts";
import { Framer } from "./frames/framer.ts";
import { settledWrites } from "./frames/recorder.ts";
import type { TextStream } from "./frames/streams.ts";
import { storedQuestion, Transcript } from "./frames/transcript.ts";
import { type BrokerLimits, keptOf } from "./limits.ts";
import type { Saved } from "./port.ts";
import type { RunMeta } from "./run/run-log.ts";
import { CRASHED, damagedEnding, type Ending } from "./settle/ending.ts";
import { settle } from "./settle/settlement.ts";

export interface RunRecoveryDeps {
	bus: Bus;
	ledger: Ledger;
	limits: BrokerLimits;
	clock: Clock;
	log: Log;
}

/** What commits beside the turn of a run that another process began: it may have to be read first. */
export type SettleOrphan = (turn: Turn) => Reading<readonly Write[]>;

/** One run that cannot be settled does not keep the others from it, nor the port closed: those are settled `later`. */
export async function settleOrphanedRuns(
	deps: RunRecoveryDeps,
	beside: SettleOrphan,
): Promise<{ turns: Turn[]; later: { log: string; session: string }[] }> {
	const turns: Turn[] = [];
	const later: { log: string; session: string }[] = [];
	const orphans = await deps.bus.list({ kind: "run", orphaned: true });
	for (const info of orphans.toReversed()) {
		try {
			turns.push(await settleOrphanedRun(deps, info, CRASHED, beside, "at once"));
			deps.log.info({ runId: info.log }, "settled a run that the last process left");
		} catch (cause) {
			deps.log.error({ runId: info.log, err: cause }, "a run of the last process could not be settled yet");
			later.push({ log: info.log, session: (info.meta as RunMeta).session });
		}
	}
	return { turns, later };
}

const RETRY_MS = 5_000;

/** Settles a run that the store gave up or the Ledger refused, as soon as that can be done. */
export async function settleWhenPossible(
	deps: RunRecoveryDeps,
	stopping: () => boolean,
	runId: string,
	ending: Ending,
	beside: SettleOrphan,
): Promise<Saved> {
	const { bus, ledger, log } = deps;
	return untilSettled(deps, stopping, runId, async () => {
		const info = await bus.describe(runId);
		const isOpen = info !== undefined && info.sealedAt === undefined;
		const turn = isOpen
			? await settleOrphanedRun(deps, info, ending, beside, "patiently")
			: await ledger.turns.get(runId);
		if (turn) log.info({ runId }, "settled a run that had been given up");
		else log.error({ runId }, "the log of a run that had been given up has ended, and there is no turn of it");
		return turn ?? "lost";
	});
}

/** Tries at intervals until the store takes it. Undefined when the daemon stops before. */
export async function untilSettled<T>(
	{ clock, log }: Pick<RunRecoveryDeps, "clock" | "log">,
	stopping: () => boolean,
	runId: string,
	settleIt: () => Promise<T>,
): Promise<T | undefined> {
	for (;;) {
		await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
		if (stopping()) return undefined;
		try {
			return await settleIt();
		} catch (cause) {
			log.error({ runId, err: cause, againMs: RETRY_MS }, "a run that was given up cannot be settled yet");
		}
	}
}

/** `patiently`: what the Ledger refuses is tried again, and in the end left out. */
async function settleOrphanedRun(
	deps: RunRecoveryDeps,
	info: LogInfo,
	why: Ending,
	beside: SettleOrphan,
	how: "at once" | "patiently",
): Promise<Turn> {
	const writer = await deps.bus.reopen(info.log);
	const known = await deps.ledger.turns.get(info.log);
	const { framer, transcript, damage, now } = await reread(deps, info);
	const ending = damage === undefined ? why : damagedEnding(why, damage);
	const records: string[] = [];
	if (!framer.finished) framer.end(ending, transcript.usage, now, (record) => records.push(record));
	if (known) {
		await writer.seal(records);
		return known;
	}
	const turn = transcript.turn(ending, now);
	const writes = [...(await beside(turn)), ...settledWrites(turn)];
	if (how === "patiently") return settle(deps, { writer, turn, records, beside: () => writes, onRefused() {} });
	await writer.seal(records, [turnWrites.settle(turn), ...writes]);
	return turn;
}

/** The run as its log tells it. */
async function reread(deps: RunRecoveryDeps, info: LogInfo) {
	const { ledger, limits, clock } = deps;
	const { session, engine, startedAt, events, continues } = info.meta as RunMeta;
	const framer = new Framer({ runId: info.log, session, continues, ...limits });
	const known = await Promise.all(events.map(async ({ eventId }) => ledger.inbox.get(eventId)));
	const transcript = new Transcript({
		runId: info.log,
		session,
		engine,
		startedAt,
		continues,
		...keptOf(limits),
		userMessages: known.flatMap(userMessagesIn),
	});
	const joined = await ledger.inbox.joined(session, info.log);
	const replay = transcriptReplay(transcript, new Map(joined.map((event) => [event.eventId, event])));
	// The clock may have been set back since; an answer does not end before its last token.
	let now = Math.max(clock.now(), startedAt);
	const damage = await readWhole(deps, info, (frame) => {
		framer.replay(frame);
		replay(frame);
		now = Math.max(now, frame.ts);
	});
	return { framer, transcript, damage, now };
}

/**
 * Hands over what is whole, and returns what is wrong with the rest. A stream is not taken further than its first hole: its end then counts
 * and sums up what came before, and nobody who verifies it takes the stream for whole.
 */
export async function readWhole(
	deps: Pick<RunRecoveryDeps, "bus" | "log">,
	info: LogInfo,
	take: (frame: Frame) => void,
): Promise<string | undefined> {
	const { bus, log } = deps;
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
		// Behind a damaged segment nothing can be read.
		if (!(cause instanceof NexusError) || cause.code !== "data_loss") throw cause;
		found(cause.message);
	} finally {
		cursor.close();
	}
	return damage;
}

const userMessagesIn = (event: InboundEvent | undefined): StoredMessage[] =>
	event === undefined ? [] : [storedQuestion(event)];

/** Data of the run itself: nothing of it is kept. */
const COMPACTION: ReadonlySet<string> = new Set(['{"compaction":"start"}', '{"compaction":"end"}']);

/** Frames → the transcript that their events made, but for what frames do not carry: signed reasoning and what tools answered in parts. */
function transcriptReplay(transcript: Transcript, joined: ReadonlyMap<string, InboundEvent>): (frame: Frame) => void {
	const streams = new Map<string, ReplayedStream>();
	/** The newest message of each agent, and of all. */
	const newest = new Map<string | undefined, TextStream>();
	let last: TextStream | undefined;
	const begin = ({ message_id: messageId, modality, content_type: contentType, agent, visible = true }: BeginFrame) => {
		if (modality === "text") {
			last = { messageId, agent, visible };
			newest.set(agent, last);
		}
		const message = newest.get(agent) ?? last;
		if (message) streams.set(messageId, { modality, contentType, payload: "", message });
	};
	/** Only what is on record as this run's: an engine may yield any data. */
	const rejoin = ({ message_id: place, payload }: ChunkFrame): boolean => {
		const messages = (injectedIn(payload) ?? []).flatMap((eventId) => userMessagesIn(joined.get(eventId)));
		transcript.join(messages, place);
		return messages.length > 0;
	};
	return (frame) => {
		if (frame.type === "stream.end") return;
		if (frame.type === "stream.begin") return begin(frame);
		const stream = streams.get(frame.message_id);
		if (stream && !rejoin(frame)) replayChunk(transcript, stream, frame);
	};
}

interface ReplayedStream {
	modality: Modality;
	contentType: string;
	payload: string;
	message: TextStream;
}

function replayChunk(transcript: Transcript, stream: ReplayedStream, frame: ChunkFrame): void {
	const { message, modality, contentType } = stream;
	switch (modality) {
		case "text":
			transcript.say(frame.payload, message, frame.ts);
			return;
		case "reasoning":
			transcript.reason(frame.payload, message);
			return;
		case "tool": {
			const status = decodeToolStatus(frame.payload);
			if (status) transcript.tool({ ...status, callId: status.toolCallId, name: status.toolName }, message, frame.ts);
			return;
		}
		default: {
			if (COMPACTION.has(frame.payload)) return;
			const payload = stream.payload + frame.payload;
			stream.payload = frame.is_partial ? payload : "";
			if (!frame.is_partial)
				transcript.part({ modality, contentType: frame.content_type ?? contentType, payload }, message);
		}
	}
}
