/** Transfers: a feed of what comes and goes, from memory. Uploads that were under way are taken up again after a restart. */

import { Readable } from "node:stream";
import { NexusError, newId } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { seesApp } from "../kit/principal.ts";
import type { DownloadFetch, Transfer, TransferInfo, Transfers } from "./port.ts";

/** Ended transfers are shown for this long, and at most this many. */
const OVER_SHOWN_MS = 60 * 60_000;
const OVER_SHOWN_MAX = 200;

interface TransferEntry {
	info: TransferInfo;
	readonly stop: AbortController;
	/** Code outside of this table moves its bytes. */
	readonly foreign: boolean;
	canceled(): Promise<void>;
	/** Called when it is resumed or over. */
	readonly wakes: Set<() => void>;
}

const isOver = ({ state }: TransferInfo): boolean => state !== "running" && state !== "paused";

export interface TransferTable extends Transfers {
	/** Forgets transfers that ended long ago, and ends downloads that are not continued. */
	sweep(): void;
	/** Ends what waits. */
	close(): void;
}

export function createTransfers(clock: Clock, idleMs: number): TransferTable {
	const kept = new Map<string, TransferEntry>();
	const listeners = new Set<(transfer: TransferInfo) => void>();
	const change = (one: TransferEntry, fields: Partial<TransferInfo>): TransferInfo => {
		one.info = { ...one.info, ...fields, updatedAt: clock.now() };
		if (one.info.state !== "paused") for (const wake of one.wakes) wake();
		for (const listener of listeners) listener(one.info);
		return one.info;
	};
	const keep = (info: TransferInfo, foreign: boolean, canceled = async () => {}): TransferEntry => {
		const one = { info, foreign, canceled, stop: new AbortController(), wakes: new Set<() => void>() };
		kept.set(info.id, one);
		// A flood does not wait for the next sweep.
		if (kept.size > 2 * OVER_SHOWN_MAX) forgetOver(kept, clock.now());
		return one;
	};
	const movable = (id: string, principal: Parameters<Transfers["pause"]>[1]): TransferEntry => {
		const one = kept.get(id);
		if (!one || !seesApp(principal, one.info.appId)) throw new NexusError("not_found", `there is no transfer ${id}`);
		if (one.foreign)
			throw new NexusError("precondition", `${one.info.name} is moved by a platform: it can only be watched`);
		if (isOver(one.info)) throw new NexusError("precondition", `the transfer is over: ${one.info.state}`);
		return one;
	};
	const begin: Transfers["begin"] = (transfer, canceled) => {
		const now = clock.now();
		const id = newId("tr", now);
		const info: TransferInfo = {
			...transfer,
			id,
			state: "running",
			transferredBytes: 0,
			startedAt: now,
			updatedAt: now,
		};
		const one = keep(info, false, canceled);
		change(one, {});
		return handleOf(one, change);
	};
	return {
		begin,
		list: (principal) => [...kept.values()].map(({ info }) => info).filter(({ appId }) => seesApp(principal, appId)),
		pause: async (id, principal) => change(movable(id, principal), { state: "paused" }),
		resume: async (id, principal) => change(movable(id, principal), { state: "running" }),
		async cancel(id, principal) {
			const one = movable(id, principal);
			// Set first, so that a transfer broken off by the cancellation does not count as failed.
			one.info = { ...one.info, state: "canceled" };
			one.stop.abort(wasCanceled());
			await one.canceled();
			return change(one, { state: "canceled" });
		},
		subscribe(listener) {
			listeners.add(listener);
			return () => void listeners.delete(listener);
		},
		report(info) {
			const one = kept.get(info.id) ?? keep(info, true);
			change(one, info);
		},
		tracked: (fetch, appId) => trackedFetch(begin, fetch, appId),
		sweep() {
			const now = clock.now();
			for (const one of kept.values()) {
				const { kind, updatedAt } = one.info;
				if (kind !== "download" || isOver(one.info) || updatedAt > now - idleMs) continue;
				change(one, { state: "failed", error: { code: "timeout", message: `nothing was read for ${idleMs} ms` } });
			}
			forgetOver(kept, now);
		},
		close() {
			for (const { stop, wakes } of kept.values()) {
				stop.abort(new NexusError("unavailable", "the daemon is stopping", { reason: "STOPPING" }));
				for (const wake of wakes) wake();
			}
		},
	};
}

