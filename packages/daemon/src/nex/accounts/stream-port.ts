/** The `stream` process of an account and the deliveries that share it: statuses are routed to the delivery they name. */

import { STREAM_SHAPES, type StreamStatus } from "@nexus-stream/adapter/host";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { LineProcess } from "./line-process.ts";
import { type ProcessStatus, ProcessSupervisor, type ProcessSupervisorOptions } from "./process-supervisor.ts";

export interface StreamClient {
	runId: string;
	status(status: StreamStatus): void;
	/** The process has ended; anything it has not reported is unknown. */
	lost(detail: string): void;
}

export interface StreamPortOptions extends Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes"> {
	/** The adapter knows only the basic fields. */
	oneAtATime: boolean;
	/** Receives the statuses that concern the whole account. */
	notice(status: Extract<StreamStatus, { type: "rate_limited" | "call" }>): void;
}

export class StreamPort {
	readonly #options: StreamPortOptions;
	readonly #supervisor: ProcessSupervisor;
	readonly #clients = new Map<string, StreamClient>();
	readonly #turns = createKeyedQueue();
	#receivedAt = 0;

	constructor(options: StreamPortOptions) {
		this.#options = options;
		this.#supervisor = new ProcessSupervisor({
			...options,
			shapes: STREAM_SHAPES,
			lines: (values) => {
				this.#receivedAt = options.clock.now();
				for (const value of values) this.#take(value as StreamStatus);
			},
			lost: ({ detail }) => {
				const open = [...this.#clients.values()];
				this.#clients.clear();
				for (const client of open) client.lost(detail);
				return open.length === 0;
			},
		});
	}

	/** When the process last wrote a line, about any delivery. */
	get receivedAt(): number {
		return this.#receivedAt;
	}

	/**
	 * Registers a delivery and resolves with the running process and a function that unregisters it. An adapter that handles one delivery at a
	 * time serves them in order. Rejects when the signal aborts.
	 */
	async join(
		delivery: string,
		client: StreamClient,
		signal: AbortSignal,
	): Promise<{ process: LineProcess; leave: () => void }> {
		const release = this.#options.oneAtATime ? await this.#turns.hold("", signal) : () => {};
		try {
			const process = await this.#supervisor.running(signal);
			this.#clients.set(delivery, client);
			const leave = () => {
				if (this.#clients.get(delivery) === client) this.#clients.delete(delivery);
				release();
			};
			return { process, leave };
		} catch (cause) {
			release();
			throw cause;
		}
	}

	status(): ProcessStatus {
		return this.#supervisor.status();
	}

	stop(): Promise<void> {
		return this.#supervisor.stop();
	}

	#take(status: StreamStatus): void {
		const { notice, log, facts } = this.#options;
		if (status.type === "rate_limited" || status.type === "call") {
			notice(status);
			return;
		}
		const client = this.#clientOf(status);
		if (client) client.status(status);
		else log.debug({ ...facts, status }, "a status that belongs to no active delivery");
	}

	/** By the delivery's id, else the only client, else by the run's id. */
	#clientOf(status: { delivery?: string; runId?: string }): StreamClient | undefined {
		if (status.delivery !== undefined) return this.#clients.get(status.delivery);
		if (this.#clients.size === 1) return this.#clients.values().next().value;
		return [...this.#clients.values()].find(({ runId }) => runId === status.runId);
	}
}
