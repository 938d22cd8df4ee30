/** The one way from cursors to a connection: SSE, NDJSON and WebSocket differ in their transport and their encoder only. */

import type { CloseMode } from "@nexus-stream/protocol";
import type { Batch, Cursor, Grown } from "../../bus/bus.ts";
import type { Flusher } from "./flusher.ts";

/** Why a connection is closed: it said everything, a read failed, its peer took nothing for too long, or the daemon stops. */
export type CloseReason = "ended" | "failed" | "stalled" | "stopping";

/** A connection as the pump sees it. Its creator calls the pump's `drained`, `timedOut` and `gone`. */
export interface Transport<Data> {
	/** Takes the data whole. False: it is full, and `drained` follows, though never from inside this call. */
	write(data: Data): boolean;
	/** The peer has not yet taken everything that was written. */
	readonly waiting: boolean;
	/** Called once at most. */
	close(reason: CloseReason): void;
}

/** Turns batches into what a transport writes. One that keeps state belongs to a single reader; one without is shared by all of its dialect. */
export interface Encoder<Data> {
	/** Sent at once, before any record. */
	open?(): Data | undefined;
	/** Undefined: nothing to send for this batch. */
	text(batch: Batch): Data | undefined;
	/** Sent after the last record, when the stream ends by its close mode. */
	end?(): Data | undefined;
	/** Sent to a reader that got nothing for a while. */
	readonly heartbeat?: Data | undefined;
}

export interface Subscription<Data> {
	readonly cursor: Cursor;
	readonly encoder: Encoder<Data>;
	/** D never ends by itself (PROTOCOL §5). Undefined: an answer of a known length, which is not a stream. */
	readonly closes: CloseMode | undefined;
	/** The reader has read everything that a log which has not ended holds now; called each time. */
	caughtUp?(): void;
	/** Everything was written, the encoder's end included; the cursor is closed. */
	ended(): void;
	/** A read or the encoder failed; the cursor is closed and nothing more is written. */
	failed(cause: unknown): void;
}

/**
 * idle: everything was read; a wake queues it. queued: waits for its turn. reading: asks the cursor, in this tick or over a promise; a wake
 * is remembered. over: its cursor is closed.
 */
type PumpPhase = "idle" | "queued" | "reading" | "over";

/** Batches in a row that an encoder may leave out in one turn of the event loop. */
const SILENT_BATCHES_MAX = 16;

/** A subscription and where serving it stands. */
interface Served<Data> {
	readonly subscription: Subscription<Data>;
	/** The subscription's own; one object less to reach for on the hot path. */
	readonly cursor: Cursor;
	readonly encoder: Encoder<Data>;
	phase: PumpPhase;
	/** A wake came while its cursor was read: that read may not have seen what the wake was for (ST14). */
	woken: boolean;
	/** It got a batch since it was idle: what it reads next is a backlog, in which it leaves room for others. */
	isBehind: boolean;
	/** A batch that arrived when the transport was full. The only one: no further read is made before it was written (I6). */
	held: Batch | undefined;
	/** Its neighbours in the queue. */
	before: Served<Data> | undefined;
	behind: Served<Data> | undefined;
}

/**
 * Serves subscriptions over one transport: one batch of each in turn, one read in flight of each (ST14), and no read while the transport is
 * full. A batch that is there at once is written in the same tick, unless the flusher puts the reader off.
 */
export class Pump<Data> {
	readonly #transport: Transport<Data>;
	readonly #flusher: Flusher;
	readonly #served = new Set<Served<Data>>();
	/** Readers in phase `queued`, in turn: a long replay does not hold up the others. Linked: an array's shift costs more than all else here. */
	#first: Served<Data> | undefined;
	#last: Served<Data> | undefined;
	#room = true;
	#running = false;
	#closed = false;
	/** Batches since the last write. What is left out fills no transport: a long stretch of it would hold up the whole daemon. */
	#silent = 0;
	#resting = false;
	/** Records were sent since the last heartbeat. */
	#active = true;

	constructor(transport: Transport<Data>, flusher: Flusher) {
		this.#transport = transport;
		this.#flusher = flusher;
	}

