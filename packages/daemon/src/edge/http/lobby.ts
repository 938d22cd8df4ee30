/** Connections of a port before they send a token: few are served at a time, and further ones wait unread. */

import type { Socket } from "node:net";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { EdgeLimits } from "../port.ts";
import { clientKey } from "./strangers.ts";

type LobbyLimits = Pick<EdgeLimits, "tokenlessConnectionsMax" | "tokenlessConnectionsPerClientMax">;

interface Guest {
	socket: Socket;
	key: string;
	since: number;
}

interface WaitingGuest extends Guest {
	serve(): void;
}

/** A connection has this long to send a token before it makes room for another. */
const GRACE_MS = 1000;
/** Connections that wait, and how long; the one that waits longest is closed first. They are not read, and cost a few kB each. */
const WAITING_MAX = 1024;
const WAITING_MS_MAX = 5000;
/** How long connections of a refused address may wait, once more than a few do. */
const REFUSED_WAITING_MS_MAX = 500;
const REFUSED_WAITING_MIN = 64;
/** One connection of a refused address is still read in this time: it may be the owner's. */
const PACE_MS = 5;
/** In one turn of the loop; Node takes one new connection in each. */
const SERVED_PER_TURN_MAX = 8;
const DROPPED_PER_TURN_MAX = 64;

const keyOf = (socket: Socket): string => clientKey(socket.remoteAddress ?? "");

/** Connections that are read before they sent a token, with the room that is left for others. */
class Guests {
	readonly #limits: LobbyLimits;
	readonly #now: () => number;
	readonly #all = new Map<Socket, Guest>();
	readonly #byClient = new Map<string, Map<Socket, Guest>>();
	/** Called with each guest that has to go for another. */
	readonly #evict: (socket: Socket) => void;

	constructor(limits: LobbyLimits, now: () => number, evict: (socket: Socket) => void) {
		this.#limits = limits;
		this.#now = now;
		this.#evict = evict;
	}

	has(socket: Socket): boolean {
		return this.#all.has(socket);
	}

