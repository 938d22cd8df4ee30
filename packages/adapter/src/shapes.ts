/** Validation of an adapter's lines where the daemon reads them, so that later code can rely on every field. */

import { z } from "zod";
import { CHOICE_ID_CHARS_MAX, ID_CHARS, QUESTION_ID_CHARS_MAX } from "./question.ts";

/** By the line's type. */
export type Shapes = ReadonlyMap<string, z.ZodType<object>>;

export type CheckedLine =
	| { value: object }
	/** A known type with wrong fields, or no type at all. */
	| { fault: string }
	/** A type that is not known here: how the protocol grows. */
	| { unknown: string };

const NOTE_CHARS_MAX = 4096;
const STATE_KEY_CHARS_MAX = 256;
const STATE_CHARS_MAX = 64 * 1024;

const name = z.string().min(1);
const ifAny = z
	.string()
	.nullish()
	.transform((value) => value ?? undefined);
/** Id of a question or a choice. */
const questionId = (charsMax: number) => name.max(charsMax).regex(ID_CHARS, "only letters, digits, _ and -");
const position = z.int().nonnegative();
const milliseconds = z.number().nonnegative();
const error = z.string().default("the adapter gave no reason");
const named = { delivery: z.string().optional(), runId: z.string().optional(), offset: position.optional() };

const shapes = (lines: Record<string, z.core.$ZodLooseShape>): Shapes =>
	new Map(Object.entries(lines).map(([type, fields]) => [type, z.looseObject(fields)]));

const BOTH = {
	message_sent: {
		...named,
		messageId: name,
		final: z.boolean().default(true),
		nonce: name.optional(),
		from: position.optional(),
		to: position.optional(),
		chars: position.optional(),
		carry: z.string().optional(),
	},
	delivery_error: {
		...named,
		error,
		code: z.string().optional(),
		nonce: name.optional(),
		retryAfterMs: milliseconds.optional(),
	},
	rate_limited: { retryAfterMs: milliseconds },
	call: { ...named, call: z.string(), ms: milliseconds, ok: z.boolean(), detail: z.string().optional() },
};

export const STREAM_SHAPES = shapes({
	...BOTH,
	message_creating: { ...named, nonce: name, from: position, to: position.optional(), ordinal: z.int().positive() },
	message_created: { ...named, messageId: name, nonce: name.optional(), from: position.optional() },
	message_updated: { ...named, messageId: name, chars: position.default(0), to: position.optional() },
	message_removed: { ...named, messageId: name.optional(), nonce: name.optional() },
	// Too late to refuse it: without it the delivery has no end.
	delivery_complete: { ...named, messageIds: z.array(z.unknown()).catch([]) },
});

export const SEND_SHAPES = shapes({
	...BOTH,
	found: { nonce: name, known: z.boolean(), messageId: name.optional() },
});

export const MONITOR_SHAPES = shapes({
	message: {
		eventId: name,
		from: z.looseObject({ id: name, name: ifAny }),
		chat: z.looseObject({ id: name, type: z.enum(["direct", "group"]), name: ifAny }),
		text: z.string().default(""),
		attachments: z.array(z.looseObject({ name: z.string(), contentType: z.string(), data: z.string() })).optional(),
		mention: z.boolean().optional(),
		target: z.looseObject({ to: name, thread_id: ifAny }),
		ts: z.number().optional(),
	},
	choice: {
		eventId: name,
		id: questionId(QUESTION_ID_CHARS_MAX),
		choice: questionId(CHOICE_ID_CHARS_MAX),
		from: z.looseObject({ id: name, name: ifAny }),
		chat: z.looseObject({ id: name, type: z.enum(["direct", "group"]) }),
		messageId: name.optional(),
	},
	message_failed: { messageId: name, nonce: name.optional(), error },
	listening: { ok: z.boolean(), error: z.string().optional() },
	webhook_response: {
		id: name,
		status: z.int().min(200).max(599),
		headers: z.record(z.string(), z.string()).optional(),
		body: z.string().optional(),
	},
});

/** Lines of every verb, of adapters with the field `notes` (I11). */
export const KEEP_SHAPES = shapes({
	note: { id: name, text: name.max(NOTE_CHARS_MAX).regex(/^[^\r\n]+$/, "more than one line") },
	state: { id: name, key: name.max(STATE_KEY_CHARS_MAX), value: z.string().max(STATE_CHARS_MAX) },
});

export function checkLine(line: object, known: Shapes): CheckedLine {
	const { type } = line as { type?: unknown };
	if (typeof type !== "string") return { fault: "a line without a type" };
	const shape = known.get(type);
	if (!shape) return { unknown: type };
	const result = shape.safeParse(withoutNulls(line));
	if (result.success) return { value: result.data };
	const [issue] = result.error.issues;
	return { fault: `${type}: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}` };
}

/** Many languages write an absent field as null. */
const withoutNulls = (line: object): object =>
	Object.fromEntries(Object.entries(line).filter(([, value]) => value !== null));
