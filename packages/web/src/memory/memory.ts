/** The memory page as a value: what agents have noted, and where it comes from. */

import type { MemoryJson } from "@nexus-stream/protocol";
import { ageText } from "../app/words.ts";

export interface MemoryView {
	readonly phase: "loading" | "ready" | "failed";
	/** Why what is shown may be old. */
	readonly failure?: string;
	/** Words that are looked for; empty = the newest. */
	readonly query: string;
	readonly items: readonly MemoryJson[];
	/** Agents may note and recall; until the daemon has said, nobody is told otherwise. */
	readonly enabled: boolean;
	/** What is being forgotten. */
	readonly forgetting?: string;
	readonly notice?: string;
}

export const NEW_MEMORY: MemoryView = { phase: "loading", query: "", items: [], enabled: true };

/** Whose memory it is, in words. */
export function bankWords(bank: string): string {
	const [kind = "", ...rest] = bank.split(":");
	const name = rest.join(":");
	return kind === "agent" ? `Agent ${name}` : kind === "person" ? `Person ${name}` : bank;
}

export function provenanceWords({ provenance }: MemoryJson, now: number): string {
	const { agent, sender, channel, at } = provenance;
	const by = agent === undefined ? "" : ` by ${agent}`;
	const from = sender === undefined ? "" : `, said by ${sender}${channel === undefined ? "" : ` on ${channel}`}`;
	return `${ageText(at, now)}${by}${from}`;
}
