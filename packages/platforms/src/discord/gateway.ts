/**
 * Messages from Discord's gateway, in order. The last stored event is kept with the gateway's session, so that another process resumes there:
 * the gateway repeats the events after it.
 */

import type { REST } from "@discordjs/rest";
import { type SessionInfo, WebSocketManager, WebSocketShardEvents } from "@discordjs/ws";
import { PlatformError, type Tools } from "@nexus-stream/adapter";
import { createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { within } from "@nexus-stream/protocol/clock";
import {
	GatewayCloseCodes,
	GatewayDispatchEvents,
	type GatewayDispatchPayload,
	GatewayIntentBits,
	type GatewayInteractionCreateDispatchData,
	type GatewayMessageCreateDispatchData,
} from "discord-api-types/v10";
import { toPlatformError } from "./faults.ts";

/** Any code but 1000 and 1001 keeps the session alive for another process. */
const RESUMABLE_CLOSE = 4200;

const STOP_LIMIT_MS = 2000;

export interface GatewayOptions extends Pick<Tools, "state" | "clock" | "log" | "listening"> {
	rest: REST;
	token: string;
	/** Needs the privileged intent; without it only direct messages and mentions have text. */
	messageContent: boolean;
	/** Resolves when the message is safe. */
	take(message: GatewayMessageCreateDispatchData): Promise<{ safe?: Promise<void> | undefined }>;
	/** A button, which Discord wants confirmed within three seconds: it does not wait for messages. */
	interact(interaction: GatewayInteractionCreateDispatchData): Promise<void>;
	signal: AbortSignal;
}

export async function listen(options: GatewayOptions): Promise<void> {
	const { rest, token, signal, log, listening } = options;
	// Stopped before it began: no event would tell.
	if (signal.aborted) return;
	const sessions = createSessions(options.state);
	const manager = new WebSocketManager({
		rest,
		token,
		intents: intentsOf(options.messageContent),
		retrieveSessionInfo: (shard) => sessions.get(shard),
		updateSessionInfo: (shard, info) => sessions.set(shard, info, signal.aborted),
	});
	let closedWith = 0;
	manager.on(WebSocketShardEvents.Closed, (code) => {
		closedWith = code;
		log.debug({ code }, "the gateway closed the connection");
		if (!signal.aborted) listening(`the gateway closed the connection (${code})`);
	});
	manager.on(WebSocketShardEvents.SocketError, (error) => {
		log.warn({ error: error.message }, "gateway connection");
		listening(`the gateway: ${error.message}`);
	});
	for (const there of [WebSocketShardEvents.Ready, WebSocketShardEvents.Resumed] as const)
		manager.on(there, () => listening());
	const failed = new Promise<never>((_, reject) => {
		manager.on(WebSocketShardEvents.Error, (error) => reject(fatal(closedWith, error)));
		manager.on(WebSocketShardEvents.Dispatch, inOrder(options, sessions, reject));
	});
	const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
	const connected = manager.connect().catch((cause) => Promise.reject(toPlatformError("gateway", cause)));
	const settled = (work: PromiseLike<void> | void) => within(options.clock, STOP_LIMIT_MS, Promise.allSettled([work]));
	try {
		await Promise.race([connected, failed, stopped]);
		await Promise.race([failed, stopped]);
	} finally {
		// The library cannot end a connection that is being made: it would open another one and wait without a limit.
		await settled(connected);
		await settled(manager.destroy({ code: RESUMABLE_CLOSE, reason: "stopped" }));
	}
}

const intentsOf = (messageContent: boolean): GatewayIntentBits =>
	GatewayIntentBits.GuildMessages |
	GatewayIntentBits.DirectMessages |
	(messageContent ? GatewayIntentBits.MessageContent : 0);

/** One message after another is read, and remembered once it and all before it are safe. */
function inOrder(
	{ take, interact, signal, log }: GatewayOptions,
	sessions: ReturnType<typeof createSessions>,
	fail: (cause: unknown) => void,
): (payload: GatewayDispatchPayload, shard: number) => void {
	let last: Promise<void> = Promise.resolve();
	const heard = createConfirmationQueue();
	return (payload, shard) => {
		if (payload.t === GatewayDispatchEvents.InteractionCreate && !signal.aborted) {
			interact(payload.d).catch((cause: unknown) => {
				if (!signal.aborted) log.warn({ error: String(cause) }, "a pressed button was not taken");
			});
		}
		last = last.then(async () => {
			if (signal.aborted) return;
			const isMessage = payload.t === GatewayDispatchEvents.MessageCreate;
			const { safe } = isMessage ? await take(payload.d) : {};
			await heard.add(safe, () => signal.aborted || sessions.taken(shard, payload.s, isMessage));
		});
		last.then(() => heard.confirmed()).catch((cause) => signal.aborted || fail(cause));
	};
}

/** The library counts what it received; stored is what has been taken. */
function createSessions(state: Tools["state"]) {
	const live = new Map<number, SessionInfo | null>();
	const key = (shard: number) => `gateway:${shard}`;
	const stored = (shard: number): SessionInfo | null => JSON.parse(state.get(key(shard)) ?? "null");
	return {
		get(shard: number): SessionInfo | null {
			if (!live.has(shard)) live.set(shard, stored(shard));
			return live.get(shard) ?? null;
		},
		/** `keep`: we are stopping, and the library thinks that the session is over. */
		set(shard: number, info: SessionInfo | null, keep: boolean): void {
			if (info === null && keep) return;
			const before = live.get(shard);
			live.set(shard, info);
			if (info?.sessionId !== before?.sessionId) state.set(key(shard), JSON.stringify(info));
		},
		taken(shard: number, sequence: number, store: boolean): void {
			const info = live.get(shard);
			if (store && info) state.set(key(shard), JSON.stringify({ ...info, sequence }));
		},
	};
}

function fatal(code: number, error: Error): PlatformError {
	if (code === GatewayCloseCodes.AuthenticationFailed) {
		return new PlatformError("denied", "The gateway refused the bot token: reset it in the developer portal.", {
			cause: error,
		});
	}
	if (code === GatewayCloseCodes.DisallowedIntents) {
		const advice =
			"Enable Message Content Intent on the Bot page of the developer portal, or set message_content to false.";
		return new PlatformError("denied", `The gateway refused the message content intent. ${advice}`, { cause: error });
	}
	return new PlatformError("unavailable", `The gateway failed: ${error.message} (${code})`, { cause: error });
}
