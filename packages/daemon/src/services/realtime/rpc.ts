/** Talk in turns. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	type OpenRealtimeSessionRequest,
	type ReadRealtimeEventsResponseSchema,
	RealtimeEventType,
	type RuntimeRealtimeService,
} from "@nexus-stream/client/gen/nexus/runtime/v1/realtime_pb";
import { LOG_KINDS } from "@nexus-stream/protocol";
import { afterOf, logStream, principalOf } from "../../edge/rpc/rpc.ts";
import { reasonCodeOf, usageMessage } from "../kit/codec.ts";
import { appOf, type Principal } from "../kit/principal.ts";
import type { OpenRealtime, Realtime, RealtimeEvent } from "./port.ts";

export const realtimeMethods = ({
	realtime,
}: {
	realtime: Realtime;
}): Partial<ServiceImpl<typeof RuntimeRealtimeService>> => ({
	async openRealtimeSession(request, context) {
		const principal = principalOf(context);
		const { id, session, idleClosesAt } = await realtime.open(openingOf(request, principal), principal);
		return { realtimeSessionId: id, session, idleClosesAt: timestampFromMs(idleClosesAt) };
	},
	async appendRealtimeInput({ realtimeSessionId, text, audioChunk: audio, commit, inputId }, context) {
		const input = { text, audio, commit, inputId };
		const { audioBytes, eventId = "" } = await realtime.append(realtimeSessionId, input, principalOf(context));
		return { audioBytes: BigInt(audioBytes), eventId };
	},
	async *readRealtimeEvents({ realtimeSessionId, after }, context) {
		const cursor = await realtime.cursor(realtimeSessionId, afterOf(after), principalOf(context));
		yield* logStream(context, {
			cursor,
			closes: LOG_KINDS.realtime.closes,
			messages: ({ first, records }) => records.map((record, index) => messageOf(first + index, record)),
		});
	},
	async closeRealtimeSession({ realtimeSessionId }, context) {
		await realtime.close(realtimeSessionId, principalOf(context));
		return {};
	},
});

function openingOf(request: OpenRealtimeSessionRequest, principal: Principal): OpenRealtime {
	const { transcriptionConnectorId, transcriptionModelId, speechConnectorId, speechModelId } = request;
	return {
		appId: appOf(principal, request.appId),
		session: request.session,
		inputMimeType: request.inputMimeType || "audio/wav",
		transcription:
			transcriptionConnectorId === ""
				? undefined
				: { connectorId: transcriptionConnectorId, model: transcriptionModelId },
		speech:
			speechConnectorId === ""
				? undefined
				: {
						connectorId: speechConnectorId,
						model: speechModelId,
						voice: request.voice || undefined,
						mimeType: request.outputMimeType || undefined,
					},
	};
}

const TYPE_OF: Readonly<Record<RealtimeEvent["type"], RealtimeEventType>> = {
	opened: RealtimeEventType.OPENED,
	transcribed: RealtimeEventType.TRANSCRIBED,
	text: RealtimeEventType.TEXT_DELTA,
	audio: RealtimeEventType.AUDIO_CHUNK,
	completed: RealtimeEventType.COMPLETED,
	failed: RealtimeEventType.FAILED,
	interrupted: RealtimeEventType.INTERRUPTED,
};

type EventMessage = MessageInitShape<typeof ReadRealtimeEventsResponseSchema>;

function messageOf(sequence: number, record: string): EventMessage {
	const event = JSON.parse(record) as RealtimeEvent;
	return {
		sequence: BigInt(sequence),
		eventType: TYPE_OF[event.type],
		at: timestampFromMs(event.at),
		runId: "runId" in event ? event.runId : undefined,
		...fieldsOf(event),
	};
}

function fieldsOf(event: RealtimeEvent): EventMessage {
	switch (event.type) {
		case "opened":
			return {};
		case "transcribed":
			return { transcript: event.text };
		case "text":
			return { textDelta: event.text };
		case "audio":
			return { audioChunk: Buffer.from(event.audio, "base64"), mimeType: event.mimeType };
		case "completed":
		case "interrupted":
			return { usage: usageOf(event) };
		case "failed":
			return { usage: usageOf(event), reasonCode: reasonCodeOf(event.reason), reason: event.message };
		default:
			return event satisfies never;
	}
}

/** Every ended answer has it. */
const usageOf = ({ usage = { input: -1, output: -1 } }: { usage?: { input: number; output: number } }) =>
	usageMessage(usage);
