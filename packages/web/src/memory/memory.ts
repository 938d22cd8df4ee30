/** The memory page as a value: what agents have noted, and where it comes from. */

import type { MemoryItem } from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import { msOf } from "../app/runtime.ts";
import { ageText } from "../app/words.ts";

export interface MemoryView {
	readonly phase: "loading" | "ready" | "failed";
	/** Why what is shown may be old. */
	readonly failure?: string;
	/** Words that are looked for; empty = the newest. */
	readonly query: string;
	readonly items: readonly MemoryItem[];
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

export function provenanceWords({ agent, sender, channel, createdAt }: MemoryItem, now: number): string {
	const by = agent === "" ? "" : ` by ${agent}`;
	const from = sender === "" ? "" : `, said by ${sender}${channel === "" ? "" : ` on ${channel}`}`;
	return `${ageText(msOf(createdAt) ?? now, now)}${by}${from}`;
}
