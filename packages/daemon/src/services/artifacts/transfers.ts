/** Transfers: a feed of what comes and goes, from memory. Uploads that were under way are taken up again after a restart. */

import { Readable } from "node:stream";
import { NexusError, newId } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { stopping } from "../kit/durable-work.ts";
import { type Principal, seesApp } from "../kit/principal.ts";
import type { DownloadFetch, NewTransfer, Transfer, TransferInfo, Transfers } from "./port.ts";

/** Ended transfers are shown for this long, and at most this many. */
const OVER_SHOWN_MS = 60 * 60_000;
const OVER_SHOWN_MAX = 200;

const isOver = ({ state }: TransferInfo): boolean => state !== "running" && state !== "paused";

export class TransferTable implements Transfers {
	readonly #clock: Clock;
	readonly #idleMs: number;
	readonly #all = new Map<string, LiveTransfer>();
	readonly #listeners = new Set<(transfer: TransferInfo) => void>();
	readonly #changed = (info: TransferInfo): void => {
		for (const listener of this.#listeners) listener(info);
	};

	constructor(clock: Clock, idleMs: number) {
		this.#clock = clock;
		this.#idleMs = idleMs;
	}

	begin(transfer: NewTransfer, canceled = async () => {}): Transfer {
		const now = this.#clock.now();
		const begun = { state: "running", transferredBytes: 0, startedAt: now, updatedAt: now } as const;
		const one = this.#add({ ...transfer, ...begun, id: newId("tr", now) }, canceled);
		one.change({});
		return one;
	}

	list(principal: Principal): TransferInfo[] {
		return [...this.#all.values()].map(({ info }) => info).filter(({ appId }) => seesApp(principal, appId));
	}

	async pause(id: string, principal: Principal): Promise<TransferInfo> {
		return this.#movable(id, principal).change({ state: "paused" });
	}

	async resume(id: string, principal: Principal): Promise<TransferInfo> {
		return this.#movable(id, principal).change({ state: "running" });
	}

	async cancel(id: string, principal: Principal): Promise<TransferInfo> {
		return this.#movable(id, principal).cancel();
	}

	subscribe(listener: (transfer: TransferInfo) => void): () => void {
		this.#listeners.add(listener);
		return () => void this.#listeners.delete(listener);
	}

	report(info: TransferInfo): void {
		(this.#all.get(info.id) ?? this.#add(info, undefined)).change(info);
	}

	tracked(fetch: DownloadFetch, appId: string): DownloadFetch {
		return trackedFetch((transfer) => this.begin(transfer), fetch, appId);
	}

	/** Forgets transfers that ended long ago, and ends downloads that are not continued. */
	sweep(): void {
		const idleSince = this.#clock.now() - this.#idleMs;
		for (const one of this.#all.values())
			if (one.info.kind === "download" && one.info.updatedAt <= idleSince)
				one.fail({ code: "timeout", message: `nothing was read for ${this.#idleMs} ms` });
		this.#forgetOver();
	}

	/** Ends what waits. */
	close(): void {
		for (const one of this.#all.values()) one.stop(stopping());
	}

	#add(info: TransferInfo, canceled: (() => Promise<void>) | undefined): LiveTransfer {
		const one = new LiveTransfer(info, this.#clock, this.#changed, canceled);
		this.#all.set(info.id, one);
		// A flood does not wait for the next sweep.
		if (this.#all.size > 2 * OVER_SHOWN_MAX) this.#forgetOver();
		return one;
	}

	#movable(id: string, principal: Principal): LiveTransfer {
		const one = this.#all.get(id);
		if (!one || !seesApp(principal, one.info.appId)) throw new NexusError("not_found", `there is no transfer ${id}`);
		if (!one.isMovable)
			throw new NexusError("precondition", `${one.info.name} is moved by a platform: it can only be watched`);
		if (isOver(one.info)) throw new NexusError("precondition", `the transfer is over: ${one.info.state}`);
		return one;
	}

	#forgetOver(): void {
		const over = [...this.#all.values()].map(({ info }) => info).filter(isOver);
		over.sort((left, right) => left.updatedAt - right.updatedAt);
		const before = this.#clock.now() - OVER_SHOWN_MS;
		over.forEach(({ id, updatedAt }, index) => {
			if (updatedAt <= before || index < over.length - OVER_SHOWN_MAX) this.#all.delete(id);
		});
	}
}

class LiveTransfer implements Transfer {
	info: TransferInfo;
	readonly #stop = new AbortController();
	readonly #clock: Clock;
	readonly #changed: (info: TransferInfo) => void;
	readonly #canceled: (() => Promise<void>) | undefined;
	/** Called when it is resumed or over. */
	readonly #wakes = new Set<() => void>();

	/** Without `canceled` code outside of the table moves its bytes. */
	constructor(
		info: TransferInfo,
		clock: Clock,
		changed: (info: TransferInfo) => void,
		canceled: (() => Promise<void>) | undefined,
	) {
		this.info = info;
		this.#clock = clock;
		this.#changed = changed;
		this.#canceled = canceled;
	}

	get isMovable(): boolean {
		return this.#canceled !== undefined;
	}

	get signal(): AbortSignal {
		return this.#stop.signal;
	}

	change(fields: Partial<TransferInfo>): TransferInfo {
		this.info = { ...this.info, ...fields, updatedAt: this.#clock.now() };
		if (this.info.state !== "paused") for (const wake of this.#wakes) wake();
		this.#changed(this.info);
		return this.info;
	}

	async cancel(): Promise<TransferInfo> {
		// Set first, so that a transfer broken off by the cancellation does not count as failed.
		this.info = { ...this.info, state: "canceled" };
		this.#stop.abort(wasCanceled());
		await this.#canceled?.();
		return this.change({ state: "canceled" });
	}

	stop(cause: NexusError): void {
		this.#stop.abort(cause);
	}

	check(): void {
		this.signal.throwIfAborted();
		if (this.info.state === "paused")
			throw new NexusError("precondition", `the transfer ${this.info.id} is paused: resume it first`);
		if (this.info.state === "canceled") throw wasCanceled();
	}

	async ready(): Promise<void> {
		while (this.info.state === "paused" && !this.signal.aborted) {
			const { promise, resolve } = Promise.withResolvers<void>();
			this.#wakes.add(resolve);
			this.signal.addEventListener("abort", () => resolve(), { once: true });
			await promise;
			this.#wakes.delete(resolve);
		}
		this.signal.throwIfAborted();
	}

	reach(transferredBytes: number): void {
		this.#unlessOver({ transferredBytes });
	}

	complete(fields: { sha256?: string } = {}): void {
		this.#unlessOver({ ...fields, state: "completed" });
	}

	fail({ code, message }: { code: string; message: string }): void {
		this.#unlessOver({ state: "failed", error: { code, message } });
	}

	#unlessOver(fields: Partial<TransferInfo>): void {
		if (!isOver(this.info)) this.change(fields);
	}
}

function trackedFetch(begin: (transfer: NewTransfer) => Transfer, fetch: DownloadFetch, appId: string): DownloadFetch {
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
