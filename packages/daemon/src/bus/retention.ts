/** Removes finished logs, in small steps, so that appends go on in between. Which are old, and how much there is, the store says. */

import type { Retention } from "./port.ts";
import type { Kinds, Storage, StoredLog } from "./storage.ts";

export interface Retainer {
	retain(rules: Retention): Promise<number>;
	/** Removes all finished logs that count for one. */
	removeOf(countedFor: string): Promise<number>;
	/** Resolves when removals under way have ended or failed. */
	settled(): Promise<void>;
}

export interface RetainerParts {
	storage: Storage;
	/** The store's time. */
	now(): number;
	closed(): boolean;
	/** Nothing of the log can be read any more. */
	removed(id: number): void;
}

export function createRetainer(parts: RetainerParts): Retainer {
	let retaining: Promise<number> | undefined;
	return {
		retain(rules) {
			retaining ??= retain(parts, rules).finally(() => {
				retaining = undefined;
			});
			return retaining;
		},
		removeOf: (countedFor) => retainByAge(parts, EVERY_AGE, { countedFor }),
		// The caller of that removal gets its failure.
		settled: async () => void (await retaining?.catch(() => {})),
	};
}

/** Also what was sealed at this very moment. */
const EVERY_AGE = -1;

async function removeStored({ storage, closed, removed }: RetainerParts, { id }: StoredLog): Promise<void> {
	let gone = await storage.removeSome(id);
	removed(id);
	while (!gone && !closed()) {
		await nextTurn();
		if (!closed()) gone = await storage.removeSome(id);
	}
	await nextTurn();
}

async function retain(parts: RetainerParts, rules: Retention): Promise<number> {
	const { storage, closed } = parts;
	const { ageMsMax = Infinity, totalBytesMax = Infinity, kinds = {} } = rules;
	const others = { except: Object.keys(kinds) };
	let removed = 0;
	for (const [only, rule] of Object.entries(kinds)) removed += await retainByAge(parts, rule.ageMsMax, { only });
	removed += await retainByAge(parts, ageMsMax, others);
	if (totalBytesMax === Infinity || closed()) return removed;
	for (let total = await storage.totalBytes(); total > totalBytesMax; removed++) {
		const oldest = closed() ? undefined : await storage.oldestSealed({ except: [] });
		if (!oldest) break;
		const first = await firstLink(storage, oldest);
		await removeStored(parts, first);
		total -= first.bytes;
	}
	return removed;
}

async function retainByAge(parts: RetainerParts, ageMsMax: number, kinds: Kinds): Promise<number> {
	const { storage, closed, now } = parts;
	for (let removed = 0; ; removed++) {
		const oldest = closed() || ageMsMax === Infinity ? undefined : await storage.oldestSealed(kinds);
		if (!oldest || now() - oldest.sealedAt! <= ageMsMax) return removed;
		await removeStored(parts, await firstLink(storage, oldest));
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

const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
