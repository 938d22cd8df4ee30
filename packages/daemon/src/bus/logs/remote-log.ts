/** A log that another daemon writes, as far as this one has seen it. Read once, however many follow it here. */

import type { Wake, WakeAll } from "../port.ts";
import type { Batch } from "../reading/batch.ts";
import type { Storage, StoredLog } from "../storage.ts";
import type { Growing } from "./live-log.ts";

/** Only a sealed log is ever removed. */
const REMOVED = 0;

export class RemoteLog implements Growing {
	readonly id: number;
	readonly name: string;
	readonly chain: string | undefined;
	head: number;
	sealedAt: number | undefined;
	successor: Growing | undefined;
	/** No reader waits for more of it: the next growth would replace what is at hand, and each reader would ask the store (ST22). */
	readonly newest = undefined;
	readonly wakes = new Set<Wake>();
	readers = 0;
	#latest: Batch | undefined;
	#refreshing: Promise<void> | undefined;
	#again = false;

	constructor({ id, log, chain, head, sealedAt }: StoredLog) {
		this.id = id;
		this.name = log;
		this.chain = chain;
		this.head = head;
		this.sealedAt = sealedAt;
	}

	recent(after: number): Batch | undefined {
		return this.#latest?.first === after + 1 ? this.#latest : undefined;
	}

	/** Looks what has become of it; wakes its readers when it grew or ended. */
	refresh(storage: Storage, wake: WakeAll): Promise<void> {
		this.#again = true;
		this.#refreshing ??= this.#look(storage, wake).finally(() => {
			this.#refreshing = undefined;
		});
		return this.#refreshing;
	}

	async #grow(storage: Storage, head: number, wake: WakeAll): Promise<void> {
		while (this.head < head) {
			// Readers get the failure when they ask for the records themselves.
			const batch = await Promise.resolve(storage.read(this.id, this.head + 1)).catch(() => undefined);
			this.#latest = batch?.after(this.head).upTo(head);
			this.head = this.#latest?.last ?? head;
			wake(this.wakes, this);
		}
	}

	async #look(storage: Storage, wake: WakeAll): Promise<void> {
		while (this.#again) {
			this.#again = false;
			const found = await storage.find(this.name);
			if (this.successor) return;
			if (found) await this.#grow(storage, found.head, wake);
			const sealedAt = found ? found.sealedAt : REMOVED;
			if (sealedAt === undefined || this.sealedAt !== undefined) continue;
			this.sealedAt = sealedAt;
			wake(this.wakes, this);
		}
	}
}