	add(socket: Socket, key: string): void {
		const guest = { socket, key, since: this.#now() };
		this.#all.set(socket, guest);
		const own = this.#byClient.get(key) ?? new Map<Socket, Guest>();
		this.#byClient.set(key, own.set(socket, guest));
	}

	/** False when it was none. */
	remove(socket: Socket): boolean {
		const guest = this.#all.get(socket);
		if (!guest) return false;
		this.#all.delete(socket);
		const own = this.#byClient.get(guest.key);
		own?.delete(socket);
		if (own?.size === 0) this.#byClient.delete(guest.key);
		return true;
	}

	/** Whether one more of this client has room. Where it has none, the oldest of the crowd goes if its time is over. */
	makeRoom(key: string): boolean {
		const [oldest] = this.#crowdOf(key)?.values() ?? [];
		if (!oldest) return true;
		if (this.#now() - oldest.since < GRACE_MS) return false;
		this.remove(oldest.socket);
		this.#evict(oldest.socket);
		return true;
	}

	/** The client's own connections at its limit, or those of the largest client at the limit of all. */
	#crowdOf(key: string): Map<Socket, Guest> | undefined {
		const own = this.#byClient.get(key);
		if (own && own.size >= this.#limits.tokenlessConnectionsPerClientMax) return own;
		if (this.#all.size < this.#limits.tokenlessConnectionsMax) return undefined;
		let most: Map<Socket, Guest> | undefined;
		for (const each of this.#byClient.values()) if (each.size > (most?.size ?? 0)) most = each;
		return most;
	}
}

export class Lobby {
	readonly #clock: Clock;
	readonly #now: () => number;
	readonly #isRefused: (key: string) => boolean;
	readonly #guests: Guests;
	/** The last to come is served first: connections that only hold their place do not delay it. */
	readonly #waiting: WaitingGuest[] = [];
	#refused = 0;
	#isClosed = false;
	#isServing = false;
	#pacedAt = Number.NEGATIVE_INFINITY;
	#cancelTimer: (() => void) | undefined;

	/** `isRefused`: whether a client made too many calls without a token. */
	constructor(limits: LobbyLimits, clock: Clock, isRefused: (key: string) => boolean) {
		this.#clock = clock;
		this.#now = elapsing(clock);
		this.#isRefused = isRefused;
		this.#guests = new Guests(limits, this.#now, (socket) => this.#turnAway(socket));
	}

	/** Connections that were closed for want of room, since start. */
	get refused(): number {
		return this.#refused;
	}

	/** Serves the connection now, or once there is room. It has read nothing so far. */
	enter(socket: Socket, serve: () => void): void {
		if (this.#isClosed) {
			socket.destroy();
			return;
		}
		socket.once("close", () => this.leave(socket));
		const next = { socket, key: keyOf(socket), since: this.#now(), serve };
		if (!this.#isRefused(next.key) && this.#guests.makeRoom(next.key)) {
			this.#begin(next);
			return;
		}
		this.#waiting.push(next);
		if (this.#waiting.length > WAITING_MAX) this.#turnAway(this.#waiting.shift()!.socket);
		this.#watch();
	}

	/** Its request is being answered, or it has sent a token: it takes no room here. */
	leave(socket: Socket): void {
		if (this.#guests.remove(socket)) this.#serveSoon();
	}

	/** It is idle again, and has not sent a token. */
	comeBack(socket: Socket): void {
		if (socket.destroyed || this.#guests.has(socket)) return;
		const key = keyOf(socket);
		this.#guests.makeRoom(key);
		this.#guests.add(socket, key);
	}

	/** Closes those that wait, now and later. */
	close(): void {
		this.#isClosed = true;
		this.#cancelTimer?.();
		for (const { socket } of this.#waiting.splice(0)) socket.destroy();
	}

	#turnAway(socket: Socket): void {
		this.#refused++;
		socket.destroy();
	}

	#begin({ socket, key, serve }: WaitingGuest): void {
		if (socket.destroyed) return;
		this.#guests.add(socket, key);
		serve();
	}

	/** A client that has waited this long has given up. */
	#dropOld(): void {
		const time = this.#now();
		const waiting = this.#waiting;
		for (let at = 0, dropped = 0; at < waiting.length && dropped < DROPPED_PER_TURN_MAX; ) {
			const { key, since, socket } = waiting[at]!;
			const isCrowded = waiting.length > REFUSED_WAITING_MIN;
			if (time - since <= (isCrowded ? REFUSED_WAITING_MS_MAX : WAITING_MS_MAX)) break;
			if (time - since > (this.#isRefused(key) ? REFUSED_WAITING_MS_MAX : WAITING_MS_MAX)) {
				waiting.splice(at, 1);
				this.#turnAway(socket);
				dropped++;
			} else at++;
		}
	}

	/** Serves those that wait as far as there is room; one whose own address is the crowd does not hold up the others. */
	#serveWaiting(): void {
		this.#dropOld();
		let served = 0;
		for (let at = this.#waiting.length - 1; at >= 0 && served < SERVED_PER_TURN_MAX; at--) {
			const next = this.#waiting[at]!;
			const isRefused = this.#isRefused(next.key);
			if (isRefused && this.#now() - this.#pacedAt < PACE_MS) continue;
			if (!this.#guests.makeRoom(next.key)) continue;
			if (isRefused) this.#pacedAt = this.#now();
			this.#waiting.splice(at, 1);
			this.#begin(next);
			served++;
		}
		if (served === SERVED_PER_TURN_MAX) this.#serveSoon();
		this.#watch();
	}

	#watch(): void {
		if (this.#waiting.length === 0 || this.#cancelTimer || this.#isClosed) return;
		this.#cancelTimer = this.#clock.after(PACE_MS, () => {
			this.#cancelTimer = undefined;
			this.#serveWaiting();
		});
	}

	/** One turn of the loop later, once for all that leave in it. */
	#serveSoon(): void {
		if (this.#waiting.length === 0 || this.#isServing) return;
		this.#isServing = true;
		setImmediate(() => {
			this.#isServing = false;
			if (!this.#isClosed) this.#serveWaiting();
		});
	}
}
