/** Topics: who listens to them in this daemon, and the notifications of commits to the other nodes, one at a time. */

import type { Log } from "@nexus-stream/protocol/log";
import type { Wake, WakeAll } from "./port.ts";
import type { ChangedTopics, Storage } from "./storage.ts";

export interface NotificationsParts {
	storage: Storage;
	log: Log;
	readonly wake: WakeAll;
	/** This daemon's number in the store. */
	node(): number;
	/** Other daemons use the store, too. */
	readonly isShared: boolean;
}

export class Notifications {
	readonly #parts: NotificationsParts;
	readonly #listeners = new Map<string, Set<Wake>>();
	/** The last commit, whether the others were notified of it or not. */
	#last = 0;
	/** Topics of the next notification; undefined when none is due. */
	#due: Set<string> | undefined;
	#isSending = false;

	constructor(parts: NotificationsParts) {
		this.#parts = parts;
	}

	/** Calls back when the topic changes, and now and then without a change; returns how to stop it. */
	listen(topic: string, listener: Wake): () => void {
		const listeners = this.#listeners.get(topic) ?? new Set();
		this.#listeners.set(topic, listeners.add(listener));
		return () => {
			listeners.delete(listener);
			if (listeners.size === 0 && this.#listeners.get(topic) === listeners) this.#listeners.delete(topic);
		};
	}

	/** Wakes the listeners in this daemon. */
	wake(topics: ChangedTopics): void {
		const { wake } = this.#parts;
		if (topics === "all") for (const listeners of this.#listeners.values()) wake(listeners);
		else for (const topic of topics) wake(this.#listeners.get(topic) ?? []);
	}

	/** A commit has landed. */
	committed(n: number, topics: ReadonlySet<string>): void {
		this.#last = n;
		this.changed(topics);
	}

	/** Wakes the listeners here at once, and those of the other nodes by the next notification. */
	changed(topics: ReadonlySet<string>): void {
		this.wake(topics);
		if (!this.#parts.isShared) return;
		this.#due ??= new Set();
		for (const topic of topics) this.#due.add(topic);
		this.#send();
	}

	/** The newest commit stands for those before it, so at most one notification waits behind the one under way. */
	#send(): void {
		if (this.#isSending || !this.#due) return;
		const topics = this.#due;
		this.#due = undefined;
		const { storage, node } = this.#parts;
		try {
			const answer = storage.notify({ node: node(), n: this.#last, topics });
			if (!(answer instanceof Promise)) return;
			this.#isSending = true;
			void answer.catch((cause: unknown) => this.#failed(cause)).then(() => this.#sent());
		} catch (cause) {
			this.#failed(cause);
		}
	}

	#sent(): void {
		this.#isSending = false;
		this.#send();
	}

	/** The others find out when they look for themselves. */
	#failed(cause: unknown): void {
		this.#parts.log.warn({ err: cause }, "the other daemons could not be notified of a commit");
	}
}
