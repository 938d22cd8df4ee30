/** Those who want to hear of changes. One that throws does not keep it from the others. */

import type { Log } from "@nexus-stream/protocol/log";

export interface Listeners<T> {
	/** Returns how to stop it. */
	add(listener: (value: T) => void): () => void;
	tell(value: T): void;
	readonly size: number;
}

export function listeners<T>(log: Log): Listeners<T> {
	const all = new Set<{ listener: (value: T) => void }>();
	return {
		add(listener) {
			const entry = { listener };
			all.add(entry);
			return () => void all.delete(entry);
		},
		tell(value) {
			for (const { listener } of all) {
				try {
					listener(value);
				} catch (cause) {
					log.error({ err: cause }, "a listener failed");
				}
			}
		},
		get size() {
			return all.size;
		},
	};
}