function handleOf(
	one: TransferEntry,
	change: (one: TransferEntry, fields: Partial<TransferInfo>) => TransferInfo,
): Transfer {
	const { signal } = one.stop;
	const end = (fields: Partial<TransferInfo>) => {
		if (!isOver(one.info)) change(one, fields);
	};
	return {
		get info() {
			return one.info;
		},
		signal,
		check() {
			signal.throwIfAborted();
			if (one.info.state === "paused")
				throw new NexusError("precondition", `the transfer ${one.info.id} is paused: resume it first`);
			if (one.info.state === "canceled") throw wasCanceled();
		},
		async ready() {
			while (one.info.state === "paused" && !signal.aborted) {
				const { promise, resolve } = Promise.withResolvers<void>();
				one.wakes.add(resolve);
				signal.addEventListener("abort", () => resolve(), { once: true });
				await promise;
				one.wakes.delete(resolve);
			}
			signal.throwIfAborted();
		},
		reach(transferredBytes) {
			end({ transferredBytes });
		},
		complete: (fields = {}) => end({ ...fields, state: "completed" }),
		fail: ({ code, message }) => end({ state: "failed", error: { code, message } }),
	};
}

function forgetOver(kept: Map<string, TransferEntry>, now: number): void {
	const over = [...kept.values()].map(({ info }) => info).filter(isOver);
	over.sort((left, right) => left.updatedAt - right.updatedAt);
	over.forEach(({ id, updatedAt }, index) => {
		if (updatedAt <= now - OVER_SHOWN_MS || index < over.length - OVER_SHOWN_MAX) kept.delete(id);
	});
}

function trackedFetch(begin: Transfers["begin"], fetch: DownloadFetch, appId: string): DownloadFetch {
	return async (url, init = {}) => {
		const transfer = begin({ kind: "fetch", appId, name: nameOf(url), totalBytes: -1 });
		try {
			const signal = AbortSignal.any([transfer.signal, ...(init.signal ? [init.signal] : [])]);
			const response = await fetch(url, { ...init, signal });
			const { status, statusText, headers } = response;
			if (!response.body) {
				transfer.complete();
				return response;
			}
			const body = Readable.toWeb(Readable.from(passing(response.body, transfer)));
			return new Response(body as ReadableStream<Uint8Array<ArrayBuffer>>, { status, statusText, headers });
		} catch (cause) {
			transfer.fail(failureOf(cause));
			throw cause;
		}
	};
}

const NAME_CHARS_MAX = 255;

/** Host and file: what else an address holds may be a secret. */
function nameOf(url: string | URL): string {
	const { hostname, pathname } = new URL(url);
	return `${hostname}/${pathname.slice(pathname.lastIndexOf("/") + 1)}`.slice(0, NAME_CHARS_MAX);
}

async function* passing(body: AsyncIterable<Uint8Array>, transfer: Transfer): AsyncGenerator<Uint8Array> {
	let bytes = 0;
	try {
		for await (const chunk of body) {
			await transfer.ready();
			bytes += chunk.length;
			transfer.reach(bytes);
			yield chunk;
		}
		transfer.complete();
	} catch (cause) {
		transfer.fail(failureOf(cause));
		throw cause;
	} finally {
		// The reader stopped before the end.
		transfer.fail(new NexusError("aborted", "the rest was not read"));
	}
}

const failureOf = (cause: unknown): NexusError =>
	cause instanceof NexusError ? cause : new NexusError("unavailable", "the transfer broke off", { cause });

const wasCanceled = () => new NexusError("aborted", "the transfer was cancelled");
