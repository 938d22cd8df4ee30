/** Validation of an adapter's `info`, so that later code can rely on it. */

import { z } from "zod";
import type { AdapterInfo, AdapterSetting } from "./port.ts";

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
		unit: z.enum(["utf16", "codepoint", "grapheme", "utf8", "sms"]).default("utf16"),
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
