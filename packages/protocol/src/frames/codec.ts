/** Frames as text and back: the one place that knows how a frame is spelled on a wire or in a record (PROTOCOL §1). */

import { NexusError } from "../error.ts";
import type { BeginFrame, ChunkFrame, EndFrame, EndReason, Frame } from "./frame.ts";

export type FrameType = Frame["type"];

/** One line of JSON: `type` first, then `message_id`, then the fields in the order of PROTOCOL §1. Absent fields are left out. */
export function encodeFrame(frame: Frame): string {
	switch (frame.type) {
		case "stream.begin":
			return encodeBegin(frame);
		case "stream.chunk":
			return encodeChunk(frame);
		case "stream.end":
			return encodeEnd(frame);
		default:
			return frame satisfies never;
	}
}

const encodeBegin = (frame: BeginFrame): string =>
	JSON.stringify({
		type: frame.type,
		message_id: frame.message_id,
		run_id: frame.run_id,
		trace_id: frame.trace_id,
		correlation_group: frame.correlation_group,
		modality: frame.modality,
		content_type: frame.content_type,
		expected_chunks: frame.expected_chunks,
		session: frame.session,
		continues: frame.continues,
		target: frame.target,
		agent: frame.agent,
		visible: frame.visible,
		ts: frame.ts,
	});

const encodeChunk = (frame: ChunkFrame): string =>
	JSON.stringify({
		type: frame.type,
		message_id: frame.message_id,
		seq_no: frame.seq_no,
		payload: frame.payload,
		is_partial: frame.is_partial,
		content_type: frame.content_type,
		align: frame.align && { message_id: frame.align.message_id, seq_no: frame.align.seq_no },
		ts: frame.ts,
	});

const encodeEnd = (frame: EndFrame): string =>
	JSON.stringify({
		type: frame.type,
		message_id: frame.message_id,
		total_chunks: frame.total_chunks,
		checksum: frame.checksum,
		final: frame.final,
		reason: frame.reason,
		error: frame.error && { code: frame.error.code, message: frame.error.message, reason: frame.error.reason },
		usage: frame.usage,
		usage_by: frame.usage_by,
		model: frame.model,
		phase: frame.phase,
		synthetic: frame.synthetic,
		ts: frame.ts,
	});

/** Text that JSON writes as it is: most tokens. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** The hot path: the text of one stream's plain partial chunks. Byte for byte what `encodeFrame` gives. */
export function chunkEncoder(messageId: string): (seqNo: number, payload: string, ts: number) => string {
	const head = chunkHead(messageId);
	return (seqNo, payload, ts) =>
		PLAIN.test(payload)
			? `${head}${seqNo},"payload":"${payload}"${endAt(ts)}`
			: `${head}${seqNo},"payload":${JSON.stringify(payload)}${endAt(ts)}`;
}

/** NaN until the first millisecond is known: 0 would be a valid time. */
const end = { ts: Number.NaN, text: "" };

/** The same for all chunks of a millisecond: in a busy one every stream has a token. */
function endAt(ts: number): string {
	if (ts !== end.ts) {
		end.ts = ts;
		end.text = `,"is_partial":true,"ts":${ts}}`;
	}
	return end.text;
}

const chunkHead = (messageId: string): string =>
	`{"type":"stream.chunk","message_id":${JSON.stringify(messageId)},"seq_no":`;

const BEFORE_PAYLOAD = ',"payload":"';
const AFTER_PAYLOAD = '","is_partial":true,"ts":';

/**
 * The way back: the payload of chunk `seqNo` (any, when left out) in the record in `text` from `at` to `end`; undefined when the record has
 * to be parsed to know it.
 */
export function chunkDecoder(
	messageId: string,
): (text: string, at: number, end: number, seqNo?: number) => string | undefined {
	const head = chunkHead(messageId);
	return (text, at, end, seqNo) => {
		if (!text.startsWith(head, at) || text[end - 1] !== "}") return undefined;
		let digits = at + head.length;
		while (isDigit(text.charCodeAt(digits))) digits++;
		if (!text.startsWith(BEFORE_PAYLOAD, digits)) return undefined;
		if (seqNo !== undefined && Number(text.slice(at + head.length, digits)) !== seqNo) return undefined;
		const from = digits + BEFORE_PAYLOAD.length;
		const to = text.indexOf('"', from);
		if (!text.startsWith(AFTER_PAYLOAD, to)) return undefined;
		const payload = text.slice(from, to);
		return payload.includes("\\") ? undefined : payload;
	};
}

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/** Reads the type from the fixed beginning of a record without parsing it; undefined when the record is not a frame. */
export function frameTypeOf(text: string, at = 0): FrameType | undefined {
	if (text.startsWith('{"type":"stream.chunk"', at)) return "stream.chunk";
	if (text.startsWith('{"type":"stream.begin"', at)) return "stream.begin";
	if (text.startsWith('{"type":"stream.end"', at)) return "stream.end";
	return undefined;
}

