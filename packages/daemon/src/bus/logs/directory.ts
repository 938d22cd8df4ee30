/** Which logs and chains there are: those that this daemon writes in memory, all others in the store. */

import type { Query, Reading } from "../../std/write.ts";
import type { ChainInfo, LogInfo, LogQuery, Wake } from "../port.ts";
import type { Readable } from "../reading/cursor.ts";
import type { Storage, StoredLog } from "../storage.ts";
import type { LiveLog } from "./live-log.ts";
import { RemoteLog } from "./remote-log.ts";

interface Chain {
	live: LiveLog | undefined;
	watchers: Set<Wake>;
}

/** Maps an answer, at once when it is here. */
const whenRead = <T, U>(answer: Reading<T>, make: (value: T) => U): Reading<U> =>
	answer instanceof Promise ? answer.then((value) => make(value)) : make(answer);

export class Directory {
	readonly #storage: Storage;
	readonly #live = new Map<string, LiveLog>();
	/** Logs of other daemons that have readers here, by the store's number. */
	readonly #remote = new Map<number, RemoteLog>();
	/** Chains that are written or watched now. */
	readonly #chains = new Map<string, Chain>();

	/** Looks again at a log of another daemon: what is known of it was read before it was followed here. */
	readonly #refresh: (log: RemoteLog) => void;

	constructor(storage: Storage, refresh: (log: RemoteLog) => void) {
		this.#storage = storage;
		this.#refresh = refresh;
	}

	get size(): number {
		return this.#live.size;
	}

	get remote(): ReadonlyMap<number, RemoteLog> {
		return this.#remote;
	}

	live(): Iterable<LiveLog> {
		return this.#live.values();
	}

	get(name: string): LiveLog | undefined {
		return this.#live.get(name);
	}

	liveLink(chain: string): LiveLog | undefined {
		return this.#chains.get(chain)?.live;
	}

	admit(log: LiveLog): void {
		const { log: name, chain } = log.spec;
		this.#live.set(name, log);
		if (chain !== undefined) this.#chain(chain).live = log;
		const before = this.#remote.get(log.id);
		if (!before) return;
		this.#remote.delete(log.id);
		before.successor = log;
		log.readers = before.readers;
		for (const wake of before.wakes) log.wakes.add(wake);
	}

	dismiss(log: LiveLog): void {
		this.#live.delete(log.spec.log);
		const chain = log.spec.chain === undefined ? undefined : this.#chains.get(log.spec.chain);
		if (!chain) return;
		if (chain.live === log) chain.live = undefined;
		if (chain.watchers.size === 0) this.#chains.delete(log.spec.chain!);
	}

	/** Another daemon has taken over: who follows the log here follows it there. */
	disown(log: LiveLog): void {
		this.dismiss(log);
		const remote = new RemoteLog({ ...log.info(), id: log.id });
		log.successor = remote;
		remote.readers = log.readers;
		for (const wake of log.wakes) remote.wakes.add(wake);
		this.#remote.set(remote.id, remote);
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

	/** Readers that wait for the next link of the chain. */
	chainWatchers(chain: string | undefined): Iterable<Wake> {
		return (chain === undefined ? undefined : this.#chains.get(chain)?.watchers) ?? [];
	}

	*allWatchers(): Generator<Wake> {
		for (const log of this.#live.values()) yield* log.wakes;
		for (const log of this.#remote.values()) yield* log.wakes;
		for (const chain of this.#chains.values()) yield* chain.watchers;
	}

	/** Readers that wait for a chain that this daemon does not write now. */
	idleWatchers(): Wake[] {
		const idle = [...this.#chains.values()].filter((chain) => !chain.live);
		return idle.flatMap((chain) => [...chain.watchers]);
	}

	/** Forgets the logs of others that have no reader any more. */
	forgetUnread(): void {
		for (const [id, { readers }] of this.#remote) if (readers === 0) this.#remote.delete(id);
	}

	/** A log as readers see it. */
	readable(name: string): Reading<Readable | undefined> {
		const live = visible(this.#live.get(name));
		if (live) return readableIn(live);
		return whenRead(this.#storage.find(name), (stored) => stored && this.#readableOf(stored));
	}

	#readableOf(stored: StoredLog): Readable {
		const { id, log: name, head, sealedAt } = stored;
		// The log is durable, although its writer may not know it yet.
		const mine = this.#live.get(name);
		if (mine) return { ...readableIn(mine), id };
		if (sealedAt !== undefined) return { id, name, head };
		let remote = this.#remote.get(id);
		if (!remote) {
			remote = new RemoteLog(stored);
			this.#remote.set(id, remote);
			this.#refresh(remote);
		}
		return { id, name, growing: remote, head: Math.max(head, remote.head) };
	}

	/** The link that holds or will hold the record after a chain offset; when that was removed, the first one behind it. */
	link(chain: string, after: number): Reading<{ readable: Readable; base: number } | undefined> {
		const live = visible(this.#chains.get(chain)?.live);
		const own = live && { readable: readableIn(live), base: live.base };
		if (own && after >= own.base) return own;
		return whenRead(this.#storage.link(chain, after), (stored) =>
			stored ? { readable: this.#readableOf(stored), base: stored.base } : own,
		);
	}

	/** Chain offsets in (start, head] can be read. */
	chainEnds(chain: string): Reading<{ start: number; head: number } | undefined> {
		return whenRead(this.#storage.chain(chain), (stored) => {
			const live = visible(this.#chains.get(chain)?.live);
			if (!live) return stored;
			// The store may be ahead of its answer to us, and another reader may already hold a later offset.
			return { start: stored?.start ?? 0, head: Math.max(stored?.head ?? 0, live.base + live.head) };
		});
	}

	/** As the store has it: what this daemon holds may be of another moment. */
	chainWith<T>(chain: string, query: Query<T>): Reading<ChainInfo<T>> {
		return whenRead(this.#storage.chainWith(chain, query), ({ newest, ...found }) =>
			newest ? { ...found, newest: infoOf(newest) } : found,
		);
	}

	describe(name: string): Reading<LogInfo | undefined> {
		const live = visible(this.#live.get(name));
		return live?.info() ?? whenRead(this.#storage.find(name), (stored) => stored && infoOf(stored));
	}

	list(query: LogQuery): Reading<LogInfo[]> {
		return whenRead(this.#storage.list(query), (found) =>
			found.map((stored) => visible(this.#live.get(stored.log))?.info() ?? infoOf(stored)),
		);
	}
}

/** A log whose creation is not committed does not exist yet. */
const visible = (log: LiveLog | undefined): LiveLog | undefined => (log?.creation ? undefined : log);

const readableIn = (log: LiveLog): Readable => ({ id: log.id, name: log.spec.log, growing: log, head: log.head });

function infoOf(stored: StoredLog): LogInfo {
	const { id: _, ...info } = stored;
	return info;
}
