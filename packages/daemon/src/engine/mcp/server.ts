/** One MCP server: started on first use, started again by the policy that adapters have, and never the reason why a run dies. */

import { SdkError, SdkErrorCode } from "@modelcontextprotocol/client";
import { wordsOf } from "@nexus-stream/protocol";
import { printable } from "../../std/clip.ts";
import { type Supervision, type SupervisionInput, stepSupervision, UNSTARTED } from "../../std/supervision.ts";
import { unlessAborted } from "../kit/kit.ts";
import { type ToolContext, type ToolResult, textResult } from "../tool.ts";
import { McpConnection } from "./connection.ts";
import { changedTools, type Listing, NO_TOOLS, shownName } from "./listing.ts";
import type { LinkEvents, McpLimits, McpParts, McpServerStatus, McpTransport } from "./port.ts";

export interface ServerParts extends Required<Omit<McpParts, "base" | "env">> {
	name: string;
	transport: "stdio" | "http";
	limits: McpLimits;
	/** A fresh connection; throws when the configuration does not allow one. */
	connect(events: LinkEvents): McpTransport;
}

const REASON_CHARS_MAX = 500;

export class McpServer {
	readonly #parts: ServerParts;
	#supervision: Supervision = UNSTARTED;
	#connection: McpConnection | undefined;
	/** Resolves when the start that is under way, or the next one, has gone well or not. */
	#started = Promise.withResolvers<void>();
	#listing: Listing = NO_TOOLS;
	/** Runs that begin meanwhile wait for the same list. */
	#refreshing: Promise<void> | undefined;
	#failure: string | undefined;
	#cancelWake = () => {};
	#cancelPing = () => {};
	#stopAttempt = () => {};
	#closed = false;

	constructor(parts: ServerParts) {
		this.#parts = parts;
	}

	get name(): string {
		return this.#parts.name;
	}

