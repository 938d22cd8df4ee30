/** A log that another daemon writes, as far as this one has seen it. Read once, however many follow it here. */

import type { Wake, WakeAll } from "../port.ts";
import { Batch } from "../reading/batch.ts";
import type { Storage, StoredLog } from "../storage.ts";
import type { Growing } from "./live-log.ts";

/** Only a sealed log is ever removed. */
const REMOVED = 0;

/** Characters of the newest records that are kept for readers; those who are further behind ask the store. */
const KEPT_CHARS_MAX = 64 * 1024;

export class RemoteLog implements Growing {
	readonly id: number;
	readonly name: string;
	head: number;
	sealedAt: number | undefined;
	successor: Growing | undefined;
	readonly wakes = new Set<Wake>();
	readers = 0;
	/** Neighbouring batches up to the head. */
	#kept: Batch[] = [];
	#keptChars = 0;
	/** The last answer for readers that are a little behind, and ask together. */
	#asked: Batch | undefined;
	#refreshing: Promise<void> | undefined;
	#again = false;

	constructor({ id, log, head, sealedAt }: StoredLog) {
		this.id = id;
		this.name = log;
		this.head = head;
		this.sealedAt = sealedAt;
	}

	get newest(): Batch | undefined {
		return this.#kept.at(-1);
	}

	recent(after: number): Batch | undefined {
		const { newest } = this;
		if (newest?.first === after + 1) return newest;
		if (this.#asked?.first !== after + 1 || this.#asked.last !== this.head) this.#asked = this.#keptAfter(after);
		return this.#asked;
	}

	#keptAfter(after: number): Batch | undefined {
		const from = this.#kept.findLastIndex(({ first }) => first <= after + 1);
		if (from < 0 || after >= this.head) return undefined;
		const [oldest, ...later] = this.#kept.slice(from);
		const texts = [oldest!.after(after), ...later].map(({ text }) => text);
		return new Batch(after + 1, this.head - after, texts.join("\n"));
	}

	/** Takes new records. With a gap before them it takes nothing: the log has to be looked up. */
	grow(batch: Batch): "more" | "gap" | undefined {
		if (batch.last <= this.head) return undefined;
		if (batch.first > this.head + 1) return "gap";
		this.#keep(batch.after(this.head));
		return "more";
	}

	/** Takes its end; false when records before it are missing here. */
	seal(head: number, at: number): boolean {
		if (this.head < head) return false;
		this.sealedAt ??= at;
		return true;
	}

	#keep(batch: Batch): void {
		this.head = batch.last;
		this.#kept.push(batch);
		this.#keptChars += batch.text.length;
		while (this.#keptChars > KEPT_CHARS_MAX && this.#kept.length > 1)
			this.#keptChars -= this.#kept.shift()!.text.length;
	}

	/** Looks up the log; wakes its readers when it grew or ended. */
	refresh(storage: Storage, wake: WakeAll): Promise<void> {
		this.#again = true;
		this.#refreshing ??= this.#look(storage, wake).finally(() => {
			this.#refreshing = undefined;
		});
		return this.#refreshing;
	}

	async #look(storage: Storage, wake: WakeAll): Promise<void> {
		while (this.#again) {
			this.#again = false;
			const found = await storage.find(this.name);
			if (found) await this.#growTo(found.head, storage, wake);
			if (this.successor) return;
			const sealedAt = found ? found.sealedAt : REMOVED;
			if (sealedAt === undefined || this.sealedAt !== undefined) continue;
			this.sealedAt = sealedAt;
			wake(this.wakes, this);
		}
	}

	async #growTo(head: number, storage: Storage, wake: WakeAll): Promise<void> {
		while (this.head < head && !this.successor) {
			const batch = await Promise.resolve(storage.read(this.id, this.head + 1)).catch(() => undefined);
			// The commits that are followed may have brought the records meanwhile.
			if (this.head >= head) return;
			if (!batch || this.grow(batch) === "gap") this.#skipTo(head);
			wake(this.wakes, this);
		}
	}

	/** Records cannot be read: readers get the failure when they ask for them themselves. */
	#skipTo(head: number): void {
		this.#kept = [];
		this.#keptChars = 0;
		this.head = head;
	}
}
