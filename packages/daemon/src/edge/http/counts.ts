/** How many of something each of several has open. */

import type { EventEmitter } from "node:events";

export function createCounts() {
	const counts = new Map<string, number>();
	const of = (key: string) => counts.get(key) ?? 0;
	return {
		of,
		/** Until `ended` closes; returns how many there are now. */
		add(key: string, ended: EventEmitter): number {
			counts.set(key, of(key) + 1);
			ended.once("close", () => {
				const left = of(key) - 1;
				if (left === 0) counts.delete(key);
				else counts.set(key, left);
			});
			return of(key);
		},
	};
}
