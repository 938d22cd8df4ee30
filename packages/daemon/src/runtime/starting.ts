/** While a start waits for its store: the log says what for, and the port answers health checks. */

import { createServer, type Server } from "node:http";
import { httpStatusOf, NexusError } from "@nexus-stream/protocol";
import type { ReadinessJson } from "@nexus-stream/protocol/api";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import { isStoreAway } from "../std/store-failure.ts";
import { mayPass } from "./data/data-dir.ts";

export interface StartingOptions {
	host: string;
	port: number;
	/** How long a store that takes nothing is waited for. */
	storeRetryMsMax: number;
	clock: Clock;
	log: Log;
}

/** A start that takes longer than this answers health checks meanwhile. */
const ANSWER_AFTER_MS = 1000;
const RETRY_MS = 250;
/** Strangers read it, too: it names no path. */
const DISK_TROUBLE = "the disk is full or failing, and the start waits until it can write";
const STORE_AWAY = "the server of the database does not answer, and the start waits for it";
const RECOVERING = "taking over what the last process left";

export class Starting {
	readonly #options: StartingOptions;
	readonly #cancel: () => void;
	#waitsFor: string | undefined;
	/** Asked once the store is open. */
	#isHealthy: () => boolean = () => true;
	#server: Server | undefined;

	constructor(options: StartingOptions) {
		this.#options = options;
		this.#cancel = options.clock.after(ANSWER_AFTER_MS, () => this.#answer());
	}

	/** Does a step of the start, again and again while the disk is full or failing or the database is away, until the limit. */
	async whenWritable<T>(step: () => T | Promise<T>): Promise<T> {
		const { clock, log, storeRetryMsMax } = this.#options;
		for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
			try {
				const done = await step();
				this.#waitsFor = undefined;
				return done;
			} catch (cause) {
				if (!mayPass(cause) || waitedMs >= storeRetryMsMax) throw cause;
				if (waitedMs === 0) log.error({ waitMsMax: storeRetryMsMax }, `the start waits: ${cause.message}`);
				this.#waitsFor = isStoreAway(cause.cause) ? STORE_AWAY : DISK_TROUBLE;
				await sleep(clock, RETRY_MS, undefined, "due");
			}
		}
	}

	/** From now on the store itself retries, and says whether it has to. */
	opened(isHealthy: () => boolean): void {
		this.#isHealthy = isHealthy;
	}

	/** Gives the port to the edge. */
	async end(): Promise<void> {
		this.#cancel();
		const server = this.#server;
		if (!server) return;
		await new Promise<void>((resolve) => {
			server.close(() => resolve());
			server.closeAllConnections();
		});
	}

	#answer(): void {
		const { host, port, log } = this.#options;
		const { detail } = this.#readiness();
		log.warn({}, `still starting: ${detail}`);
		// A port that is not chosen yet is not known to any client.
		if (port === 0) return;
		const server = createServer({ keepAliveTimeout: 1 }, (request, response) => {
			const path = (request.url ?? "").split("?", 1)[0];
			const [status, body] = this.#answerTo(path);
			response.writeHead(status, { "content-type": "application/json", connection: "close", "retry-after": "1" });
			response.end(JSON.stringify(body));
		});
		// The edge tells why the port cannot be opened, when its turn comes.
		server.on("error", () => {});
		server.listen({ host, port });
		this.#server = server;
	}

	#answerTo(path: string | undefined): [status: number, body: unknown] {
		if (path === "/healthz") return [200, { status: "ok" }];
		const readiness = this.#readiness();
		if (path === "/readyz") return [503, readiness];
		const error = new NexusError("unavailable", `the daemon is starting: ${readiness.detail}`);
		return [httpStatusOf(error.code), error.toJSON()];
	}

	#readiness(): ReadinessJson {
		const detail = this.#waitsFor ?? (this.#isHealthy() ? RECOVERING : DISK_TROUBLE);
		return { ready: false, state: "STARTING", detail };
	}
}