	/** The current tools; waits for a start that is under way. Never rejects. */
	async listing(): Promise<Listing> {
		this.#apply({ type: "want" });
		if (this.#supervision.phase.at === "starting") await this.#started.promise;
		if (this.#connection?.stale) this.#refreshing ??= this.#refresh(this.#connection);
		await this.#refreshing;
		return this.#listing;
	}

	/** Never rejects: whatever goes wrong is a failed call with its reason. */
	async call(tool: string, args: Record<string, unknown>, context: ToolContext): Promise<ToolResult> {
		const connection = await this.#connected(context.signal);
		if (connection === undefined) return failed(`${this.#called} is not running: ${this.#whyDown()}`);
		try {
			return await connection.call(tool, args, context);
		} catch (cause) {
			return failed(this.#explain(cause, connection, context.signal));
		}
	}

	status(): McpServerStatus {
		const { phase, restarts } = this.#supervision;
		const { clock, rules, name, transport } = this.#parts;
		const isHealthy = phase.at === "running" && clock.now() - phase.since >= rules.healthyMs;
		return {
			name,
			transport,
			state: phase.at,
			restarts,
			until: "until" in phase ? phase.until : undefined,
			pid: this.#connection?.pid,
			lastError: this.#failure !== undefined && !isHealthy ? this.#failure : undefined,
			tools: this.#listing.tools.map(({ parameters: _, tool, ...info }) => ({ ...info, tool: shownName(tool) })),
			refused: this.#listing.refused,
		};
	}

	/** Resolves when its process is gone. */
	async close(): Promise<void> {
		if (this.#closed) return;
		this.#closed = true;
		this.#cancelWake();
		this.#cancelPing();
		const starting = this.#supervision.phase.at === "starting" ? this.#started.promise : undefined;
		this.#apply({ type: "unwant" });
		this.#stopAttempt();
		await starting;
		await this.#connection?.close();
		this.#started.resolve();
	}

	get #called(): string {
		return `the MCP server "${this.#parts.name}"`;
	}

	#apply(input: SupervisionInput): void {
		if (this.#closed && input.type !== "unwant" && input.type !== "exited") return;
		const { clock, rules, random } = this.#parts;
		const { state, effects } = stepSupervision(this.#supervision, input, clock.now(), rules, random());
		this.#supervision = state;
		for (const effect of effects) {
			if (effect.type === "spawn") void this.#start();
			else {
				this.#cancelWake();
				this.#cancelWake = clock.after(Math.max(0, effect.at - clock.now()), () => this.#apply({ type: "tick" }));
			}
		}
	}

	async #start(): Promise<void> {
		const { clock, limits } = this.#parts;
		const attempt = new AbortController();
		const stop = (why: string) => attempt.abort(new Error(why));
		const cancel = clock.after(limits.startMs, () => stop(`it was not ready within ${limits.startMs} ms`), "due");
		this.#stopAttempt = () => stop("stopped");
		let connection: McpConnection | undefined;
		let why: string | undefined;
		try {
			connection = this.#connect((reason) => {
				why ??= reason;
				this.#lost(connection, reason);
			});
			const listing = await connection.open(attempt.signal);
			if (why !== undefined || this.#closed) throw new Error(why ?? "stopped");
			this.#take(listing);
			this.#connection = connection;
			this.#apply({ type: "spawned" });
			this.#watch(connection);
			this.#started.resolve();
		} catch (cause) {
			await connection?.close().catch(() => {});
			const reason = attempt.signal.aborted ? attempt.signal.reason : (why ?? cause);
			this.#failed(wordsOf(reason));
		} finally {
			cancel();
		}
	}

	#connect(lost: (why: string) => void): McpConnection {
		const { name, version, limits, log, connect } = this.#parts;
		const link = connect({ lost, said: (line) => log.debug({ server: name, stderr: line }, "MCP server") });
		const connection: McpConnection = new McpConnection({
			server: name,
			version,
			limits,
			link,
			doubted: (cause) => {
				log.debug({ server: name, error: wordsOf(cause) }, "MCP server");
				if (this.#connection === connection && this.#parts.transport === "http") void this.#ping(connection);
			},
			warn: (facts, message) => log.warn(facts, message),
		});
		return connection;
	}

	/** The start failed, or the running server ended. Waiting callers get the reason; the next start is a new attempt. */
	#failed(reason: string): void {
		this.#failure = wordsFor(reason) || "it gave no reason";
		if (!this.#closed) this.#parts.log.warn({ server: this.name, error: this.#failure }, "an MCP server is down");
		this.#apply({ type: "exited", clean: false, unreachable: this.#parts.transport === "http" });
		this.#started.resolve();
		if (!this.#closed) this.#started = Promise.withResolvers();
	}

	#lost(connection: McpConnection | undefined, why: string): void {
		if (connection === undefined || this.#connection !== connection) return;
		this.#connection = undefined;
		this.#cancelPing();
		this.#failed(why);
	}

	/** A process may hang, and a remote server may vanish without notice. */
	#watch(connection: McpConnection): void {
		const { clock, limits } = this.#parts;
		this.#cancelPing = clock.after(limits.pingMs, () => {
			if (connection.isBusy) this.#watch(connection);
			else
				void this.#ping(connection).then((alive) => {
					if (alive && this.#connection === connection) this.#watch(connection);
				});
		});
	}

	async #ping(connection: McpConnection): Promise<boolean> {
		const why = await this.#within(this.#parts.limits.pingMs, (signal) => connection.ping(signal));
		if (why === undefined) return true;
		this.#lost(connection, why);
		await connection.close().catch(() => {});
		return false;
	}

	async #refresh(connection: McpConnection): Promise<void> {
		const { limits, log } = this.#parts;
		const why = await this.#within(limits.listMs, async (signal) => this.#take(await connection.list(signal)));
		this.#refreshing = undefined;
		if (why === undefined) return;
		connection.stale = true;
		log.warn({ server: this.name, error: why }, "an MCP server's tools are those from before");
	}

	/** Undefined when it went well, else why not. */
	async #within(ms: number, work: (signal: AbortSignal) => Promise<unknown>): Promise<string | undefined> {
		const limit = new AbortController();
		const late = new Error(`it does not answer within ${ms} ms`);
		const cancel = this.#parts.clock.after(ms, () => limit.abort(late), "due");
		try {
			await work(limit.signal);
			return undefined;
		} catch (cause) {
			return wordsOf(limit.signal.aborted ? limit.signal.reason : cause);
		} finally {
			cancel();
		}
	}

	#take(listing: Listing): void {
		const { log } = this.#parts;
		const changed = changedTools(this.#listing, listing);
		if (changed.length > 0)
			log.warn(
				{ server: this.name, tools: changed },
				"an MCP server says something else about its tools: remembered approvals of them are void",
			);
		for (const { tool, reason } of listing.refused)
			log.warn({ server: this.name, tool, reason }, "an MCP server's tool is not offered");
		this.#listing = listing;
	}

	/** Waits for a start that is under way or about to come. */
	async #connected(signal: AbortSignal): Promise<McpConnection | undefined> {
		this.#apply({ type: "want" });
		const { phase } = this.#supervision;
		const { clock, limits } = this.#parts;
		const isSoon = phase.at === "backing_off" && phase.until - clock.now() <= limits.startMs;
		if (phase.at === "starting" || isSoon) await unlessAborted(signal, this.#started.promise).catch(() => {});
		return this.#connection;
	}

	#whyDown(): string {
		const { phase } = this.#supervision;
		if (this.#closed) return "the daemon is stopping";
		const reason = this.#failure ?? "it has not been started";
		if (!("until" in phase)) return reason;
		const seconds = Math.max(1, Math.ceil((phase.until - this.#parts.clock.now()) / 1000));
		return `${reason}. It is tried again in ${seconds} s`;
	}

	#explain(cause: unknown, connection: McpConnection, signal: AbortSignal): string {
		if (signal.aborted) return `${this.#called} was stopped: ${wordsOf(signal.reason) || "the call is over"}`;
		const isLost =
			this.#connection !== connection || (cause instanceof SdkError && cause.code === SdkErrorCode.ConnectionClosed);
		const said = wordsFor(wordsOf(cause));
		if (!isLost) return `${this.#called} failed: ${said || "it gave no reason"}`;
		const why = this.#failure ?? said;
		return `${this.#called} was lost during the call (${why}); whether the call had an effect is unknown`;
	}
}

const wordsFor = (text: string): string => printable(text).slice(0, REASON_CHARS_MAX).toWellFormed();

const failed = (text: string): ToolResult => ({ ...textResult(text), failed: true });
