/** A signed-in Discord bot: the calls on channels and messages, each refusal in the words of all platforms. */

import {
	type CreatedMessage,
	type InboundMessage,
	PlatformError,
	remembered,
	type SendOptions,
	type Session,
	type Settings,
	type Target,
	type Tools,
	type WireAttachment,
} from "@nexus-stream/adapter";
import type { KeptMessage } from "@nexus-stream/adapter/memory/sent";
import { createdId } from "@nexus-stream/adapter/platform/json";
import { addressOf, download, withFiles } from "@nexus-stream/adapter/platform/network";
import { cannotTell, harmless } from "@nexus-stream/adapter/platform/platform-error";
import type { Asking, Attaching, Editing, Emit, Listening, OnPress } from "@nexus-stream/adapter/platform/session";
import {
	type APIMessage,
	type APIUser,
	type GatewayMessageCreateDispatchData,
	MessageFlags,
	type RESTPostAPIChannelMessageJSONBody,
	Routes,
} from "discord-api-types/v10";
import { DISCORD_PERSON } from "../chats.ts";
import { createClient, type DiscordClient, type RestRequest } from "./api.ts";
import { componentsOf, takePress } from "./buttons.ts";
import { listen } from "./gateway.ts";
import { readMessage } from "./inbound.ts";
import { paceOf } from "./pace.ts";
import { createdAt, recognise } from "./recognise.ts";

const HISTORY_MESSAGES = 100;

type DiscordSettings = Settings<"token" | "message_content" | "api_url">;

