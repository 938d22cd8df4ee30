/**
 * Messages from every relay: each event once, the oldest first. A relay's position is the time of the newest stored message; listening resumes
 * a little before it. Wraps are dated back, so they are requested from further back and judged by their content.
 */

import type { InboundMessage, Tools } from "@nexus-stream/adapter";
import { type ConfirmationQueue, createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { keepListening } from "@nexus-stream/adapter/serve/listen";
import type { Event } from "nostr-tools/core";
import type { Filter } from "nostr-tools/filter";
import { verifyEvent } from "nostr-tools/pure";
import { COMMENT, GIFT_WRAP, NOTE, THREAD_START } from "./events.ts";
import { type NostrIdentity, readPublic, readRumor } from "./inbound.ts";
import type { Keys } from "./keys.ts";
import { BACKDATED_S, unwrap } from "./private.ts";
import type { Relay } from "./relay.ts";

/** People's clocks differ, and a relay may get an event late. The daemon knows what it has seen. */
const OVERLAP_S = 15 * 60;
const TAKEN_MAX = 20_000;
/** Stored events that are asked for after a pause. */
const STORED_MAX = 500;

const BEGUN = "begun";

export interface NostrInboxOptions {
	relays: readonly Relay[];
	keys: Keys;
	me: NostrIdentity;
	emit(message: InboundMessage): Promise<void>;
	signal: AbortSignal;
	tools: Tools;
}

/** A message and the time by which it is judged; undefined: nothing for us. */
interface DatedMessage {
	message: InboundMessage | undefined;
	at: number;
}

export class NostrInbox {
	readonly #options: NostrInboxOptions;
	readonly #taken = new Map<string, Promise<void>>();
	readonly #failing = new Map<string, string>();

	constructor(options: NostrInboxOptions) {
		this.#options = options;
	}

	async listen(): Promise<void> {
		const { relays, signal, tools } = this.#options;
		// Messages from before the account was first opened are skipped.
		if (tools.state.get(BEGUN) === undefined) tools.state.set(BEGUN, String(this.#now()));
		const follow = (relay: Relay) => {
			const listening = (error?: string) => this.#tell(relay.url, error);
			return keepListening({ ...tools, round: () => this.#round(relay), pauseMs: 0, signal, listening });
		};
		await Promise.all(relays.map(follow));
	}

	async #round(relay: Relay): Promise<void> {
		const { keys, signal } = this.#options;
		const since = this.#position(relay.url) - OVERLAP_S;
		const named = { "#p": [keys.pubkey], limit: STORED_MAX };
		const filters: Filter[] = [
			{ ...named, kinds: [NOTE, THREAD_START, COMMENT], since },
			{ ...named, kinds: [GIFT_WRAP], since: since - BACKDATED_S },
		];
		await relay.reach();
		this.#tell(relay.url, undefined);
		await relay.listen(filters, this.#listener(relay.url, since), signal);
	}

	/** Stored events come newest first: they are taken when all are there, in their order. */
	#listener(url: string, since: number) {
		let stored: DatedMessage[] | undefined = [];
		const heard = createConfirmationQueue();
		let chain = Promise.resolve();
		const inOrder = (work: () => Promise<void>): Promise<void> => {
			chain = chain.then(work);
			return chain;
		};
		return {
			event: (event: Event): Promise<void> => {
				const told = this.#taken.has(event.id) ? undefined : this.#read(event, since);
				if (!told) return Promise.resolve();
				if (!stored) return inOrder(() => this.#take(url, told, heard));
				stored.push(told);
				return Promise.resolve();
			},
			stored: (): Promise<void> => {
				const all = (stored ?? []).toSorted((a, b) => a.at - b.at);
				stored = undefined;
				return inOrder(async () => {
					for (const told of all) await this.#take(url, told, heard);
				});
			},
		};
	}

	#read(event: Event, since: number): DatedMessage | undefined {
		const { keys, me, tools } = this.#options;
		try {
			if (event.kind === GIFT_WRAP) {
				const rumor = unwrap(event, keys);
				return rumor.created_at < since ? undefined : { message: readRumor(rumor, me), at: rumor.created_at };
			}
			if (!verifyEvent(event)) throw new Error("its signature is wrong");
			return { message: readPublic(event, me), at: event.created_at };
		} catch (cause) {
			tools.log.debug({ event: String(event.id), error: String(cause) }, "skipped an event");
			return undefined;
		}
	}

	async #take(url: string, { message, at }: DatedMessage, heard: ConfirmationQueue): Promise<void> {
		if (!message) return;
		const known = this.#taken.get(message.eventId);
		const work = known ?? this.#options.emit(message);
		if (!known) this.#remember(message.eventId, work);
		await heard.add(work, () => {
			// A time in the future would hide everything until then.
			const safe = Math.min(at, this.#now());
			if (safe > this.#position(url)) this.#options.tools.state.set(positionKey(url), String(safe));
		});
	}

	#remember(id: string, work: Promise<void>): void {
		this.#taken.set(id, work);
		work.catch(() => this.#taken.delete(id));
		if (this.#taken.size > TAKEN_MAX) this.#taken.delete(this.#taken.keys().next().value ?? "");
	}

	#position(url: string): number {
		const { state } = this.#options.tools;
		return Number(state.get(positionKey(url)) ?? state.get(BEGUN) ?? this.#now());
	}

	/** Listening fails when no relay is connected. */
	#tell(url: string, error: string | undefined): void {
		const { relays, tools } = this.#options;
		if (error === undefined) this.#failing.delete(url);
		else this.#failing.set(url, error);
		if (this.#failing.size < relays.length) tools.listening();
		else tools.listening([...this.#failing.values()].join("; "));
	}

	readonly #now = (): number => Math.floor(this.#options.tools.clock.now() / 1000);
}

const positionKey = (url: string): string => `heard:${url}`;
