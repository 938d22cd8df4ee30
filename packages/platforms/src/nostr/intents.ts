/** Decisions about an event, stored before it is sent: after a crash another process makes the same event, with the same id. */

import { PlatformError, type Tools } from "@nexus-stream/adapter";
import { wordsOf } from "@nexus-stream/protocol";
import type { Intent } from "./events.ts";

export interface Intents {
	/** The intent of this nonce: an earlier one, or the one made now, which is durable when this resolves. */
	fix(nonce: string, make: () => Intent): Promise<Intent>;
}

const MEMORY_MAX = 1000;

export function openIntents({ notes }: Pick<Tools, "notes">): Intents {
	const memory = new Map<string, Intent>();
	const earlier = (nonce: string): Intent | undefined => memory.get(nonce) ?? findNote(notes?.all() ?? [], nonce);
	return {
		async fix(nonce, make) {
			const known = earlier(nonce);
			if (known) return known;
			const intent = make();
			try {
				await notes?.addLasting(JSON.stringify({ intent: nonce, ...intent }));
			} catch (cause) {
				throw new PlatformError("unavailable", `The message was not sent: ${wordsOf(cause)}`, { cause });
			}
			memory.set(nonce, intent);
			if (memory.size > MEMORY_MAX) memory.delete(memory.keys().next().value ?? "");
			return intent;
		},
	};
}

function findNote(lines: readonly string[], nonce: string): Intent | undefined {
	for (const line of lines) {
		if (!line.includes(nonce)) continue;
		try {
			const { intent, kind, created_at, tags, text } = JSON.parse(line) as Intent & { intent?: string };
			if (intent === nonce) return { kind, created_at, tags, text };
		} catch {
			// A power cut may leave half a line; then nothing left with it either.
		}
	}
	return undefined;
}
