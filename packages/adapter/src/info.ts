/** The verbs `info` and `health`, and validation of an adapter's `info`, so that later code can rely on it. */

import { z } from "zod";

/** How a platform counts the length of a message. */
export const UNITS = ["utf16", "codepoint", "grapheme", "utf8", "sms"] as const;
export type LengthUnit = (typeof UNITS)[number];

const VERBS = ["monitor", "send", "stream", "health"] as const;
/** The verbs, and the further lines that an adapter may understand. */
export const SUPPORTED = [...VERBS, "typing", "parts", "reasoning", "attachments", "webhook", "ask"] as const;

export const FIELDS = ["runId", "offset", "intent", "pieces", "notes"] as const;
export type AdapterField = (typeof FIELDS)[number];

/** The output of `<command> info`: one JSON object. */
export interface AdapterInfo {
	/** The channel's name: discord, telegram … */
	channel: string;
	version: string;
	/** 1. */
	protocol: number;
	/** The verbs it has. `typing`, `parts`, `reasoning`, `webhook` and `ask` are further lines that it understands. */
	supports: readonly (typeof SUPPORTED)[number][];
	/**
	 * The fields it speaks beyond the basic ones. With `runId` one process serves many deliveries at once; with `intent` it asks before it
	 * creates a message and waits for the ack; with `offset` it reports source positions; with `pieces` it continues a `send` line of
	 * which a part is sent; with `notes` (which needs `runId`) the daemon keeps what its accounts have to remember. Without `runId` it gets one delivery at a time.
	 */
	fields?: readonly AdapterField[];
	limits: {
		textMax: number;
		unit: LengthUnit;
		attachmentBytesMax?: number;
		/** Buttons of one question, and characters on each (UTF-16 units). */
		choicesMax?: number;
		labelCharsMax?: number;
	};
	/** Undefined = the platform shows no typing. `text`: it also shows what is being done. `beside`: also while a message grows. */
	typing?: { intervalMs: number; expiryMs: number; text?: boolean; beside?: boolean };
	/** `whole`: one message per answer (mail). Otherwise blocks when it does not stream. */
	delivery?: "blocks" | "whole";
	/** Defaults of the block pipeline for this channel. */
	blocks?: { minChars?: number; maxChars?: number; idleMs?: number; humanDelayMs?: { min: number; max: number } };
	/** How a send with an unknown outcome can be looked up. */
	reconcile?: "nonce" | "history" | "none";
	/** Names of what every POST to its webhook carries as its proof; one without it is refused before its body is read. */
	webhook?: { requiredHeaders?: readonly string[]; requiredQuery?: readonly string[] };
	/** Anybody can write to it, so unknown senders have to be paired. */
	public?: boolean;
	/** The settings of an account; `nexus adapter add` asks for these. */
	settings: readonly AdapterSetting[];
}

export interface AdapterSetting {
	name: string;
	secret: boolean;
	/** Wherever it applies. */
	required: boolean;
	prompt: string;
	default?: string;
	/** A regular expression that a value has to match. */
	pattern?: string;
	/** It applies only when another setting, named before it, has this value; without `is`: any but none. */
	when?: { name: string; is?: string };
}

/** `<command> health`: one JSON object; exit code 0 when ok. */
export interface HealthReport {
	ok: boolean;
	/** For a person: who we are on the platform, or what is wrong and what to do. */
	detail: string;
}

const wait = z.number().nonnegative();
/** A shorter interval would keep a platform busy with nothing else. */
const interval = z.number().min(10);
const names = z.array(z.string());
const setting = z.looseObject({
	name: z.string().min(1),
	prompt: z.string().default(""),
	default: z.string().optional(),
	pattern: z.string().refine(isPattern, "not a regular expression").optional(),
	when: z.looseObject({ name: z.string(), is: z.string().optional() }).optional(),
});

function isPattern(text: string): boolean {
	try {
		new RegExp(text, "u").test("");
		return true;
	} catch {
		return false;
	}
}

const shape = z.looseObject({
	channel: z.string().min(1),
	version: z.string().default("?"),
	protocol: z.literal(1).default(1),
	supports: names,
	fields: names.default([]),
	limits: z.looseObject({
		textMax: z.int().positive(),
		unit: z.enum(UNITS).default("utf16"),
		attachmentBytesMax: z.int().positive().optional(),
		choicesMax: z.int().positive().optional(),
		labelCharsMax: z.int().positive().optional(),
	}),
	typing: z
		.looseObject({
			intervalMs: interval,
			expiryMs: interval,
			text: z.boolean().optional(),
			beside: z.boolean().optional(),
		})
		.optional(),
	delivery: z.enum(["blocks", "whole"]).optional(),
	blocks: z
		.looseObject({
			minChars: z.int().nonnegative().optional(),
			maxChars: z.int().positive().optional(),
			idleMs: wait.optional(),
			humanDelayMs: z.looseObject({ min: wait, max: wait }).optional(),
		})
		.optional(),
	reconcile: z.enum(["nonce", "history", "none"]).optional(),
	webhook: z.looseObject({ requiredHeaders: names.optional(), requiredQuery: names.optional() }).optional(),
	public: z.boolean().optional(),
	settings: z.array(setting).default([]),
});

/** Fills in defaults, or returns the problems. Unknown list entries are allowed (newer adapters). */
export function readInfo(value: unknown): { info: AdapterInfo } | { faults: string[] } {
	// Many languages write an absent field as null.
	const given = Object.fromEntries(Object.entries(value ?? {}).filter(([, each]) => each !== null));
	const result = shape.safeParse(given);
	if (result.success) return { info: result.data as unknown as AdapterInfo };
	return { faults: result.error.issues.map(({ path, message }) => `"${path.join(".")}": ${message}`) };
}

/** Does the setting apply to the others? A webhook's secret is useless without a webhook. */
export function appliesTo(
	{ when }: AdapterSetting,
	all: readonly AdapterSetting[],
	settings: Readonly<Record<string, string>>,
): boolean {
	if (when === undefined) return true;
	const value = settings[when.name] ?? all.find(({ name }) => name === when.name)?.default ?? "";
	return when.is === undefined ? value !== "" : value === when.is;
}
