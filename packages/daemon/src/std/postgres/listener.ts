/** Notifications of PostgreSQL on one channel: a separate connection, probed through the channel itself, because a half-open one says nothing. */

import type { Client } from "pg";
import { connected, destroyed, type PostgresConnectionParts, Reconnecting } from "./connection.ts";

export interface PostgresListenerParts extends PostgresConnectionParts {
	readonly channel: string;
	/** Sends a notification on another connection. */
	notify(payload: string): Promise<void>;
	onPayload(payload: string): void;
	/** Notifications may have been missed, or are not certain any more. */
	onState(isSure: boolean): void;
}

const PROBE_EVERY_MS = 5000;
const ECHO_MS_MAX = 2000;
const PROBE = "probe:";

export class Listener {
	readonly #parts: PostgresListenerParts;
	readonly #open: Reconnecting<Client>;
	/** Distinguishes the own probes from those of other daemons. */
	readonly #name: string;
	#probes = 0;
	#echoed = 0;
	#isSure = false;
	#isClosed = false;
	#cancel: (() => void) | undefined;

	constructor(parts: PostgresListenerParts) {
		this.#parts = parts;
		this.#name = parts.random().toString(36).slice(2);
		this.#open = new Reconnecting(parts, (onLost) => this.#connect(onLost));
	}

	/** A notification arrives here as soon as it is sent. */
	get isSure(): boolean {
		return this.#isSure;
	}

	start(): void {
		void this.#probe();
	}

	async #connect(onLost: () => void): Promise<Client> {
		const { channel } = this.#parts;
		const client = await connected(this.#parts, () => {
			onLost();
			this.#unsure();
		});
		client.on("notification", ({ payload = "" }) => this.#take(payload));
		await client.query(`LISTEN "${channel}"`);
		return client;
	}

	#take(payload: string): void {
		if (!payload.startsWith(PROBE)) {
			this.#parts.onPayload(payload);
			return;
		}
		const [, name, number] = payload.split(":");
		if (name !== this.#name) return;
		this.#echoed = Number(number);
		if (this.#isSure || this.#isClosed) return;
		this.#isSure = true;
		this.#parts.onState(true);
	}

	#unsure(): void {
		if (this.#isClosed) return;
		const wasSure = this.#isSure;
		this.#isSure = false;
		if (wasSure) this.#parts.onState(false);
		this.#later(0);
	}

	#later(ms: number): void {
		this.#cancel?.();
		if (!this.#isClosed) this.#cancel = this.#parts.clock.after(ms, () => void this.#probe());
	}

	/** Connects if needed, sends a probe, and expects its echo in time. */
	async #probe(): Promise<void> {
		const { clock, log, notify, limits } = this.#parts;
		const probe = ++this.#probes;
		try {
			const client = await this.#open.get();
			if (this.#isClosed) return;
			await notify(`${PROBE}${this.#name}:${probe}`);
			this.#cancel?.();
			if (this.#isClosed) return;
			this.#cancel = clock.after(ECHO_MS_MAX, () => {
				if (this.#echoed >= probe) this.#later(PROBE_EVERY_MS - ECHO_MS_MAX);
				else destroyed(client);
			});
		} catch (cause) {
			if (this.#isClosed) return;
			log.warn({ err: cause }, "notifications of the store cannot be received; polling until they can");
			this.#later(limits.reconnect.maxMs);
		}
	}

	async close(): Promise<void> {
		this.#isClosed = true;
		this.#cancel?.();
		const client = await this.#open.current?.catch(() => undefined);
		await client?.end();
	}
}
