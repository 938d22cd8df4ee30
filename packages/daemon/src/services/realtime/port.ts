/** Realtime sessions: conversations in turns, by voice or text. Each has its own log of inputs and answers. */

import type { Reason } from "@nexus-stream/protocol";
import type { Cursor } from "../../bus/bus.ts";
import type { Principal } from "../kit/principal.ts";

export interface OpenRealtime {
	appId: string;
	/** Label of the session that the turns belong to; empty: a separate session. */
	session: string;
	/** The connector that transcribes audio; without it only text can be appended. */
	transcription?: { connectorId: string; model?: string };
	/** The connector that speaks the answers; without it they are text alone. */
	speech?: { connectorId: string; model?: string; voice?: string; mimeType?: string };
	/** Type of the audio that will be appended. */
	inputMimeType: string;
}

export interface RealtimeInfo {
	id: string;
	session: string;
	idleClosesAt: number;
}

export interface RealtimeInput {
	text: string;
	audio: Uint8Array;
	/** The input is whole: answer it. */
	commit: boolean;
	/** The same id is taken once; empty: it has none. */
	inputId: string;
}

export interface RealtimeTaken {
	/** Buffered so far. */
	audioBytes: number;
	/** Event id of the message that a commit created. */
	eventId?: string;
}

/** A record of a realtime log. */
export type RealtimeEvent = { at: number } & (
	| { type: "opened" }
	| { type: "transcribed"; text: string }
	| { type: "text"; runId: string; text: string }
	/** In base64. */
	| { type: "audio"; runId: string; audio: string; mimeType: string }
	/** Ends one answer, as the two below it do. */
	| { type: "completed"; runId: string; usage?: { input: number; output: number } }
	| { type: "interrupted"; runId: string; usage?: { input: number; output: number } }
	/** Without a run it is the session that ended. */
	| { type: "failed"; runId?: string; usage?: { input: number; output: number }; reason: Reason; message: string }
);

export interface Realtime {
	open(request: OpenRealtime, principal: Principal): Promise<RealtimeInfo>;
	append(id: string, input: RealtimeInput, principal: Principal): Promise<RealtimeTaken>;
	/** `after` undefined: from now on. The log of a closed session can be read as long as it is kept. */
	cursor(id: string, after: number | undefined, principal: Principal): Promise<Cursor>;
	/** Ends the session and its log. Closing a closed one changes nothing. */
	close(id: string, principal: Principal): Promise<void>;
	/** Closes the sessions that a dead daemon left: what was spoken and not committed went with it. */
	recover(): Promise<number>;
	readonly live: number;
	/** Closes all of them: the daemon stops. */
	stop(): Promise<void>;
}

export const REALTIME_LIMITS = {
	sessionsMax: 256,
	sessionsPerAppMax: 32,
	/** Without input and without an answer under way, a session closes after this. */
	idleMs: 10 * 60_000,
	/** Audio of one input, until it is committed. */
	audioBytesMax: 16 * 1024 * 1024,
	/** Audio of all sessions' inputs together. */
	audioBytesTotalMax: 128 * 1024 * 1024,
	textCharsMax: 100_000,
	/** Calls of one session that may wait for one another. */
	appendsMax: 64,
	/** Ids of inputs that are remembered. */
	inputIdsMax: 1000,
	/** A session whose log has grown to this is closed. */
	logBytesMax: 256 * 1024 * 1024,
	transcribeMs: 90_000,
	/** Time to speak one sentence. */
	speakMs: 45_000,
	/** Sentences that may wait to be spoken before the answer's text waits, too. */
	sentencesMax: 64,
};

export type RealtimeLimits = typeof REALTIME_LIMITS;
