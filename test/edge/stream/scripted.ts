/** A cursor and a transport that do what a script says, and note every rule that the pump breaks between them. */

import { Batch, type Cursor, type Grown, type Wake } from "../../../packages/daemon/src/bus/bus.ts";
import type { CloseReason, Encoder, Pump, Transport } from "../../../packages/daemon/src/edge/stream/pump.ts";

export type ReadMode =
	/** In the tick of the call. */
	| "now"
	/** A promise of what was there at the call. */
	| "early"
	/** A promise of what is there when it is settled. */
	| "late";

export type Sent =
	| { id: number; type: "open" | "end" | "heartbeat" }
	| { id: number; type: "records"; first: number; count: number };

export class ScriptedCursor implements Cursor {
	offset = 0;
	head = 0;
	sealed = false;
	closed = false;
	mode: ReadMode = "now";
	/** The next read fails with it. */
	fault: Error | undefined;
	/** Handed out, and encoded: the difference is what the pump holds. */
	handed = 0;
	encoded = 0;
	reads = 0;
	wakes = 0;
	/** How often each other cursor was served while this one was ready. */
	readonly passedBy = new Map<number, number>();
	readonly #batchMax: number;
	readonly #broken: string[];
	#inFlight: { settle(): void; fail(cause: Error): void } | undefined;
	/** The log that its wakes name; undefined: a wake that cannot be deferred. */
	grown: Grown | undefined;
	#listener: Wake | undefined;

	constructor(batchMax: number, broken: string[]) {
		this.#batchMax = batchMax;
		this.#broken = broken;
	}

	get ended(): boolean {
		return this.sealed && this.offset >= this.head;
	}

	get reading(): boolean {
		return this.#inFlight !== undefined;
	}

	/** A turn would bring something at once. */
	get ready(): boolean {
		if (!this.#listener || this.closed || this.reading) return false;
		return this.handed > this.encoded || (this.mode === "now" && this.offset < this.head);
	}

	append(count: number): void {
		if (this.sealed) return;
		this.head += count;
		this.wake();
	}

	seal(): void {
		this.sealed = true;
		this.wake();
	}

	wake(): void {
		if (this.closed) return;
		this.wakes++;
		this.#listener?.(this.grown);
	}

	settle(): void {
		this.#inFlight?.settle();
	}

	/** Fails the read in flight, or else the next one. */
	fail(cause: Error): void {
		if (this.#inFlight) this.#inFlight.fail(cause);
		else this.fault = cause;
	}

	next(): Batch | undefined | Promise<Batch | undefined> {
		this.reads++;
		this.passedBy.clear();
		if (this.closed) this.#broken.push("a closed cursor is read");
		if (this.reading) this.#broken.push("a second read is in flight");
		if (this.handed > this.encoded) this.#broken.push("a read is made while a batch is held");
		if (this.fault) throw this.fault;
		const found = this.#found();
		if (this.mode === "now") return this.#hand(found);
		const early = this.mode === "early";
		const { promise, resolve, reject } = Promise.withResolvers<Batch | undefined>();
		const inFlight = { settle: () => resolve(this.#hand(early ? found : this.#found())), fail: reject };
		this.#inFlight = inFlight;
		const over = () => {
			if (this.#inFlight === inFlight) this.#inFlight = undefined;
		};
		promise.then(over, over);
		return promise;
	}

	#found(): Batch | undefined {
		const count = Math.min(this.head - this.offset, this.#batchMax);
		const first = this.offset + 1;
		return count > 0
			? Batch.of(
					first,
					Array.from({ length: count }, (_, index) => `${first + index}`),
				)
			: undefined;
	}

	#hand(batch: Batch | undefined): Batch | undefined {
		if (!batch) return undefined;
		this.offset = batch.last;
		if (!this.closed) this.handed++;
		return batch;
	}

	check(): void {}

	onWake(listener: Wake): void {
		this.#listener = listener;
	}

	close(): void {
		if (this.closed) this.#broken.push("a cursor is closed twice");
		this.closed = true;
	}
}

/** Says nothing of every `skipped`th batch, as a dialect does that leaves records out. */
export class ScriptedEncoder implements Encoder<Sent> {
	readonly offsets: number[] = [];
	readonly heartbeat: Sent;
	readonly #id: number;
	readonly #cursors: readonly ScriptedCursor[];
	readonly #skipped: number;
	readonly #broken: string[];

	constructor(id: number, cursors: readonly ScriptedCursor[], broken: string[], skipped = Infinity) {
		this.#id = id;
		this.#cursors = cursors;
		this.#broken = broken;
		this.#skipped = skipped;
		this.heartbeat = { id, type: "heartbeat" };
	}

	open(): Sent {
		return { id: this.#id, type: "open" };
	}

	text({ first, count }: Batch): Sent | undefined {
		const own = this.#cursors[this.#id]!;
		if (own.closed) this.#broken.push("a batch is sent after the end");
		own.encoded++;
		own.passedBy.clear();
		for (const other of this.#cursors) {
			if (other === own || !other.ready) continue;
			const passed = (other.passedBy.get(this.#id) ?? 0) + 1;
			other.passedBy.set(this.#id, passed);
			if (passed > 1) this.#broken.push("a cursor is served twice while another one waits for its turn");
		}
		for (let index = 0; index < count; index++) this.offsets.push(first + index);
		return own.encoded % this.#skipped === 0 ? undefined : { id: this.#id, type: "records", first, count };
	}

	end(): Sent {
		return { id: this.#id, type: "end" };
	}
}

export class ScriptedTransport implements Transport<Sent> {
	readonly sent: Sent[] = [];
	readonly closedFor: CloseReason[] = [];
	drains = 0;
	pump: Pump<Sent> | undefined;
	readonly #broken: string[];
	#capacity: number;
	#unread = 0;

	constructor(capacity: number, broken: string[]) {
		this.#capacity = capacity;
		this.#broken = broken;
	}

	get waiting(): boolean {
		return this.#unread > 0;
	}

	write(data: Sent): boolean {
		if (this.closedFor.length > 0) this.#broken.push("something is written after the close");
		const full = this.#unread >= this.#capacity;
		if (full && data.type !== "open") this.#broken.push(`${data.type} is written to a full transport`);
		this.sent.push(data);
		this.#unread++;
		return this.#unread < this.#capacity;
	}

	/** The peer has read everything, and takes this many writes before it is full again. */
	drain(capacity = Infinity): void {
		this.#unread = 0;
		this.#capacity = capacity;
		this.drains++;
		this.pump?.drained();
	}

	close(reason: CloseReason): void {
		this.closedFor.push(reason);
	}
}
