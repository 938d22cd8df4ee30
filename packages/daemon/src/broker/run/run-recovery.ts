/** Settles the runs that a dead process or a failing store left: each log gets its ends and its failed turn in one commit (I3, I5). */

import {
	type BeginFrame,
	type ChunkFrame,
	decodeToolStatus,
	type Frame,
	injectedIn,
	type Modality,
} from "@nexus-stream/protocol";
import type { LogInfo } from "../../bus/bus.ts";
import type { InboundEvent } from "../../ledger/inbox/port.ts";
import { type StoredMessage, type Turn, turnWrites } from "../../ledger/turns/port.ts";
import { CRASHED, type Ending, settle } from "../ending.ts";
import { Framer } from "../frames/framer.ts";
import { settledWrites } from "../frames/recorder.ts";
import type { TextStream } from "../frames/streams.ts";
import { Transcript } from "../frames/transcript.ts";
import { keptOf, type Saved, type SettleOrphan } from "../port.ts";
import { endingOf, type RecoveryDeps, reopenOrphan, settleOrphans, untilSettled } from "../recovery.ts";
import { type RunDeps, type RunMeta, storedQuestion } from "./run-parts.ts";

type RunRecoveryDeps = RecoveryDeps & Pick<RunDeps, "ledger" | "limits" | "stopping">;

/** Settles what the last process left. Runs that cannot be settled yet are returned as `later`. */
export async function settleOrphanedRuns(
	deps: RunRecoveryDeps,
	waiting: ReadonlySet<string>,
	settleWith: SettleOrphan,
): Promise<{ turns: Turn[]; later: { log: string; session: string }[] }> {
	const { settled, later } = await settleOrphans(deps, "run", waiting, (info) =>
		settleOrphanedRun(deps, info, CRASHED, settleWith, "at once"),
	);
	return { turns: settled, later: later.map(({ log, meta }) => ({ log, session: (meta as RunMeta).session })) };
}

/** Settles a run that the store gave up or the Ledger refused, as soon as that can be done. */
export function settleWhenPossible(
	deps: RunRecoveryDeps,
	runId: string,
	ending: Ending,
	settleWith: SettleOrphan,
): Promise<Saved> {
	const { ledger, log, stopping } = deps;
	return untilSettled(deps, stopping, runId, async (info) => {
		const turn = info
			? await settleOrphanedRun(deps, info, ending, settleWith, "patiently")
			: await ledger.turns.get(runId);
		if (!turn) log.error({ runId }, "the log of a run has ended, but the run has no turn");
		return turn ?? "lost";
	});
}

/** `patiently`: writes that the Ledger refuses are retried, and left out in the end. */
async function settleOrphanedRun(
	deps: RunRecoveryDeps,
	info: LogInfo,
	why: Ending,
	settleWith: SettleOrphan,
	how: "at once" | "patiently",
): Promise<Turn> {
	const { session, continues, startedAt } = info.meta as RunMeta;
	const transcript = await transcriptOf(deps, info);
	const joined = await deps.ledger.inbox.joined(session, info.log);
	const replay = transcriptReplay(transcript, new Map(joined.map((event) => [event.eventId, event])));
	const framer = new Framer({ runId: info.log, session, continues, ...deps.limits });
	const orphan = await reopenOrphan(deps, info, startedAt, (frame) => {
		framer.streams.replay(frame);
		replay(frame);
	});
	const { writer, now } = orphan;
	const ending = endingOf(orphan, why);
	const records = framer.lastRecords(ending, transcript.usage, now);
	const stored = await deps.ledger.turns.get(info.log);
	if (stored) {
		await writer.seal(records);
		return stored;
	}
	const turn = transcript.turn(ending, now);
	const writes = [...(await settleWith(turn)), ...settledWrites(turn)];
	if (how === "patiently") return settle(deps, { writer, turn, records, settleWith: () => writes, onRefused() {} });
	await writer.seal(records, [turnWrites.settle(turn), ...writes]);
	return turn;
}

/** An empty transcript with the user messages of the run. */
async function transcriptOf({ ledger, limits }: RunRecoveryDeps, info: LogInfo): Promise<Transcript> {
	const { events, ...meta } = info.meta as RunMeta;
	const inbound = await Promise.all(events.map(async ({ eventId }) => ledger.inbox.get(eventId)));
	return new Transcript({ runId: info.log, ...meta, ...keptOf(limits), userMessages: inbound.flatMap(userMessagesIn) });
}

const userMessagesIn = (event: InboundEvent | undefined): StoredMessage[] =>
	event === undefined ? [] : [storedQuestion(event)];

/** Data of the run itself, which no turn keeps. */
const COMPACTION: ReadonlySet<string> = new Set(['{"compaction":"start"}', '{"compaction":"end"}']);

/** Rebuilds the transcript from frames. Frames carry neither signed reasoning nor the content parts of tool results. */
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
	/** Only events stored as part of this run join it: an engine may yield any data. */
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
