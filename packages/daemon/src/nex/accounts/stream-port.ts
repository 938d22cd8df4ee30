/** The `stream` process of an account and the deliveries that share it: lines go in under each one's name, statuses come back to it. */

import { STREAM_SHAPES, type StreamStatus } from "@nexus-stream/adapter/host";
import { createLock } from "../../std/lock.ts";
import type { LineProcess } from "./line-process.ts";
import { createProcessSupervisor, type ProcessStatus, type ProcessSupervisorOptions } from "./process-supervisor.ts";

export interface StreamClient {
	runId: string;
	status(status: StreamStatus): void;
	/** The process is gone, and with it everything it has not reported. */
	lost(detail: string): void;
}

/** A delivery's place in a running process. */
export interface Seat {
	/** `begun` is called when the process may have read the line. */
	write(line: object | string, begun?: () => void): void;
	/** Resolves when the process has room for more. */
	turn(): Promise<void>;
	/** When the process last said anything, about whatever delivery. */
	receivedAt(): number;
	/** Ends the process: it does not answer. */
	kill(why: string): void;
	leave(): void;
}

export interface StreamPort {
	/** Waits for a running process and, when it takes one delivery at a time, for its turn. Rejects when the signal aborts. */
	seat(delivery: string, client: StreamClient, signal: AbortSignal): Promise<Seat>;
	status(): ProcessStatus;
	stop(): Promise<void>;
}

export interface StreamPortOptions extends Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes"> {
	/** It only speaks the basic fields. */
	oneAtATime: boolean;
	/** Statuses that belong to the whole account. */
	notice(status: Extract<StreamStatus, { type: "rate_limited" | "call" }>): void;
}

export function createStreamPort(options: StreamPortOptions): StreamPort {
	const clients = new Map<string, StreamClient>();
	const lock = createLock();
	let receivedAt = 0;

	/** By name, by run, or the only one there is. */
	function clientOf(status: { delivery?: string; runId?: string }): StreamClient | undefined {
		if (status.delivery !== undefined) return clients.get(status.delivery);
		if (clients.size === 1) return clients.values().next().value;
		return [...clients.values()].find(({ runId }) => runId === status.runId);
	}

	function take(status: StreamStatus): void {
		if (status.type === "rate_limited" || status.type === "call") {
			options.notice(status);
			return;
		}
		const client = clientOf(status);
		if (client) client.status(status);
		else options.log.debug({ ...options.facts, status }, "a status of no delivery that is under way");
	}

	const supervisor = createProcessSupervisor({
		...options,
		shapes: STREAM_SHAPES,
		lines(values) {
			receivedAt = options.clock.now();
			for (const value of values) take(value as StreamStatus);
		},
		lost({ detail }) {
			const open = [...clients.values()];
			clients.clear();
			for (const client of open) client.lost(detail);
			return open.length === 0;
		},
	});

	function seatIn(process: LineProcess, delivery: string, client: StreamClient, release: () => void): Seat {
		clients.set(delivery, client);
		return {
			write: (line, begun) => process.write(line, begun),
			turn: () => process.turn(),
			receivedAt: () => receivedAt,
			kill: (why) => process.kill(why),
			leave() {
				if (clients.get(delivery) === client) clients.delete(delivery);
				release();
			},
		};
	}

	return {
		async seat(delivery, client, signal) {
			const release = options.oneAtATime ? await lock(signal) : () => {};
			try {
				return seatIn(await supervisor.running(signal), delivery, client, release);
			} catch (cause) {
				release();
				throw cause;
			}
		},
		status: supervisor.status,
		stop: supervisor.stop,
	};
}
