/** Connections of a port before they send a token: few are served at a time, and further ones wait unread. */

import type { Socket } from "node:net";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { EdgeLimits } from "../port.ts";
import { clientKey } from "./strangers.ts";

export interface Lobby {
	/** Serves the connection now, or once there is room. It has read nothing so far. */
	enter(socket: Socket, serve: () => void): void;
	/** Its request is being answered, or it has sent a token: it takes no room here. */
	leave(socket: Socket): void;
	/** It is idle again, and has not sent a token. */
	comeBack(socket: Socket): void;
	/** Connections that were closed for want of room, since start. */
	readonly refused: number;
	/** Closes those that wait, now and later. */
	close(): void;
}

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

/** `isRefused`: whether a client made too many calls without a token. */
export function createLobby(limits: LobbyLimits, clock: Clock, isRefused: (key: string) => boolean): Lobby {
	const now = elapsing(clock);
	const guests = new Map<Socket, Guest>();
	const byClient = new Map<string, Map<Socket, Guest>>();
	/** The last to come is served first: connections that only hold their place do not delay it. */
	const waiting: WaitingGuest[] = [];
	let refused = 0;
	let isClosed = false;
	let isServing = false;
	let pacedAt = Number.NEGATIVE_INFINITY;
	let cancelTimer: (() => void) | undefined;

	const add = (socket: Socket, key: string) => {
		const guest = { socket, key, since: now() };
		guests.set(socket, guest);
		const own = byClient.get(key) ?? new Map<Socket, Guest>();
		byClient.set(key, own.set(socket, guest));
	};
	const remove = (socket: Socket): boolean => {
		const guest = guests.get(socket);
		if (!guest) return false;
		guests.delete(socket);
		const own = byClient.get(guest.key);
		own?.delete(socket);
		if (own?.size === 0) byClient.delete(guest.key);
		return true;
	};
	const largest = () => {
		let most = new Map<Socket, Guest>();
		for (const own of byClient.values()) if (own.size > most.size) most = own;
		return most;
	};
	const crowdOf = (key: string): Map<Socket, Guest> | undefined => {
		const own = byClient.get(key);
		if (own && own.size >= limits.tokenlessConnectionsPerClientMax) return own;
		return guests.size >= limits.tokenlessConnectionsMax ? largest() : undefined;
	};
	/** Closes the oldest of a crowd if its time is over; says whether there is room now. */
	const makeRoom = (crowd: ReadonlyMap<Socket, Guest>): boolean => {
		for (const { socket, since } of crowd.values()) {
			if (now() - since < GRACE_MS) return false;
			remove(socket);
			refused++;
			socket.destroy();
			return true;
		}
		return true;
	};
	const hasRoom = (key: string): boolean => {
		const crowd = crowdOf(key);
		return crowd === undefined || makeRoom(crowd);
	};
	const begin = ({ socket, key, serve }: WaitingGuest) => {
		if (socket.destroyed) return;
		add(socket, key);
		serve();
	};
	/** A client that has waited this long has given up. */
	const dropOld = () => {
		const time = now();
		const isOld = ({ key, since }: WaitingGuest) =>
			time - since > (isRefused(key) ? REFUSED_WAITING_MS_MAX : WAITING_MS_MAX);
		for (let at = 0, dropped = 0; at < waiting.length && dropped < DROPPED_PER_TURN_MAX; ) {
			const next = waiting[at]!;
			const isCrowded = waiting.length > REFUSED_WAITING_MIN;
			if (time - next.since <= (isCrowded ? REFUSED_WAITING_MS_MAX : WAITING_MS_MAX)) break;
			if (isOld(next)) {
				waiting.splice(at, 1);
				next.socket.destroy();
				dropped++;
				refused++;
			} else at++;
		}
	};
	/** Serves those that wait as far as there is room; one whose own address is the crowd does not hold up the others. */
	const serveWaiting = () => {
		dropOld();
		let served = 0;
		for (let at = waiting.length - 1; at >= 0 && served < SERVED_PER_TURN_MAX; at--) {
			const next = waiting[at]!;
			if (isRefused(next.key) && now() - pacedAt < PACE_MS) continue;
			if (!hasRoom(next.key)) continue;
			if (isRefused(next.key)) pacedAt = now();
			waiting.splice(at, 1);
			begin(next);
			served++;
		}
		if (served === SERVED_PER_TURN_MAX) left();
		watch();
	};
	const watch = () => {
		if (waiting.length === 0 || cancelTimer || isClosed) return;
		cancelTimer = clock.after(PACE_MS, () => {
			cancelTimer = undefined;
			serveWaiting();
		});
	};
	/** One turn of the loop later, once for all that leave in it. */
	const left = () => {
		if (waiting.length === 0 || isServing) return;
		isServing = true;
		setImmediate(() => {
			isServing = false;
			if (!isClosed) serveWaiting();
		});
	};
	return {
		enter(socket, serve) {
			if (isClosed) return void socket.destroy();
			socket.once("close", () => remove(socket) && left());
			const next = { socket, key: keyOf(socket), since: now(), serve };
			if (!isRefused(next.key) && hasRoom(next.key)) return begin(next);
			waiting.push(next);
			if (waiting.length > WAITING_MAX) {
				refused++;
				waiting.shift()!.socket.destroy();
			}
			watch();
		},
		leave(socket) {
			if (remove(socket)) left();
		},
		comeBack(socket) {
			if (socket.destroyed || guests.has(socket)) return;
			const key = keyOf(socket);
			const crowd = crowdOf(key);
			if (crowd) makeRoom(crowd);
			add(socket, key);
		},
		get refused() {
			return refused;
		},
		close() {
			isClosed = true;
			cancelTimer?.();
			for (const { socket } of waiting.splice(0)) socket.destroy();
		},
	};
}
