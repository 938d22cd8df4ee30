/**
 * One relay: a connection that is made when it is needed. nostr-tools has a client, too; here every event needs a certain outcome (was it sent,
 * was it answered?), and a connection that breaks must not be an unhandled rejection.
 */

import { PlatformError } from "@nexus-stream/adapter";
import { reasonOf } from "@nexus-stream/adapter/platform/network";
import { unlessAborted } from "@nexus-stream/adapter/serve/listen";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { Event } from "nostr-tools/core";
import type { Filter } from "nostr-tools/filter";
import { makeAuthEvent } from "nostr-tools/nip42";
import { finalizeEvent } from "nostr-tools/pure";
import { type RawData, WebSocket } from "ws";
import type { Keys } from "./keys.ts";

const CONNECT_MS = 10_000;
/** How long a relay may take to answer an event. */
const ANSWER_MS = 10_000;
/** A connection that answers no ping within this time is dead. */
const PING_MS = 30_000;
const FRAME_BYTES_MAX = 1_000_000;
/** Events that wait for the reader; beyond that the connection is not read. */
const WAITING_MAX = 200;
/** A relay that cannot be reached gets no ephemeral events for so long. */
const REST_MS = 5000;

/** The outcome of an event at one relay. */
export type RelayOutcome =
	| { at: "accepted" }
	/** It answered no. */
	| { at: "refused"; reason: string }
	/** It never got the event. */
	| { at: "unreached"; reason: string }
	/** It got the event and said nothing. */
	| { at: "unknown"; reason: string };

export interface RelayListener {
	/** Resolves when the event is safe. A rejection ends the subscription. */
	event(event: Event): Promise<void>;
	/** Everything that was stored has come. */
	stored(): Promise<void>;
}

interface RelayConnection {
	socket: WebSocket;
	/** Answers that are waited for, by event id. */
	answers: Map<string, (outcome: RelayOutcome) => void>;
	listener?: { filters: readonly Filter[]; to: RelayListener; end(cause: unknown): void };
	/** Resolves once the relay has taken our proof of identity. */
	authenticated?: Promise<RelayOutcome>;
	waiting: number;
	wasOpen: boolean;
}

const SUBSCRIPTION = "inbox";

/** The beginning of every line of a relay. */
const LINE_TYPE = /^[A-Z]+(?:-[A-Z]+)*$/;

export class Relay {
	readonly url: string;
	readonly #keys: Keys;
	#connecting: Promise<RelayConnection> | undefined;
	#socket: WebSocket | undefined;
	#restUntil = 0;

	constructor(url: string, keys: Keys) {
		this.url = url;
		this.#keys = keys;
	}

	/** Never rejects. */
	async publish(event: Event, signal?: AbortSignal): Promise<RelayOutcome> {
		let connection: RelayConnection;
		try {
			connection = await this.#connected();
		} catch (cause) {
			return { at: "unreached", reason: reasonOf(cause) };
		}
		const outcome = await this.#ask(connection, ["EVENT", event], event.id, signal);
		if (outcome.at !== "refused" || !wantsProof(outcome.reason)) return outcome;
		const proof = await connection.authenticated;
		if (proof?.at !== "accepted") return outcome;
		return await this.#ask(connection, ["EVENT", event], event.id, signal);
	}

	/** For ephemeral events: not awaited, and dropped when they cannot be sent now. */
	pass(event: Event): void {
		if (performance.now() < this.#restUntil) return;
		this.#connected().then(
			(connection) => send(connection, ["EVENT", event]),
			() => {},
		);
	}

	async reach(): Promise<void> {
		await this.#connected();
	}

	/** Until the signal aborts; rejects when the connection or the subscription ends before. */
	async listen(filters: readonly Filter[], to: RelayListener, signal: AbortSignal): Promise<void> {
		const connection = await this.#connected();
		if (connection.socket.readyState !== WebSocket.OPEN) throw this.#broken("the connection broke");
		const { promise, reject } = Promise.withResolvers<void>();
		connection.listener = { filters, to, end: reject };
		send(connection, ["REQ", SUBSCRIPTION, ...filters]);
		try {
			await unlessAborted(signal, promise);
		} finally {
			delete connection.listener;
			send(connection, ["CLOSE", SUBSCRIPTION]);
		}
	}

	close(): void {
		this.#connecting = undefined;
		this.#socket?.terminate();
	}

	readonly #broken = (reason: string): PlatformError => new PlatformError("unavailable", `${this.url}: ${reason}`);

