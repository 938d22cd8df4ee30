/** An account on Nostr: its key, and the relays that it reads and writes. */

import { createHash } from "node:crypto";
import {
	type CreatedMessage,
	type Pace,
	PlatformError,
	type SendOptions,
	type Session,
	type Settings,
	type Target,
	type Tools,
} from "@nexus-stream/adapter";
import type { Emit, Listening, Previewing } from "@nexus-stream/adapter/platform/session";
import type { Activity } from "@nexus-stream/adapter/port";
import { keepListening } from "@nexus-stream/adapter/serve/listen";
import type { Event, EventTemplate } from "nostr-tools/core";
import { finalizeEvent } from "nostr-tools/pure";
import { NOSTR_ROOM } from "../chats.ts";
import {
	CHAT_MESSAGE,
	factTags,
	INBOX_RELAYS,
	type Intent,
	isThread,
	openIntents,
	PROFILE,
	type Tags,
	threadOf,
} from "./events.ts";
import { MEMBERS_MAX } from "./inbound.ts";
import { NostrInbox } from "./inbox.ts";
import { type Keys, readKeys, readPubkey } from "./keys.ts";
import { Pool, readQuorum, readRelays } from "./pool.ts";
import { rumorOf, wrapFor } from "./private.ts";
import { LOOK_GAPS, type PublisherLimits, readLimits } from "./publisher.ts";
import { NostrStreams } from "./streams.ts";

type NostrSettings = ProfileSettings & Settings<"secret_key" | "relays" | "quorum" | "flush_ms" | "flush_ms_max">;

export class NostrSession implements Session, Previewing, Listening {
	readonly previewing = this;
	readonly listening = this;
	readonly toolsApart = true;
	readonly #settings: NostrSettings;
	readonly #keys: Keys;
	readonly #urls: readonly string[];
	readonly #pool: Pool;
	readonly #tools: Tools;
	readonly #fixIntent: ReturnType<typeof openIntents>;
	readonly #limits: PublisherLimits;
	readonly #streams: NostrStreams;

