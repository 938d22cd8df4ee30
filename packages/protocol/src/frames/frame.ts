/** Frames: the envelope that every streamed answer travels in (PROTOCOL §1). What the Bus stores and the edges send. */

/** The content type of a stream. An open set: a reader shows the types it knows and keeps the others. */
export type Modality = "text" | "reasoning" | "tool" | "card" | "carousel" | "image" | "audio" | "data" | (string & {});

/** Why a stream ended. */
export type EndReason = "completed" | "aborted" | "error" | "timeout" | "crashed";

/** Tokens of a model call; -1 = the model did not say. */
export interface Usage {
	input: number;
	output: number;
	[extra: string]: number;
}

/** Tokens of one agent's calls of one model. */
export interface UsageShare {
	agent?: string;
	model?: string;
	usage: Usage;
}

/** "Show me once that chunk of that stream has been shown." */
export interface Align {
	message_id: string;
	seq_no: number;
}

export interface BeginFrame {
	type: "stream.begin";
	message_id: string;
	run_id: string;
	trace_id: string;
	correlation_group: string;
	modality: Modality;
	content_type: string;
	expected_chunks?: number;
	session?: string;
	/** The run that was cut off and that this one continues. */
	continues?: string;
	target?: unknown;
	/** Which agent it comes from, in a run of several. */
	agent?: string;
	/** False: shown in the inspector, but not in chats. Default: true. */
	visible?: boolean;
	/** Milliseconds since the epoch. */
	ts: number;
}

export interface ChunkFrame {
	type: "stream.chunk";
	message_id: string;
	/** 1, 2, 3 … without a hole. */
	seq_no: number;
	/** Text, JSON text or base64: the content type says which. */
	payload: string;
	/** True: part of a value that continues (a token). False: this chunk completes a value (a card). */
	is_partial: boolean;
	content_type?: string;
	align?: Align;
	ts: number;
}

/** The error message. */
export interface EndError {
	code: string;
	message: string;
	/** More exactly than the code, of a model call without a session and of what the daemon's stop ended: a name of the runtime contract's reason codes. */
	reason?: string;
}

export interface EndFrame {
	type: "stream.end";
	message_id: string;
	total_chunks: number;
	/** `crc32:<8 hex>` over the UTF-8 bytes of the payloads in seq order. */
	checksum: string;
	/** No further stream opens in this run. */
	final: boolean;
	reason: EndReason;
	error?: EndError;
	usage?: Usage;
	/** On the final end: how the usage divides among agents and models, where that is known. */
	usage_by?: UsageShare[];
	/** Text streams only: the model that wrote the text, and the session's phase at its end. */
	model?: string;
	phase?: string;
	/** Recovery wrote this end, not the run. */
	synthetic?: boolean;
	ts: number;
}

export type Frame = BeginFrame | ChunkFrame | EndFrame;

const KIB = 1024;

/** How large a chunk of each modality may be (P1.18), in UTF-8 bytes of its payload, each with its reason. A longer value becomes several chunks; Infinity = it is never cut. */
export const CHUNK_BYTES = {
	/** Tokens are far smaller. A page of text at once still fits one render and one commit. */
	text: 16 * KIB,
	/** As text. */
	reasoning: 16 * KIB,
	/** Half a status says nothing: readers take each chunk as one. `toolJsonCharsMax` bounds what it holds. */
	tool: Number.POSITIVE_INFINITY,
	/** Half a card cannot be drawn, so only what no reader should have to take in one piece is cut. */
	card: 64 * KIB,
	carousel: 64 * KIB,
	/** 48 KiB decoded: few chunks per picture, and text on the same connection does not wait long for one. */
	image: 64 * KIB,
	/** 12 KiB decoded, under a second of ordinary speech: playing can begin with the first. */
	audio: 16 * KIB,
	/** Nothing is known of what it is for; also for modalities that this version does not know. */
	data: 64 * KIB,
} as const satisfies Record<string, number>;

export const chunkBytesOf = (modality: Modality): number =>
	Object.hasOwn(CHUNK_BYTES, modality) ? CHUNK_BYTES[modality as keyof typeof CHUNK_BYTES] : CHUNK_BYTES.data;