	#connected(): Promise<RelayConnection> {
		this.#connecting ??= this.#connect();
		return this.#connecting;
	}

	#connect(): Promise<RelayConnection> {
		const { promise, resolve, reject } = Promise.withResolvers<RelayConnection>();
		const options = { handshakeTimeout: CONNECT_MS, maxPayload: FRAME_BYTES_MAX, perMessageDeflate: false };
		const socket = new WebSocket(this.url, options);
		const connection: RelayConnection = { socket, answers: new Map(), waiting: 0, wasOpen: false };
		let reason = "the connection broke";
		const alive = this.#ping(socket);
		this.#socket = socket;
		socket.on("open", () => {
			connection.wasOpen = true;
			resolve(connection);
		});
		socket.on("message", (data) => this.#read(connection, data));
		socket.on("error", (cause) => {
			reason = reasonOf(cause);
		});
		socket.on("close", () => {
			clearInterval(alive);
			if (this.#connecting === promise) this.#connecting = undefined;
			const error = this.#broken(reason);
			if (!connection.wasOpen) this.#restUntil = performance.now() + REST_MS;
			reject(error);
			connection.listener?.end(error);
			for (const answer of [...connection.answers.values()]) answer({ at: "unknown", reason });
		});
		// The caller that waits for the connection gets the failure.
		promise.catch(() => {});
		return promise;
	}

	#ping(socket: WebSocket): NodeJS.Timeout {
		let heard = true;
		socket.on("pong", () => {
			heard = true;
		});
		return setInterval(() => {
			if (!heard) return socket.terminate();
			if (socket.readyState !== WebSocket.OPEN) return;
			heard = false;
			socket.ping();
		}, PING_MS).unref();
	}

	#ask(connection: RelayConnection, line: unknown[], id: string, signal?: AbortSignal): Promise<RelayOutcome> {
		const { promise, resolve } = Promise.withResolvers<RelayOutcome>();
		if (connection.socket.readyState !== WebSocket.OPEN) {
			return Promise.resolve({ at: "unreached", reason: "the connection broke" });
		}
		const late = () => resolve({ at: "unknown", reason: `no answer within ${ANSWER_MS} ms` });
		const cancel = systemClock.after(ANSWER_MS, late);
		const left = () => resolve({ at: "unknown", reason: "no answer in time" });
		signal?.addEventListener("abort", left, { once: true });
		connection.answers.set(id, resolve);
		send(connection, line);
		return promise.finally(() => {
			cancel();
			signal?.removeEventListener("abort", left);
			if (connection.answers.get(id) === resolve) connection.answers.delete(id);
		});
	}

	#read(connection: RelayConnection, data: RawData): void {
		let line: unknown;
		try {
			line = JSON.parse(String(data as Buffer));
		} catch {}
		if (!Array.isArray(line) || !LINE_TYPE.test(String(line[0]))) {
			// The peer is not a relay.
			connection.socket.terminate();
			return;
		}
		switch (line[0]) {
			case "OK":
				connection.answers.get(String(line[1]))?.(outcomeOf(line[2] === true, String(line[3] ?? "")));
				break;
			case "EVENT":
				this.#hand(connection, line[2] as Event);
				break;
			case "EOSE":
				this.#settle(connection, connection.listener?.to.stored());
				break;
			case "CLOSED":
				void this.#subscriptionEnded(connection, String(line[2] ?? ""));
				break;
			case "AUTH":
				connection.authenticated = this.#authenticate(connection, String(line[1]));
				break;
			default:
		}
	}

	#hand(connection: RelayConnection, event: Event): void {
		const { listener, socket } = connection;
		if (!listener || typeof event !== "object" || event === null) return;
		connection.waiting++;
		if (connection.waiting > WAITING_MAX) socket.pause();
		const taken = listener.to.event(event).finally(() => {
			connection.waiting--;
			if (socket.isPaused && connection.waiting <= WAITING_MAX / 2) socket.resume();
		});
		this.#settle(connection, taken);
	}

	#settle({ listener }: RelayConnection, work: Promise<void> | undefined): void {
		work?.catch((cause: unknown) => listener?.end(cause));
	}

	async #subscriptionEnded(connection: RelayConnection, reason: string): Promise<void> {
		const { listener } = connection;
		if (!listener) return;
		if (wantsProof(reason) && (await connection.authenticated)?.at === "accepted") {
			delete connection.authenticated;
			send(connection, ["REQ", SUBSCRIPTION, ...listener.filters]);
			return;
		}
		listener.end(new PlatformError("unavailable", `${this.url} ended the subscription: ${reason}`));
	}

	/** NIP-42. */
	#authenticate(connection: RelayConnection, challenge: string): Promise<RelayOutcome> {
		const proof = finalizeEvent(makeAuthEvent(this.url, challenge), this.#keys.secret);
		return this.#ask(connection, ["AUTH", proof], proof.id);
	}
}

/** A relay that has the event says so in either way. */
const outcomeOf = (ok: boolean, reason: string): RelayOutcome =>
	ok || reason.startsWith("duplicate:") ? { at: "accepted" } : { at: "refused", reason };

/** Taken once we have shown who we are. */
const wantsProof = (reason: string): boolean => /^(?:auth-required|restricted):/.test(reason);

function send({ socket }: RelayConnection, line: unknown[]): void {
	if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(line));
}
