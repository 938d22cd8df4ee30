/** The calls of remote procedures that are open, their streams with how each of them closes: what stopping goes by, and who takes nothing. */

import type { ServerHttp2Session } from "node:http2";
import type { ConnectError } from "@connectrpc/connect";
import type { CloseMode } from "@nexus-stream/protocol";
import type { OpenStream, OutgoingResponse } from "./fast-stream/fast-stream.ts";

/** Progress of a connection between two looks: more than pings and their answers. */
const CREPT_BYTES_MIN = 256;
/** A reader counts as stalled when it took nothing between so many looks. */
const STILL_LOOKS_MAX = 4;

export class RpcStreams {
	readonly #open = new Set<OpenStream>();
	/** The responses of all open calls, streaming or not. */
	readonly #outgoing = new Set<OutgoingResponse>();
	/** How far each connection was at the last look. */
	readonly #windows = new WeakMap<ServerHttp2Session, { window: number; bytes: number }>();
	#stalled = 0;
	/** Callbacks that wait for streams to end. */
	readonly #leaving: (() => void)[] = [];

	get count(): number {
		return this.#open.size;
	}

	/** Readers that were disconnected because they took nothing. */
	get stalled(): number {
		return this.#stalled;
	}

	/** Returns how to take it out again. */
	add(stream: OpenStream): () => void {
		this.#open.add(stream);
		return () => this.#remove(stream);
	}

	/** Looks from now on whether the client takes what it is sent; returns how to stop that. */
	watch(outgoing: OutgoingResponse): () => void {
		this.#outgoing.add(outgoing);
		return () => void this.#outgoing.delete(outgoing);
	}

	/** Once none of these modes is open, or none at all. */
	async gone(modes?: readonly CloseMode[]): Promise<void> {
		while (this.#some(modes)) await new Promise<void>((resolve) => this.#leaving.push(resolve));
	}

	/** Cuts the streams of these modes, or all. */
	cut(cause: () => ConnectError, modes?: readonly (CloseMode | undefined)[]): void {
		for (const stream of [...this.#open]) if (!modes || modes.includes(stream.closes)) stream.cut(cause());
	}

	#some(modes?: readonly CloseMode[]): boolean {
		if (!modes) return this.#open.size > 0;
		for (const { closes } of this.#open) if (closes !== undefined && modes.includes(closes)) return true;
		return false;
	}

	#remove(stream: OpenStream): void {
		this.#open.delete(stream);
		for (const resolve of this.#leaving.splice(0)) resolve();
	}

	/** Called four times in the time that a reader may take nothing. */
	sweep(): void {
		const still: OutgoingResponse[] = [];
		const moved = new Set<ServerHttp2Session>();
		const waiting = new Set<ServerHttp2Session>();
		for (const outgoing of this.#outgoing) {
			const { session } = outgoing;
			if (!session || session.destroyed) continue;
			const { isWaiting, hasMoved } = outgoing.look();
			if (hasMoved) moved.add(session);
			if (!isWaiting) continue;
			waiting.add(session);
			if (!hasMoved) still.push(outgoing);
		}
		const crept = this.#crept(waiting);
		for (const outgoing of still) {
			const session = outgoing.session!;
			if (crept.has(session) && !moved.has(session)) outgoing.excuse();
			else if (outgoing.isStalled(STILL_LOOKS_MAX)) this.stall(outgoing);
		}
	}

	/** Its client took nothing for too long. */
	stall(outgoing: OutgoingResponse): void {
		this.#outgoing.delete(outgoing);
		this.#stalled++;
		outgoing.reset();
	}

	/**
	 * A write is done when all of it was taken. That one is taken byte by byte only its connection tells: it sent more than pings since the last
	 * look, or may send another amount.
	 */
	#crept(sessions: ReadonlySet<ServerHttp2Session>): ReadonlySet<ServerHttp2Session> {
		const crept = new Set<ServerHttp2Session>();
		for (const session of sessions) {
			const { remoteWindowSize: window = 0 } = session.state;
			const { bytesWritten: bytes } = session.socket;
			const last = this.#windows.get(session);
			this.#windows.set(session, { window, bytes });
			if (last && (last.window !== window || bytes - last.bytes >= CREPT_BYTES_MIN)) crept.add(session);
		}
		return crept;
	}
}
