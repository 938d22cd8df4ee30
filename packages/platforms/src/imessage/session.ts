/** A person's or an agent's Apple account, through the Mac that is signed in to it. */

import {
	type CreatedMessage,
	type InboundMessage,
	PlatformError,
	type SendOptions,
	type Session,
	type Target,
	type Tools,
	type WebhookAnswer,
	type WebhookRequest,
	type WireAttachment,
} from "@nexus-stream/adapter";
import { withFiles } from "@nexus-stream/adapter/platform/network";
import type { Attaching, Emit, Listening, Webhooks } from "@nexus-stream/adapter/platform/session";
import { readPost, secretFault } from "@nexus-stream/adapter/platform/webhook";
import type { Backend, IMessageSettings } from "./backend.ts";
import { createBlueBubbles } from "./bluebubbles.ts";
import { createImsg } from "./imsg.ts";
import { addressed, type BlueBubblesMessage, type IMessageInboundMessage, readBlueBubbles } from "./inbound.ts";

/** A message is sent by driving Messages, and kept only then: when to look for one again. */
const LOOKS_MS = [0, 3000, 7000];
const HEARD_SINCE = "heard_since";
/** How far apart the Mac may date what it sent and the copy of it that came back. */
const ECHO_MS = 10_000;
/** People may send a short text such as "OK" by chance: there only a very fast copy counts as an echo. */
const SHORT_ECHO = { chars: 20, ms: 2000 };
/** The Mac's clock may be another one. */
const CLOCK_SLACK_MS = 24 * 60 * 60_000;

export class IMessageSession implements Session, Attaching, Listening, Webhooks {
	readonly attaching = this;
	readonly listening = this;
	readonly webhooks = this;
	readonly #backend: Backend;
	readonly #settings: IMessageSettings;
	readonly #tools: Tools;

	constructor(settings: IMessageSettings, tools: Tools) {
		this.#settings = settings;
		this.#tools = tools;
		this.#backend = createBackend(settings, tools);
	}

	create(target: Target, text: string, options: SendOptions): Promise<CreatedMessage> {
		return this.#backend.send(target, text, options);
	}

	attach(target: Target, attachment: WireAttachment, options: SendOptions): Promise<CreatedMessage> {
		return this.#backend.attach(target, attachment, options);
	}

	async find(target: Target, nonce: string, text: string): Promise<CreatedMessage | undefined> {
		return await this.#tools.sent.findAlike(nonce, {
			list: (since) => this.#backend.recent(target, since),
			// A file is looked for by its name.
			isAlike: ({ text: said, files }) => [said, ...files].some((each) => plain(each) === plain(text)),
			waitsMs: LOOKS_MS,
		});
	}

	async monitor(emit: Emit, signal: AbortSignal): Promise<void> {
		const since = this.#receivedSince();
		const take = async (inbound: IMessageInboundMessage) => {
			const { ts } = inbound.message;
			// 0: the time is unknown.
			if (ts !== 0 && ts < since) return {};
			return (await this.#isEcho(inbound)) ? {} : { safe: emit(await this.#withFiles(inbound)) };
		};
		await this.#backend.listen({ take, signal });
	}

	/** A new Mac fetches years of messages from iCloud: messages from before the account listened are skipped. */
	#receivedSince(): number {
		const { state, clock } = this.#tools;
		const known = state.get(HEARD_SINCE) ?? String(clock.now() - CLOCK_SLACK_MS);
		state.set(HEARD_SINCE, known);
		return Number(known);
	}

	/** BlueBubbles signs nothing: the secret is in the address that it was given. */
	async webhook(request: WebhookRequest): Promise<WebhookAnswer> {
		const { webhook_secret: secret, name } = this.#settings;
		const opened = readPost<{ type?: string; data?: BlueBubblesMessage } | null>(request, ({ query }) =>
			secretFault(query.get("secret"), secret, "secret"),
		);
		if (!("payload" in opened)) return opened;
		const event = opened.payload;
		const inbound = event?.type === "new-message" && event.data ? readBlueBubbles(event.data, name) : undefined;
		const heard = inbound && !(await this.#isEcho(inbound)) ? [await this.#withFiles(inbound)] : [];
		return { status: 200, messages: heard };
	}

	health() {
		return this.#backend.health();
	}

	async close(): Promise<void> {
		await this.#backend.close?.();
	}

	/**
	 * In the chat of an account with itself every sent message comes back as if another person had written it, and the agent would answer itself
	 * without end. Only the Mac's own record tells the copy from a person.
	 */
	async #isEcho({ message: { text, target, ts }, files }: IMessageInboundMessage): Promise<boolean> {
		if (!target.direct || ts === 0) return false;
		const said = new Set([text, ...files.map(({ name }) => name)].filter((each) => each !== "").map(plain));
		try {
			const kept = await this.#backend.recent(target, ts - ECHO_MS);
			return kept.some((ours) => {
				const apartMs = Math.abs(ours.ts - ts);
				const same = [addressed(ours.text, this.#settings.name).text, ...ours.files]
					.map(plain)
					.find((each) => said.has(each));
				return same !== undefined && apartMs <= (same.length < SHORT_ECHO.chars ? SHORT_ECHO.ms : ECHO_MS);
			});
		} catch (cause) {
			// A look-up that can never succeed must not block inbound messages; any other failure is retried.
			if (!(cause instanceof PlatformError) || cause.fault !== "invalid") throw cause;
			return false;
		}
	}

	async #withFiles({ message, files }: IMessageInboundMessage): Promise<InboundMessage> {
		return await withFiles(message, files, ({ reference }, bytesMax) => this.#backend.fetchFile(reference, bytesMax));
	}
}

function createBackend(settings: IMessageSettings, tools: Tools): Backend {
	const { backend, name } = settings;
	if (backend === "bluebubbles") return createBlueBubbles(settings, tools);
	if (backend === "imsg") return createImsg(settings.imsg_command, tools, name);
	throw new PlatformError("invalid", `backend is "${backend}"; allowed: bluebubbles, imsg.`);
}

/** Messages makes typographic quotes and dashes of some; letters and digits stay. */
const plain = (text: string): string => text.replace(/[^\p{L}\p{N}]/gu, "") || text.trim();
