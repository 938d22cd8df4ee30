/** A real relay (NIP-01, as a library) on a port of this machine, an agent and people with keys of their own, and faults on demand. */

import { createHash } from "node:crypto";
import type { AddressInfo } from "node:net";
import { type AnswerPiece, CHAT_MESSAGE, GIFT_WRAP, NOTE, STREAM } from "@nexus-stream/platforms/nostr/events";
import { type Keys, readKeys } from "@nexus-stream/platforms/nostr/keys";
import { type Rumor, rumorOf, unwrap, wrapFor } from "@nexus-stream/platforms/nostr/private";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import { EventRepository, type Filter, LogLevel, type Event as RelayEvent } from "@nostr-relay/common";
import { NostrRelay } from "@nostr-relay/core";
import { Validator } from "@nostr-relay/validator";
import type { Event } from "nostr-tools/core";
import { matchFilter } from "nostr-tools/filter";
import { finalizeEvent } from "nostr-tools/pure";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import { createFaults, type Fake, type FakeCall, type FakeFault, type FakeOptions } from "./fake.ts";

export interface NostrFake extends Fake {
	/** Every event that came, ephemeral ones included, as often as it came. */
	readonly received: readonly Event[];
	stored(filter: Filter): Event[];
	raw(to: string): (Event | Rumor)[];
	/** Returns the text that followers see of an answer while the adapter streams it, or undefined before the first event. */
	draft(to: string): string | undefined;
	readonly connections: number;
	put(event: Event): Promise<void>;
	dropConnections(): void;
}

export interface NostrFakeOptions extends FakeOptions {
	port?: number;
	/** It serves only authenticated clients. */
	isClosed?: boolean;
}

const keysOf = (name: string): Keys => readKeys(createHash("sha256").update(`nostr ${name}`).digest("hex"));

export const AGENT = keysOf("agent");
const AGENT_SECRET = Buffer.from(AGENT.secret).toString("hex");

const people = new Map<string, Keys>();

export function person(name: string): Keys {
	const keys = keysOf(name);
	people.set(keys.pubkey, keys);
	return keys;
}

class Memory extends EventRepository {
	events: RelayEvent[] = [];

	isSearchSupported(): boolean {
		return false;
	}

	upsert(event: RelayEvent): { isDuplicate: boolean } {
		const replaces = event.kind === 0 || (event.kind >= 10_000 && event.kind < 20_000);
		if (replaces) {
			this.events = this.events.filter(({ kind, pubkey }) => kind !== event.kind || pubkey !== event.pubkey);
		}
		this.events.push(event);
		return { isDuplicate: false };
	}

	find(filter: Filter): RelayEvent[] {
		const found = this.events.filter((event) => matchFilter(filter as never, event));
		return found.toSorted((a, b) => b.created_at - a.created_at).slice(0, filter.limit ?? 500);
	}

	async destroy(): Promise<void> {}
}

const NAMES: Readonly<Record<number, string>> = {
	0: "profile",
	1: "reply",
	1111: "reply",
	10050: "inbox relays",
	21111: "stream",
	24111: "typing",
	24112: "typing",
};

const tagOf = ({ tags }: { tags: string[][] }, wanted: string): string =>
	tags.find(([name]) => name === wanted)?.[1] ?? "";

function nameOf(event: Event): string {
	if (event.kind !== GIFT_WRAP) return `EVENT ${NAMES[event.kind] ?? event.kind}`;
	return tagOf(event, "p") === AGENT.pubkey ? "EVENT copy" : "EVENT wrap";
}

const inThread = (event: Event, root: string): boolean =>
	event.tags.some(([name, id]) => /^e$/i.test(name ?? "") && id === root);

/** The relay behind its sockets, with recorded calls and with faults on demand. */
class FaultyRelay {
	readonly calls: FakeCall[] = [];
	readonly received: Event[] = [];
	readonly faults = createFaults();
	readonly memory = new Memory();
	readonly relay: NostrRelay;
	readonly begun: number;
	readonly #clock: Clock;
	readonly #isClosed: boolean;
	readonly #validator = new Validator({ maxContentLength: 200_000 });

	constructor(clock: Clock, isClosed: boolean) {
		this.#clock = clock;
		this.#isClosed = isClosed;
		this.begun = clock.now();
		this.relay = new NostrRelay(this.memory, {
			hostname: isClosed ? "127.0.0.1" : undefined,
			logLevel: LogLevel.ERROR,
			filterResultCacheTtl: 0,
			eventHandlingResultCacheTtl: 0,
		});
	}

	connect(socket: WebSocket): void {
		const { relay } = this;
		relay.handleConnection(socket, "127.0.0.1");
		socket.on("message", (data) => {
			this.#accept(socket, data).catch((cause: unknown) => socket.send(JSON.stringify(["NOTICE", String(cause)])));
		});
		socket.on("close", () => relay.handleDisconnect(socket));
		socket.on("error", () => {});
	}

