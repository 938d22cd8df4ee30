/** A store that lives as long as its object: for tests, and for daemons that need no history. */

import { Things } from "../std/write.ts";
import { Batch } from "./batch.ts";
import type { LogQuery } from "./port.ts";
import type { Attempt, LogWrite, Storage, StoredLog } from "./storage.ts";

interface MemoryLog {
	log: StoredLog;
	segments: Batch[];
	/** Records since the last cut. */
	tail: string[];
}

export function memoryStorage(things = new Things()): Storage {
	const logs = new Map<number, MemoryLog>();
	const byName = new Map<string, MemoryLog>();
	const removedUpTo = new Map<string, number>();
	const linksOf = (chain: string) => [...logs.values()].filter((entry) => entry.log.chain === chain);

	const apply = (write: LogWrite) => {
		if (write.create) {
			const { spec, base, createdAt } = write.create;
			const entry = { log: { ...spec, id: write.id, base, createdAt, head: 0, bytes: 0 }, segments: [], tail: [] };
			logs.set(write.id, entry);
			byName.set(spec.log, entry);
		}
		const entry = logs.get(write.id)!;
		if (write.cut) {
			entry.segments.push(write.cut.batch);
			entry.tail = [];
			entry.log.bytes += write.cut.bytes;
			entry.log.head = write.cut.batch.last;
		} else if (write.batch) entry.tail.push(...write.batch.records);
		if (write.sealedAt !== undefined) entry.log.sealedAt = write.sealedAt;
	};

	return {
		open() {
			let totalBytes = 0;
			for (const { log } of logs.values()) totalBytes += log.bytes;
			const live = [...logs.values()]
				.filter((entry) => entry.log.sealedAt === undefined)
				.map(({ log, tail }) => ({
					log: { ...log },
					tail: tail.length > 0 ? Batch.of(log.head + 1, tail) : undefined,
				}));
			return { lastId: Math.max(0, ...logs.keys()), totalBytes, live };
		},
		commit(work) {
			const attempt: Attempt = (writes) => {
				try {
					for (const write of writes) things.apply(write, { node: 1, now: Date.now() });
					return undefined;
				} catch (cause) {
					return { cause };
				}
			};
			for (const write of work(attempt)) apply(write);
		},
		find: (name) => copy(byName.get(name)),
		segment: (id, offset) => logs.get(id)?.segments.findLast((segment) => segment.first <= offset),
		link: (chain, after) =>
			copy(linksOf(chain).find(({ log }) => log.sealedAt !== undefined && log.base + log.head > after)),
		chain(chain) {
			const removed = removedUpTo.get(chain);
			const start = removed ?? 0;
			const last = linksOf(chain).findLast(({ log }) => log.sealedAt !== undefined)?.log;
			if (!last) return removed === undefined ? undefined : { start, head: start };
			return { start, head: Math.max(start, last.base + last.head) };
		},
		list: (query) => select([...logs.values()], query, byName),
		oldestSealed: () =>
			copy(
				[...logs.values()]
					.filter((entry) => entry.log.sealedAt !== undefined)
					.sort((a, b) => a.log.sealedAt! - b.log.sealedAt! || a.log.id - b.log.id)[0],
			),
		removeSome(id) {
			const entry = logs.get(id);
			if (!entry) return true;
			const { chain, base, head } = entry.log;
			if (chain !== undefined) removedUpTo.set(chain, Math.max(removedUpTo.get(chain) ?? 0, base + head));
			byName.delete(entry.log.log);
			logs.delete(id);
			return true;
		},
		tidy: () => ({ more: false, lagging: new Set() }),
	};
}

const copy = (entry: MemoryLog | undefined): StoredLog | undefined => entry && { ...entry.log };

function select(entries: MemoryLog[], query: LogQuery, byName: Map<string, MemoryLog>): StoredLog[] {
	const before = query.before === undefined ? Infinity : (byName.get(query.before)?.log.id ?? 0);
	return entries
		.map((entry) => entry.log)
		.filter((log) => query.kind === undefined || log.kind === query.kind)
		.filter((log) => query.chain === undefined || log.chain === query.chain)
		.filter((log) => query.live === undefined || (log.sealedAt === undefined) === query.live)
		.filter((log) => log.id < before)
		.sort((a, b) => b.id - a.id)
		.slice(0, query.limit ?? Infinity)
		.map((log) => ({ ...log }));
}