export class DiscordSession implements Session, Editing, Asking, Attaching, Listening {
	readonly editing = this;
	readonly asking = this;
	readonly attaching = this;
	readonly listening = this;
	readonly #settings: DiscordSettings;
	readonly #apiUrl: string;
	readonly #client: DiscordClient;
	readonly #tools: Tools;
	/** Channels of persons that were written to by their id. */
	readonly #directChannels = new Map<string, string>();
	readonly #me = remembered(async () => {
		const user = (await this.#client.call("get", Routes.user())) as APIUser | undefined;
		if (user?.id) return user;
		throw new PlatformError("unavailable", "GET user: the answer is not Discord's own. Check api_url.");
	});

	constructor(settings: DiscordSettings, tools: Tools) {
		this.#settings = settings;
		this.#apiUrl = addressOf("api_url", settings.api_url);
		this.#client = createClient(settings.token, this.#apiUrl, tools.clock);
		this.#tools = tools;
	}

	pace(target: Target) {
		const channel = this.#knownChannel(target) ?? "";
		const [edits, creations] = [this.#client.bucket("patch", channel), this.#client.bucket("post", channel)];
		return paceOf(edits, creations, this.#tools.clock.now());
	}

	async create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage> {
		const channel = await this.#channel(target);
		const { question } = options;
		const buttons = question && { components: componentsOf(question) };
		const body = { content: text, ...COMMON, ...buttons, ...replyTo(target), ...onceOnly(options) };
		const message = await this.#post(channel, { body, signal: options.signal });
		// Discord answers a repeated creation with the existing message, which may have less text.
		if (message.content.trim() !== text.trim()) {
			this.#tools.sent.add(options.nonce, message.id);
			await this.edit(target, message.id, text, options);
		}
		return { messageId: message.id };
	}

	async edit(target: Target, messageId: string, text: string, { signal }: SendOptions): Promise<void> {
		await this.#change(target, messageId, { content: text, ...COMMON }, signal);
	}

	async settle(target: Target, messageId: string, text: string, { signal }: SendOptions): Promise<void> {
		await this.#change(target, messageId, { content: text, components: [], ...COMMON }, signal);
	}

	async remove(target: Target, messageId: string, { signal }: SendOptions): Promise<void> {
		const channel = await this.#channel(target);
		await this.#client.call("delete", Routes.channelMessage(channel, messageId), { signal });
	}

	async attach(target: Target, attachment: WireAttachment, options: SendOptions): Promise<CreatedMessage> {
		const { name, contentType, data } = attachment;
		const channel = await this.#channel(target);
		const body = { attachments: [{ id: "0", filename: name }], ...replyTo(target), ...onceOnly(options) };
		const files = [{ name, contentType, data: Buffer.from(data, "base64") }];
		const message = await this.#post(channel, { body, files, signal: options.signal });
		return { messageId: message.id };
	}

	/** It ends by itself after ten seconds, or with the next message. */
	async typing(target: Target, on: boolean): Promise<void> {
		if (on) await this.#client.call("post", Routes.channelTyping(await this.#channel(target)));
	}

	async find(target: Target, nonce: string, text: string, signal?: AbortSignal): Promise<CreatedMessage | undefined> {
		const { id: me } = await this.#me();
		const channel = await this.#channel(target);
		// Without the signal a hanging call would block the SDK's queue for every later look-up.
		const request = { query: new URLSearchParams({ limit: String(HISTORY_MESSAGES) }), signal };
		const history = (await this.#client.call("get", Routes.channelMessages(channel), request)) as APIMessage[];
		const since = typeof target.since === "string" ? target.since : undefined;
		const judged = this.#tools.sent.judge(nonce, history.map(keptOf));
		const possible = history.filter((each) => each.nonce === nonce || judged(keptOf(each)) !== "other");
		const found = recognise(possible, { me, nonce, text, since }, this.#tools.clock.now());
		if (!found) return undefined;
		if (found.certain && !found.named && judged(keptOf(found.message)) === "unclear") {
			throw cannotTell("The channel has a message with this text, and its time does not tell whether it is this one.");
		}
		if (found.certain) return { messageId: found.message.id };
		// A file cannot be repeated here; its next creation is answered with the one that is there.
		if (found.message.content === "") return undefined;
		const body = { content: text, ...COMMON, ...replyTo(target), nonce, enforce_nonce: true };
		const { id } = await this.#post(channel, { body });
		return { messageId: id };
	}

	async monitor(emit: Emit, signal: AbortSignal, press: OnPress): Promise<void> {
		const me = await this.#me();
		await listen({
			rest: this.#client.rest,
			token: this.#settings.token,
			messageContent: this.#settings.message_content !== "false",
			take: async (data) => {
				const message = await this.#read(data, me);
				return { safe: message && emit(message) };
			},
			interact: (data) => takePress(this.#client, data, press),
			signal,
			...this.#tools,
		});
	}

	async health() {
		const me = await this.#me();
		return { ok: true, detail: `${me.username} (${me.id})` };
	}

	async #read(data: GatewayMessageCreateDispatchData, me: APIUser): Promise<InboundMessage | undefined> {
		const inbound = readMessage(data, me);
		if (!inbound) return undefined;
		return await withFiles(inbound, ({ url }, bytesMax) => download(url, { bytesMax, home: this.#apiUrl }));
	}

	async #change(target: Target, messageId: string, body: object, signal: AbortSignal): Promise<void> {
		const route = Routes.channelMessage(await this.#channel(target), messageId);
		await this.#client.call("patch", route, { body, signal });
	}

	async #post(channel: string, request: RestRequest): Promise<APIMessage> {
		const message = (await this.#client.call("post", Routes.channelMessages(channel), request)) as APIMessage;
		createdId("POST message", message?.id);
		return message;
	}

	/** Undefined: a person that was not written to yet. */
	#knownChannel({ to, thread_id }: Target): string | undefined {
		if (thread_id !== undefined) return thread_id;
		return to.startsWith(DISCORD_PERSON) ? this.#directChannels.get(to) : to.replace(/^channel:/, "");
	}

	async #channel(target: Target): Promise<string> {
		const known = this.#knownChannel(target);
		if (known !== undefined && !/^\d+$/.test(known)) {
			throw new PlatformError("invalid", `"${target.to}" is not a target: use a channel's id, or user:<id>.`);
		}
		if (known !== undefined) return known;
		const body = { recipient_id: target.to.slice(DISCORD_PERSON.length) };
		const { id } = (await harmless(this.#client.call("post", Routes.userChannels(), { body }))) as { id: string };
		this.#directChannels.set(target.to, id);
		return id;
	}
}

/** An agent's text notifies no one; link embeds would flicker while the text grows. */
const COMMON = {
	allowed_mentions: { parse: [], replied_user: true },
	flags: MessageFlags.SuppressEmbeds,
} satisfies RESTPostAPIChannelMessageJSONBody;

const keptOf = ({ id }: APIMessage): KeptMessage => ({ ids: [id], ts: createdAt(id) });

const onceOnly = ({ nonce }: SendOptions) => ({ nonce, enforce_nonce: true });

const replyTo = ({ reply_to }: Target) =>
	reply_to === undefined ? {} : { message_reference: { message_id: reply_to, fail_if_not_exists: false } };
