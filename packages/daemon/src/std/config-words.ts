/** The words of the configuration's schema, each with what is allowed there. Not the library itself: handed over whole, it could not be bundled without its unused parts. */

import { z } from "zod";

export const say = <T extends z.ZodType>(schema: T, allowed: string) => schema.exactOptional().meta({ allowed });

export const ms = say(z.int().positive(), "a whole number of milliseconds above 0");
export const watchdog = say(
	z.custom<number>(
		(value) => value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && (value as number) > 0),
	),
	"a whole number of milliseconds above 0, or .inf to switch it off",
);
export const count = say(z.int().positive(), "a whole number above 0");
export const flag = say(z.boolean(), "true or false");
/** @public Engines get it with the other words. */
export const amount = say(z.number().positive(), "a number above 0");
/** @public Engines get it with the other words. */
export const countOrNone = say(z.int().min(0), "a whole number, or 0 for none");
/** @public Engines get it with the other words. */
export const msOrNone = say(z.int().min(0), "a whole number of milliseconds, or 0 for none");
export const bytes = say(z.int().positive(), "a whole number of bytes above 0");
export const text = (allowed: string) => say(z.string().min(1), allowed);
export const matching = (pattern: RegExp, allowed: string) => say(z.string().regex(pattern), allowed);
/** @public Engines get it with the other words. */
export const httpUrl = (allowed: string) => say(z.url({ protocol: /^https?$/ }), allowed);
export const oneOf = <const T extends readonly [string, ...string[]]>(words: T) => say(z.enum(words), words.join(", "));

/** A group of keys; a message lists them. */
export const group = <T extends z.core.$ZodLooseShape>(shape: T) =>
	say(z.strictObject(shape), `a map with the keys ${Object.keys(shape).join(", ")}`);

export const NAME_ALLOWED = "letters, digits and . _ : @ + - beginning with a letter or digit, 128 at most";

/** By names of the user's own choice. */
export const byName = <T extends z.ZodType>(value: T, allowed: string) =>
	say(z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/), value), allowed);

/** @public Engines get it with the other words. */
export const mapOf = <T extends z.ZodType>(value: T, allowed: string) =>
	say(z.record(z.string().min(1), value), allowed);
/** @public Engines get it with the other words. */
export const texts = (allowed: string) => say(z.array(z.string()), allowed);
/** @public Engines get it with the other words. */
export const either = <const T extends readonly [z.ZodType, z.ZodType, ...z.ZodType[]]>(options: T, allowed: string) =>
	say(z.union(options), allowed);

/** Names of tools; a `*` at the end stands for any rest, and one elsewhere would stand for nothing. */
export const toolGlob = z.string().regex(/^(?:[A-Za-z0-9_-]{1,64}\*?|\*)$/);

/** By names of tools. @public Engines get it with the other words. */
export const byTool = <T extends z.ZodType>(value: T, allowed: string) => say(z.record(toolGlob, value), allowed);

/** @public Engines get it with the other words. */
export const oneOfOrModule = <const T extends readonly [string, ...string[]]>(words: T, example: string) =>
	say(
		z.union([z.enum(words), z.strictObject({ module: z.string().min(1) })]),
		`${words.join(", ")}, or { module: ${example} }`,
	);

/** The same word where it may not be left out. @public Engines get it with the other words. */
export const needed = <T extends z.ZodType>(word: z.ZodExactOptional<T>): T =>
	word.unwrap().meta({ allowed: word.meta()?.allowed });