/** Whether a record is a further piece of a text, by its spelling alone: the quotes of a payload are escaped. */
export const continuesText = (record: string): boolean =>
	record.startsWith('{"type":"stream.chunk"') &&
	record.includes('"is_partial":true,"') &&
	!record.includes('"seq_no":1,"');

/** Parses and checks one frame. Throws `invalid` with what is wrong; fields it does not know are kept. */
export function decodeFrame(text: string): Frame {
	let value: unknown;
	try {
		value = JSON.parse(text);
	} catch (cause) {
		throw new NexusError("invalid", `frame is not JSON: ${(cause as Error).message}`, { cause });
	}
	if (!isRecord(value)) throw new NexusError("invalid", "frame is not a JSON object");
	const checks = CHECKS.get(value.type);
	if (checks === undefined) {
		throw new NexusError("invalid", "frame: type must be stream.begin, stream.chunk or stream.end");
	}
	for (const [field, [check, expected, optional]] of checks) {
		const present = Object.hasOwn(value, field);
		if (present ? !check(value[field]) : !optional) {
			throw new NexusError(
				"invalid",
				`${String(value.type)}: ${field} must be ${expected}${present ? "" : ", but is missing"}`,
			);
		}
	}
	return value as unknown as Frame;
}

type Check = readonly [check: (value: unknown) => boolean, expected: string, optional?: boolean];

const isRecord = (value: unknown): value is Record<string, unknown> =>
	typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): boolean => typeof value === "string";
const isName = (value: unknown): boolean => typeof value === "string" && value !== "";
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isPosition = (value: unknown): boolean => isCount(value) && value !== 0;
const isFlag = (value: unknown): boolean => typeof value === "boolean";
const isAlign = (value: unknown): boolean => isRecord(value) && isName(value.message_id) && isPosition(value.seq_no);
const isError = (value: unknown): boolean =>
	isRecord(value) && isText(value.code) && isText(value.message) && isNameOrNone(value.reason);
const isUsage = (value: unknown): boolean =>
	isRecord(value) &&
	typeof value.input === "number" &&
	typeof value.output === "number" &&
	Object.values(value).every((count) => typeof count === "number");
const isShares = (value: unknown): boolean =>
	Array.isArray(value) &&
	value.every(
		(share) => isRecord(share) && isUsage(share.usage) && isNameOrNone(share.agent) && isNameOrNone(share.model),
	);
const isNameOrNone = (value: unknown): boolean => value === undefined || isName(value);
const isChecksum = (value: unknown): boolean => typeof value === "string" && /^crc32:[0-9a-f]{8}$/.test(value);

const END_REASONS = {
	completed: true,
	aborted: true,
	error: true,
	timeout: true,
	crashed: true,
} satisfies Record<EndReason, true>;
const isReason = (value: unknown): boolean => typeof value === "string" && Object.hasOwn(END_REASONS, value);

const name: Check = [isName, "a text that is not empty"];
const time: Check = [(value) => typeof value === "number", "a number (milliseconds since the epoch)"];
const optional = ([check, expected]: Check): Check => [check, expected, true];

const FIELDS: Record<FrameType, Record<string, Check>> = {
	"stream.begin": {
		message_id: name,
		run_id: name,
		trace_id: name,
		correlation_group: name,
		modality: name,
		content_type: name,
		expected_chunks: [isCount, "a whole number from 0 on", true],
		session: optional(name),
		agent: optional(name),
		visible: [isFlag, "true or false", true],
		continues: optional(name),
		ts: time,
	},
	"stream.chunk": {
		message_id: name,
		seq_no: [isPosition, "a whole number from 1 on"],
		payload: [isText, "a text"],
		is_partial: [isFlag, "true or false"],
		content_type: optional(name),
		align: [isAlign, "{message_id, seq_no}", true],
		ts: time,
	},
	"stream.end": {
		message_id: name,
		total_chunks: [isCount, "a whole number from 0 on"],
		checksum: [isChecksum, '"crc32:" and 8 lower-case hex digits'],
		final: [isFlag, "true or false"],
		reason: [isReason, `one of ${Object.keys(END_REASONS).join(", ")}`],
		error: [isError, "{code, message, reason?}", true],
		usage: [isUsage, "{input, output} and further counts, all numbers", true],
		usage_by: [isShares, "a list of {agent?, model?, usage}", true],
		model: optional(name),
		phase: optional(name),
		synthetic: [isFlag, "true or false", true],
		ts: time,
	},
};

const CHECKS = new Map<unknown, [field: string, check: Check][]>(
	Object.entries(FIELDS).map(([type, fields]) => [type, Object.entries(fields)]),
);
