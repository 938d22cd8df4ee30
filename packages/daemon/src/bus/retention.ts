/** Removes finished logs, in small steps, so that appends go on in between. Which are old, and how much there is, the store says. */

import { setImmediate } from "node:timers/promises";
import type { Retention } from "./port.ts";
import type { Kinds, Storage, StoredLog } from "./storage.ts";

interface RetainerParts {
	storage: Storage;
	/** The store's time. */
	now(): number;
	closed(): boolean;
	/** Nothing of the log can be read any more. */
	removed(id: number): void;
}

/** Also what was sealed at this very moment. */
const EVERY_AGE = -1;

export class Retainer {
	readonly #parts: RetainerParts;
	#retaining: Promise<number> | undefined;

	constructor(parts: RetainerParts) {
		this.#parts = parts;
	}

	retain(rules: Retention): Promise<number> {
		this.#retaining ??= this.#retain(rules).finally(() => {
			this.#retaining = undefined;
		});
		return this.#retaining;
	}

	/** Removes all finished logs that count for one. */
	removeOf(countedFor: string): Promise<number> {
		return this.#byAge(EVERY_AGE, { countedFor });
	}

	/** Resolves when a `retain` under way has ended or failed: its caller gets the failure. */
	async settled(): Promise<void> {
		await this.#retaining?.catch(() => {});
	}

	async #retain({ ageMsMax = Infinity, totalBytesMax = Infinity, kinds = {} }: Retention): Promise<number> {
		const { storage, closed } = this.#parts;
		let removed = 0;
		for (const [only, rule] of Object.entries(kinds)) removed += await this.#byAge(rule.ageMsMax, { only });
		removed += await this.#byAge(ageMsMax, { except: Object.keys(kinds) });
		if (totalBytesMax === Infinity || closed()) return removed;
		for (let total = await storage.totalBytes(); total > totalBytesMax; removed++) {
			const oldest = closed() ? undefined : await storage.oldestSealed({ except: [] });
			if (!oldest) break;
			total -= await this.#remove(oldest);
		}
		return removed;
	}

	async #byAge(ageMsMax: number, kinds: Kinds): Promise<number> {
		const { storage, closed, now } = this.#parts;
		for (let removed = 0; ; removed++) {
			const oldest = closed() || ageMsMax === Infinity ? undefined : await storage.oldestSealed(kinds);
			if (!oldest || now() - oldest.sealedAt! <= ageMsMax) return removed;
			await this.#remove(oldest);
		}
	}

	/** Removes the log, or the first link of its chain; returns how many bytes that had. */
	async #remove(stored: StoredLog): Promise<number> {
		const { storage, closed, removed } = this.#parts;
		const { id, bytes } = await firstLink(storage, stored);
		let gone = await storage.removeSome(id);
		removed(id);
		while (!gone && !closed()) {
			await setImmediate();
			if (!closed()) gone = await storage.removeSome(id);
		}
		await setImmediate();
		return bytes;
	}
}

/** A chain loses links from its beginning only, whatever the clock said when they were sealed. */
async function firstLink(storage: Storage, stored: StoredLog): Promise<StoredLog> {
	const { chain, base } = stored;
	if (chain === undefined) return stored;
	const start = (await storage.chain(chain))?.start ?? 0;
	const first = await storage.link(chain, start);
	return first && first.base < base ? first : stored;
}