	/** Returns how to drop it before its end. The pump closes its cursor in any case. */
	add(subscription: Subscription<Data>): () => void {
		const { cursor, encoder } = subscription;
		const served: Served<Data> = {
			subscription,
			cursor,
			encoder,
			phase: "idle",
			woken: false,
			isBehind: false,
			held: undefined,
			before: undefined,
			behind: undefined,
		};
		this.#served.add(served);
		const drop = () => this.#drop(served);
		if (this.#closed) {
			drop();
			return drop;
		}
		const wake = (log?: Grown): void => {
			// Only a reader that has read everything waits: one that is behind reads on.
			if (log && served.phase === "idle" && this.#flusher.defers(log, wake)) return;
			this.#wake(served);
		};
		cursor.onWake(wake);
		try {
			this.#write(encoder.open?.());
			this.#wake(served);
		} catch (cause) {
			this.#fail(served, cause);
		}
		return drop;
	}

	/** The transport has room again. */
	readonly drained = (): void => {
		this.#room = true;
		this.#run();
	};

	/** The transport saw no progress for a long time. Without data waiting that is not the reader's fault. */
	readonly timedOut = (): void => {
		if (this.#transport.waiting) this.close("stalled");
	};

	/** The transport closed by itself. */
	readonly gone = (): void => {
		this.#closed = true;
		for (const served of this.#served) this.#drop(served);
	};

	/** Ends every subscription as it stands: what was not sent is read again by who resumes. */
	close(reason: CloseReason): void {
		if (this.#closed) return;
		this.gone();
		this.#transport.close(reason);
	}

	/** Called at steady intervals. A reader that has not taken everything needs no heartbeat: `timedOut` watches it. */
	heartbeat(): void {
		const idle = !this.#active;
		this.#active = false;
		if (!idle) return;
		for (const { subscription } of this.#served) {
			if (this.#room && !this.#transport.waiting) this.#write(subscription.encoder.heartbeat);
		}
	}

	#wake(served: Served<Data>): void {
		if (served.phase === "reading") served.woken = true;
		if (served.phase !== "idle") return;
		this.#enqueue(served);
		this.#run();
	}

	#enqueue(served: Served<Data>): void {
		served.phase = "queued";
		served.before = this.#last;
		if (this.#last) this.#last.behind = served;
		else this.#first = served;
		this.#last = served;
	}

	#unqueue(served: Served<Data>): void {
		const { before, behind } = served;
		if (before) before.behind = behind;
		else this.#first = behind;
		if (behind) behind.before = before;
		else this.#last = before;
		served.before = undefined;
		served.behind = undefined;
	}

	#run(): void {
		if (this.#running) return;
		this.#running = true;
		try {
			while (this.#room && !this.#resting && this.#first) {
				if (this.#first.isBehind && this.#flusher.isTurnSpent) this.#rest();
				else this.#step(this.#first);
			}
		} finally {
			this.#running = false;
		}
	}

	#step(served: Served<Data>): void {
		this.#unqueue(served);
		served.phase = "reading";
		served.woken = false;
		try {
			const batch = served.held ?? served.cursor.next();
			served.held = undefined;
			if (!(batch instanceof Promise)) this.#take(served, batch);
			else {
				batch.then(
					(found) => this.#arrive(served, found),
					(cause: unknown) => this.#fail(served, cause),
				);
			}
		} catch (cause) {
			this.#fail(served, cause);
		}
	}

	/** Takes the result of an asynchronous read. Other readers may have filled the transport meanwhile. */
	#arrive(served: Served<Data>, batch: Batch | undefined): void {
		if (served.phase === "over") return;
		if (!this.#room) {
			served.held = batch;
			this.#enqueue(served);
			return;
		}
		try {
			this.#take(served, batch);
		} catch (cause) {
			this.#fail(served, cause);
		}
		this.#run();
	}

	#take(served: Served<Data>, batch: Batch | undefined): void {
		if (batch) {
			if (served.isBehind) this.#flusher.spend(batch.text.length);
			served.isBehind = true;
			const data = served.encoder.text(batch);
			if (data === undefined) this.#leaveOut();
			else {
				this.#active = true;
				this.#write(data);
			}
			if (served.phase === "reading") this.#enqueue(served);
		} else if (served.cursor.ended && served.subscription.closes !== "D") {
			this.#write(served.encoder.end?.());
			this.#drop(served);
			served.subscription.ended();
		} else if (served.woken) this.#enqueue(served);
		else {
			served.phase = "idle";
			served.isBehind = false;
			served.subscription.caughtUp?.();
		}
	}

	#write(data: Data | undefined): void {
		if (data === undefined) return;
		this.#silent = 0;
		this.#room = this.#transport.write(data);
	}

	#leaveOut(): void {
		if (++this.#silent < SILENT_BATCHES_MAX) return;
		this.#silent = 0;
		this.#rest();
	}

	#rest(): void {
		this.#resting = true;
		this.#flusher.nextTurn(this.#rested);
	}

	readonly #rested = (): void => {
		this.#resting = false;
		this.#run();
	};

	#fail(served: Served<Data>, cause: unknown): void {
		if (served.phase === "over") return;
		this.#drop(served);
		served.subscription.failed(cause);
	}

	#drop(served: Served<Data>): void {
		if (served.phase === "over") return;
		if (served.phase === "queued") this.#unqueue(served);
		served.phase = "over";
		this.#served.delete(served);
		served.cursor.close();
	}
}