	async #accept(socket: WebSocket, data: RawData): Promise<void> {
		const line = await this.#validator.validateIncomingMessage(data as Buffer);
		if (line[0] !== "EVENT") {
			await this.relay.handleMessage(socket, line);
			return;
		}
		if (this.#isClosed && !this.relay.isAuthorized(socket)) {
			socket.send(JSON.stringify(["OK", line[1].id, false, "auth-required: who are you?"]));
			return;
		}
		await this.#take(socket, line as ["EVENT", Event]);
	}

	async #take(socket: WebSocket, line: ["EVENT", Event]): Promise<void> {
		const [, event] = line;
		const name = nameOf(event);
		const fault = this.faults.next(name);
		const status = fault && ["hang", "reset_before"].includes(fault.kind) ? 0 : fault?.kind === "429" ? 429 : 200;
		const call: FakeCall = {
			name,
			at: this.#clock.now() - this.begun,
			to: tagOf(event, "e") || tagOf(event, "p"),
			status,
			body: event.kind === 24_112 ? { ...event, stop: true } : event,
		};
		if (fault && fault.kind !== "watched") call.fault = fault.kind;
		this.calls.push(call);
		await this.#react(socket, line, fault);
		// A hanging call has no answer, so its duration is unknown.
		if (fault?.kind !== "hang") call.ms = this.#clock.now() - this.begun - call.at;
	}

	async #react(socket: WebSocket, line: ["EVENT", Event], fault: FakeFault | undefined): Promise<void> {
		const [, event] = line;
		const refuse = (reason: string) => socket.send(JSON.stringify(["OK", event.id, false, reason]));
		const handle = async () => {
			this.received.push(event);
			await this.relay.handleMessage(socket, line);
		};
		switch (fault?.kind) {
			case "429":
				return refuse("rate-limited: slow down");
			case "5xx":
				return refuse("error: the disk is full");
			case "hang":
				return;
			case "reset_before":
				return socket.terminate();
			case "reset_after_accept":
			case "foreign":
				this.received.push(event);
				await this.relay.handleEvent(event);
				if (fault.answer?.body !== undefined) return socket.send(wordsOf(fault.answer.body));
				return socket.terminate();
			case "slow":
				await sleep(this.#clock, fault.ms ?? 200);
				return await handle();
			case "watched": {
				const name = nameOf(event);
				if (fault.watch?.arrived(name) === "lost") return;
				await handle();
				return fault.watch?.answered(name);
			}
			default:
				await handle();
		}
	}
}

export async function createNostrFake(options: NostrFakeOptions = {}): Promise<NostrFake> {
	const { clock = systemClock, port = 0, isClosed = false } = options;
	const faulty = new FaultyRelay(clock, isClosed);
	const { relay, memory, begun, calls, received, faults } = faulty;
	const server = new WebSocketServer({ port, host: "127.0.0.1" });
	await new Promise<void>((resolve) => server.once("listening", resolve));
	server.on("connection", (socket) => faulty.connect(socket));
	const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/`;
	const raw = (to: string): (Event | Rumor)[] => {
		if (!to.startsWith("thread:")) return rumorsFor(memory.events as Event[], to);
		const root = to.slice("thread:".length);
		return (memory.events as Event[]).filter((event) => event.pubkey === AGENT.pubkey && inThread(event, root));
	};
	const dropConnections = () => {
		for (const socket of server.clients) socket.terminate();
	};
	return {
		url,
		begun,
		calls,
		received,
		settings: { secret_key: AGENT_SECRET, relays: url },
		stored: (filter) => memory.find(filter) as Event[],
		raw,
		visible: (to) => raw(to).map(({ content }) => content),
		draft: (to) => draftOf(received, to.slice("thread:".length)),
		get connections() {
			return server.clients.size;
		},
		fault: (fault) => faults.set(fault),
		async put(event) {
			await relay.handleEvent(event);
		},
		dropConnections,
		async inject({ text, from = "ann", to }) {
			await relay.handleEvent(saidBy(person(from), text, to, Math.floor(clock.now() / 1000)));
		},
		async close() {
			dropConnections();
			await new Promise<void>((resolve) => server.close(() => resolve()));
			await relay.destroy();
		},
	};
}

const wordsOf = (body: string | object): string => (typeof body === "string" ? body : JSON.stringify(body));

/** A person's app shows a rumor once, however often it was wrapped. */
function rumorsFor(events: readonly Event[], to: string): Rumor[] {
	const keys = people.get(to);
	if (!keys) return [];
	const found = new Map<string, Rumor>();
	for (const event of events) {
		if (event.kind !== GIFT_WRAP || tagOf(event, "p") !== to) continue;
		const rumor = unwrap(event, keys);
		found.set(rumor.id, rumor);
	}
	return [...found.values()];
}

export const readPieces = (pieces: readonly AnswerPiece[]): string =>
	pieces.reduce((text, { from, content }) => text.slice(0, from) + content, "");

/** The pieces of a thread's newest stream, as they came. */
export function piecesOf(events: readonly Event[], root: string): AnswerPiece[] {
	const all = events.filter((event) => event.kind === STREAM && inThread(event, root));
	const newest = all.at(-1);
	return all
		.filter((event) => newest && tagOf(event, "stream") === tagOf(newest, "stream"))
		.map((event) => ({
			from: Number(tagOf(event, "from")),
			sequence: Number(tagOf(event, "sequence")),
			content: event.content,
		}));
}

function draftOf(events: readonly Event[], root: string): string | undefined {
	const last = events.findLast((event) => inThread(event, root) && NAMES[event.kind] !== "typing");
	return last?.kind === STREAM ? readPieces(piecesOf(events, root)) : undefined;
}

/** A person writes: privately, in a thread, or (`public`) begins one. */
function saidBy(keys: Keys, text: string, to: string | undefined, created_at: number): Event {
	const toUs = ["p", AGENT.pubkey];
	if (to === undefined) {
		const rumor = rumorOf(keys, { kind: CHAT_MESSAGE, created_at, tags: [toUs] }, text);
		return wrapFor(keys, rumor, AGENT.pubkey);
	}
	const above = to.startsWith("thread:") ? [["e", to.slice("thread:".length), "", "root"]] : [];
	const content = `nostr:${AGENT.npub} ${text}`;
	return finalizeEvent({ kind: NOTE, created_at, tags: [...above, toUs], content }, keys.secret);
}
