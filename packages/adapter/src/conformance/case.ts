/** A case of the adapter suite, and the texts that the cases send. */

import type { AdapterField, AdapterInfo } from "../port.ts";
import type { Rig } from "./rig.ts";

type Need = AdapterInfo["supports"][number] | AdapterField;

export interface Case {
	name: string;
	/** Verbs and fields that the adapter needs for it. */
	needs?: Need | readonly Need[];
	run(rig: Rig): Promise<void>;
}

export const WORDS = "The quick brown fox jumps over the lazy dog. ";
export const NONCE_CHARS_MAX = 25;

export const repeated = (text: string, length: number): string =>
	text.repeat(Math.ceil(length / text.length)).slice(0, length);
