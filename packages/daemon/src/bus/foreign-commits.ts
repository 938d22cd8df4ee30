/** The commits of other nodes: the store reads each of them once, and it wakes the readers of what it changed here and no others. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Directory } from "./logs/directory.ts";
import type { RemoteLog } from "./logs/remote-log.ts";
import type { WakeAll } from "./port.ts";
import type { ChangedTopics, Following, LogChanges, Storage } from "./storage.ts";

export interface FollowLimits {
	/** How often commits of other daemons are looked for, in case that no notification came. */
	lookMs: number;
}

export interface ForeignCommitsParts {
	storage: Storage;
	directory: Directory;
	limits: FollowLimits;
	clock: Clock;
	log: Log;
	readonly wake: WakeAll;
	/** Other nodes have changed what the topics are about. */
	onNotify(topics: ChangedTopics): void;
}

export class ForeignCommits {
	readonly #parts: ForeignCommitsParts;
	#following: Following | undefined;
	#isLooking = false;
	#cancelLook: (() => void) | undefined;
	#closed = false;

	constructor(parts: ForeignCommitsParts) {
		this.#parts = parts;
	}

	/** Follows all nodes but this one from now on. What is followed already is looked up: it may have changed before. */
	start(node: number): void {
		const { storage, directory, onNotify } = this.#parts;
		if (this.#following || this.#closed) return;
		const onChange = (changes: LogChanges) => this.#change(changes);
		this.#following = storage.follow(node, { wanted: directory.remote, onChange, onNotify });
		this.#lookUp();
		this.#lookLater();
	}

	#lookLater(): void {
		const { clock, limits } = this.#parts;
		this.#cancelLook = clock.after(limits.lookMs, () => {
			if (!this.#isLooking) void this.#look();
			this.#lookLater();
		});
	}

	async #look(): Promise<void> {
		this.#isLooking = true;
		try {
			await this.#following!.look();
		} catch (cause) {
			this.#parts.log.warn({ err: cause }, "the commits of other daemons cannot be read");
		}
		this.#isLooking = false;
	}

	#change({ missed, created, grown, sealed }: LogChanges): void {
		if (this.#closed) return;
		const { directory, wake } = this.#parts;
		if (missed) this.#lookUp();
		for (const { id, batch } of grown) {
			const log = directory.remote.get(id);
			const has = log?.grow(batch);
			if (has === "more") wake(log!.wakes, log);
			else if (has === "gap") this.refresh(log!);
		}
		for (const { id, head, at } of sealed) {
			const log = directory.remote.get(id);
			if (!log) continue;
			if (log.seal(head, at)) wake(log.wakes, log);
			else this.refresh(log);
		}
		for (const { chain } of created) wake(directory.chainWatchers(chain));
	}

	/** It is not known what changed: every followed log is asked for once, and so is every chain that this daemon does not write. */
	#lookUp(): void {
		const { directory, wake } = this.#parts;
		for (const log of directory.remote.values()) this.refresh(log);
		wake(directory.idleWatchers());
	}

	/** Looks up a log of another daemon. */
	refresh(log: RemoteLog): void {
		if (this.#closed) return;
		const { storage, wake, log: logger } = this.#parts;
		log
			.refresh(storage, wake)
			.catch((cause: unknown) => logger.warn({ err: cause }, "a log of another daemon cannot be read"));
	}

	close(): void {
		this.#closed = true;
		this.#cancelLook?.();
		this.#following?.stop();
	}
}
