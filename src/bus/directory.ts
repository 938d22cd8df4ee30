/** Which logs and chains there are: the live ones in memory, the sealed ones in the store. */

import type { Readable } from "./cursor.ts";
import type { LiveLog, Wake } from "./live-log.ts";
import type { LogInfo, LogQuery } from "./port.ts";
import type { Storage, StoredLog } from "./storage.ts";

interface Chain {
	live: LiveLog | undefined;
	watchers: Set<Wake>;
}

export class Directory {
	readonly #storage: Storage;
	readonly #live = new Map<string, LiveLog>();
	/** Chains that are written or watched now. */
	readonly #chains = new Map<string, Chain>();

	constructor(storage: Storage) {
		this.#storage = storage;
	}

	get size(): number {
		return this.#live.size;
	}

	live(): Iterable<LiveLog> {
		return this.#live.values();
	}

	get(name: string): LiveLog | undefined {
		return this.#live.get(name);
	}

	exists(name: string): boolean {
		return this.#live.has(name) || this.#storage.find(name) !== undefined;
	}

	liveLink(chain: string): LiveLog | undefined {
		return this.#chains.get(chain)?.live;
	}

	admit(log: LiveLog): void {
		this.#live.set(log.spec.log, log);
		if (log.spec.chain !== undefined) this.#chain(log.spec.chain).live = log;
	}

	dismiss(log: LiveLog): void {
		this.#live.delete(log.spec.log);
		const chain = log.spec.chain === undefined ? undefined : this.#chains.get(log.spec.chain);
		if (!chain) return;
		if (chain.live === log) chain.live = undefined;
		if (chain.watchers.size === 0) this.#chains.delete(log.spec.chain!);
	}

	#chain(name: string): Chain {
		let chain = this.#chains.get(name);
		if (!chain) {
			chain = { live: undefined, watchers: new Set() };
			this.#chains.set(name, chain);
		}
		return chain;
	}

	/** Calls back when the chain grows; returns how to stop it. */
	watchChain(name: string, wake: Wake): () => void {
		const chain = this.#chain(name);
		chain.watchers.add(wake);
		return () => {
			chain.watchers.delete(wake);
			if (chain.watchers.size === 0 && !chain.live) this.#chains.delete(name);
		};
	}

	/** Who follows the log as a link of its chain. */
	chainWatchers(log: LiveLog): ReadonlySet<Wake> | undefined {
		return log.spec.chain === undefined ? undefined : this.#chains.get(log.spec.chain)?.watchers;
	}

	*allWatchers(): Generator<Wake> {
		for (const log of this.#live.values()) yield* log.wakes;
		for (const chain of this.#chains.values()) yield* chain.watchers;
	}

	/** A log as readers see it: one whose creation is not committed does not exist yet. */
	readable(name: string): Readable | undefined {
		const live = this.#live.get(name);
		if (live && !live.creation) return { id: live.id, name, live, head: live.head };
		const stored = this.#storage.find(name);
		return stored && { id: stored.id, name, head: stored.head };
	}

	/** The link that holds or will hold the record after a chain offset; when that was removed, the first one behind it. */
	link(chain: string, after: number): { readable: Readable; base: number } | undefined {
		const live = this.#chains.get(chain)?.live;
		const visible = live && !live.creation ? live : undefined;
		const stored = visible && after >= visible.base ? undefined : this.#storage.link(chain, after);
		if (stored) return { readable: { id: stored.id, name: stored.log, head: stored.head }, base: stored.base };
		return (
			visible && {
				readable: { id: visible.id, name: visible.spec.log, live: visible, head: visible.head },
				base: visible.base,
			}
		);
	}

	/** Chain offsets in (start, head] can be read. */
	chainEnds(chain: string): { start: number; head: number } | undefined {
		const live = this.#chains.get(chain)?.live;
		const stored = this.#storage.chain(chain);
		if (!live || live.creation) return stored;
		return { start: stored?.start ?? 0, head: live.base + live.head };
	}

	describe(name: string): LogInfo | undefined {
		const live = this.#live.get(name);
		if (live && !live.creation) return live.info();
		const stored = this.#storage.find(name);
		return stored && infoOf(stored);
	}

	list(query: LogQuery): LogInfo[] {
		// Recovery asks for the live ones at every start; they are here, the store would search all logs ever kept.
		if ((query.live || query.left) && query.before === undefined) {
			return [...this.#live.values()]
				.filter((log) => !log.creation && (query.kind === undefined || log.spec.kind === query.kind))
				.filter((log) => query.chain === undefined || log.spec.chain === query.chain)
				.sort((a, b) => b.id - a.id)
				.slice(0, query.limit ?? Infinity)
				.map((log) => log.info());
		}
		return this.#storage.list(query).map((stored) => this.#live.get(stored.log)?.info() ?? infoOf(stored));
	}
}

function infoOf(stored: StoredLog): LogInfo {
	const { id: _, ...info } = stored;
	return info;
}
