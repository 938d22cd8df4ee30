/** Socket Mode: events over a WebSocket that we open. An event is confirmed to Slack only after it has been taken. */

import { PlatformError, type Tools } from "@nexus-stream/adapter";
import { keepListening, unlessAborted } from "@nexus-stream/adapter/serve/listen";
import { SocketModeClient } from "@slack/socket-mode";
import { clientOptions, sdkLog } from "./api.ts";
import { toPlatformError } from "./faults.ts";

/** Slack renews connections every few hours. */
const RECONNECT_MS = 500;
/** How long a connection may take until Slack says hello. */
const HELLO_MS = 30_000;

export interface SocketOptions extends Pick<Tools, "clock" | "log" | "listening"> {
	appToken: string;
	apiUrl: string;
	/** Resolves when the event is safe. */
	take(payload: unknown): Promise<void>;
	/** Slack waits three seconds for a press to be confirmed, which is done before; one that is lost can be repeated. */
	interact(payload: unknown): Promise<void>;
	signal: AbortSignal;
}

interface Envelope {
	type: string;
	body: unknown;
	ack(): Promise<void>;
}

/** The SDK's own reconnecting leaves a failed attempt unhandled, so every connection here has its own client. */
export async function listen(options: SocketOptions): Promise<void> {
	await keepListening({ ...options, round: () => connection(options), pauseMs: RECONNECT_MS });
}

/** Until it ends. Rejects when there is none to be had. */
async function connection(options: SocketOptions): Promise<void> {
	const { appToken, apiUrl, signal, clock, log } = options;
	const client = new SocketModeClient({
		appToken,
		autoReconnectEnabled: false,
		clientOptions: clientOptions(apiUrl),
		logger: sdkLog(log),
	});
	const ended = new Promise<void>((resolve) => client.once("disconnected", resolve));
	client.on("slack_event", (envelope: Envelope) => void confirm(envelope, options));
	let cancel = () => {};
	const silent = new Promise<never>((_, reject) => {
		cancel = clock.after(HELLO_MS, () => reject(new PlatformError("unavailable", `no hello within ${HELLO_MS} ms`)));
	});
	try {
		await unlessAborted(signal, Promise.race([start(client), silent]));
		if (!signal.aborted) options.listening();
		await unlessAborted(signal, ended);
	} finally {
		cancel();
		void client.disconnect();
	}
}

async function start(client: SocketModeClient): Promise<void> {
	try {
		await client.start();
	} catch (cause) {
		// The SDK gives no reason for a connection that broke before the hello.
		throw toPlatformError("apps.connections.open", cause ?? new PlatformError("unavailable", "the connection broke"));
	}
}

/** An event that cannot be confirmed comes again. */
async function confirm({ type, body, ack }: Envelope, { take, interact, log }: SocketOptions): Promise<void> {
	try {
		if (type === "events_api") await take(body);
		await ack();
		if (type === "interactive") await interact(body);
	} catch (cause) {
		log.warn({ type, error: String(cause) }, "an event was not confirmed to Slack; it comes again");
	}
}
