/** Logs with something to commit, those that have waited longest first, each once. A set would make two objects for every token. */

import type { LiveLog } from "../logs/live-log.ts";

export class CommitQueue {
	#logs: LiveLog[] = [];

	get size(): number {
		return this.#logs.length;
	}

	[Symbol.iterator](): Iterator<LiveLog> {
		return this.#logs.values();
	}

	add(log: LiveLog): void {
		if (log.queued) return;
		log.queued = true;
		this.#logs.push(log);
	}

	/** Takes one after the other as long as there is room. */
	take(hasRoom: () => boolean, take: (log: LiveLog) => void): void {
		const logs = this.#logs;
		let taken = 0;
		for (; taken < logs.length && hasRoom(); taken++) {
			logs[taken]!.queued = false;
			take(logs[taken]!);
		}
		this.#logs = logs.slice(taken);
	}

	/** Keeps those of which this is true. None may be added meanwhile. */
	keep(isKept: (log: LiveLog) => boolean): void {
		this.#logs = this.#logs.filter((log) => {
			log.queued = isKept(log);
			return log.queued;
		});
	}
}