	constructor(settings: NostrSettings, tools: Tools) {
		this.#settings = settings;
		this.#urls = readRelays(settings.relays);
		const quorum = readQuorum(settings.quorum, this.#urls.length);
		this.#keys = readKeys(settings.secret_key);
		this.#pool = new Pool(this.#urls, quorum, this.#keys);
		this.#tools = tools;
		this.#fixIntent = openIntents(tools);
		this.#limits = readLimits(settings.flush_ms, settings.flush_ms_max);
		this.#streams = new NostrStreams(tools.clock, this.#limits, (event) => this.#pool.pass(this.#signed(event)));
	}

	/** Private chats show nothing before the end: ephemeral events are plain text, and even their times would tell. */
	style(target: Target): "preview" | "whole" {
		return isThread(target) ? "preview" : "whole";
	}

	pace(): Pace {
		return { targetIntervalMs: this.#limits.gapMs * LOOK_GAPS };
	}

	/** A second try makes the same event, so it can be repeated after any outcome. */
	async create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage> {
		const { nonce, inDoubt } = options;
		const known = this.#tools.sent.of(nonce);
		if (known !== undefined) return { messageId: known };
		const intent = await this.#fixIntent(nonce, () => this.#intentOf(target, text, options));
		if (inDoubt && intent.text !== digestOf(text)) {
			throw new PlatformError("unknown_outcome", "The message may have been sent with another text. Look at the chat.");
		}
		if (isThread(target)) this.#streams.end(target, text, options);
		try {
			return await this.#publish(target, intent, text, options.signal);
		} catch (cause) {
			// A refusal of this try says nothing about one before it.
			if (!inDoubt || !(cause instanceof PlatformError)) throw cause;
			throw new PlatformError("unknown_outcome", cause.message, { cause });
		}
	}

	/** No look-up: creating it again is creating the same event. Undefined leads to that. */
	async find(): Promise<undefined> {}

	async preview(target: Target, draftId: number, text: string, options: SendOptions): Promise<void> {
		this.#streams.show(target, draftId, text, options);
	}

	/** Strangers read along: of a tool they see the name, never what it is called with. */
	async typing(target: Target, on: boolean, { tool = "" }: Activity = {}): Promise<void> {
		if (isThread(target)) this.#streams.typing(target, on, on ? tool : "");
	}

	async monitor(emit: Emit, signal: AbortSignal): Promise<void> {
		const [tools, keys] = [this.#tools, this.#keys];
		const me = { pubkey: keys.pubkey, wrote: (id: string) => tools.sent.has(id) };
		const inbox = new NostrInbox({ relays: this.#pool.relays, keys, me, emit, signal, tools });
		await Promise.all([inbox.listen(), this.#introduce(signal)]);
	}

	async health() {
		const { count, failures } = await this.#pool.reachable();
		const ok = count >= this.#pool.quorum;
		const detail = `${this.#keys.npub}, ${count} of ${this.#urls.length} relays${failures.map((each) => `; ${each}`).join("")}`;
		return { ok, detail };
	}

	async close(): Promise<void> {
		this.#streams.close();
		await this.#pool.close();
	}

	/** Tried until it is out; nothing else waits for it. */
	async #introduce(signal: AbortSignal): Promise<void> {
		const { clock, log } = this.#tools;
		const done = new AbortController();
		const round = async () => {
			await this.#publishProfile(signal);
			done.abort();
		};
		try {
			await keepListening({ round, pauseMs: 0, signal: AbortSignal.any([signal, done.signal]), clock, log });
		} catch (cause) {
			log.warn({ error: String(cause) }, "the relays refuse the profile");
		}
	}

	/** Published again only when it has changed. */
	async #publishProfile(signal: AbortSignal): Promise<void> {
		const { state, clock } = this.#tools;
		const drafts = profileDrafts(this.#settings, this.#urls);
		const digest = createHash("sha256").update(JSON.stringify(drafts)).digest("hex");
		if (state.get(PUBLISHED) === digest) return;
		const created_at = Math.floor(clock.now() / 1000);
		for (const draft of drafts) await this.#pool.publish(this.#signed({ ...draft, created_at }), signal);
		state.set(PUBLISHED, digest);
	}

	#intentOf(target: Target, said: string, { nonce, facts = {} }: SendOptions): Intent {
		const created_at = Math.floor(this.#tools.clock.now() / 1000);
		const text = digestOf(said);
		// The same words twice within a second would be one event.
		const own = [["message", nonce], ...factTags(facts)];
		if (isThread(target)) {
			const { kind, tags } = threadOf(target);
			return { kind, created_at, tags: [...tags, ...own], text };
		}
		const people: Tags = this.#recipients(target).map((pubkey) => ["p", pubkey]);
		const answered = target.reply_to === undefined ? [] : [["e", target.reply_to]];
		return { kind: CHAT_MESSAGE, created_at, tags: [...people, ...answered, ...own], text };
	}

	async #publish(target: Target, intent: Intent, text: string, signal: AbortSignal) {
		if (isThread(target)) {
			const { kind, created_at, tags } = intent;
			const event = this.#signed({ kind, created_at, tags, content: text });
			await this.#pool.publish(event, signal);
			return { messageId: event.id };
		}
		const rumor = rumorOf(this.#keys, intent, text);
		const wraps = this.#recipients(target).map((pubkey) => wrapFor(this.#keys, rumor, pubkey));
		await this.#publishAll(wraps, signal);
		// Other programs of the account show it, too.
		this.#pool.publish(wrapFor(this.#keys, rumor, this.#keys.pubkey)).catch((cause: unknown) => {
			this.#tools.log.debug({ error: String(cause) }, "the account's own copy was not taken");
		});
		return { messageId: rumor.id };
	}

	/** One who did not get it is enough for another try; the others recognise the rumor. */
	async #publishAll(wraps: readonly Event[], signal: AbortSignal): Promise<void> {
		const results = await Promise.allSettled(wraps.map((wrap) => this.#pool.publish(wrap, signal)));
		const failures = results.flatMap((each) => (each.status === "rejected" ? [each.reason as PlatformError] : []));
		const [failure] = failures;
		if (!failure) return;
		if (failures.length === wraps.length) throw failure;
		const message = `${failures.length} of ${wraps.length} people were not reached. ${failure.message}`;
		throw new PlatformError("unknown_outcome", message, { cause: failure });
	}

	#recipients({ to, members }: Target): string[] {
		const names = to.startsWith(NOSTR_ROOM) && Array.isArray(members) ? members.map(String) : [to];
		const people = names.map(readPubkey).filter((pubkey) => pubkey !== undefined);
		if (people.length === names.length && people.length > 0 && people.length <= MEMBERS_MAX) return people;
		throw new PlatformError(
			"invalid",
			"A chat is npub1…, a public key of 64 hex digits, or thread: and an event's id.",
		);
	}

	readonly #signed = (event: EventTemplate): Event => finalizeEvent(event, this.#keys.secret);
}

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 16);

const PROFILE_FIELDS = ["name", "about", "picture", "nip05"] as const;
const PUBLISHED = "profile";

type ProfileSettings = Settings<(typeof PROFILE_FIELDS)[number]>;

/** Without a name or the like, a profile that a person has published stays as it is. */
function profileDrafts(settings: ProfileSettings, relays: readonly string[]): Omit<EventTemplate, "created_at">[] {
	const given = PROFILE_FIELDS.flatMap((name) => (settings[name] === "" ? [] : [[name, settings[name]]]));
	const content = JSON.stringify({ ...Object.fromEntries(given), bot: true });
	const inbox = { kind: INBOX_RELAYS, tags: relays.map((url) => ["relay", url]), content: "" };
	return given.length === 0 ? [inbox] : [inbox, { kind: PROFILE, tags: [], content }];
}
