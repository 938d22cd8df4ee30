/** JSON-RPC over the standard streams of a child process, which is started on demand and again after it has ended. */

import { type ChildProcess, spawn } from "node:child_process";
import { EventEmitter, on } from "node:events";
import { PlatformError } from "@nexus-stream/adapter";
import { networkError } from "@nexus-stream/adapter/platform/network";
import { createLineReader } from "@nexus-stream/adapter/serve/lines";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";

const LINE_BYTES_MAX = 16_000_000;
const STOP_GRACE_MS = 2000;

type Take = (method: string, params: unknown) => Promise<void>;

interface JsonRpcMessage {
	id?: string;
	method?: string;
	params?: unknown;
	result?: unknown;
	error?: JsonRpcError;
}

interface JsonRpcError {
	code: number;
	/** The kind of error; the details are in `data`. */
	message?: string;
	data?: string | { detail?: string; retry_safe?: boolean };
}

interface RpcProcess {
	child: ChildProcess;
	waiting: Map<string, { method: string; settle: PromiseWithResolvers<unknown> }>;
	/** Why the process has ended, once it has. */
	ended?: PlatformError;
	/** Its notifications, and its end. */
	events: EventEmitter<{ notified: Parameters<Take>; ended: [] }>;
}

export class JsonRpcClient {
	readonly #command: readonly string[];
	readonly #log: Log;
	#running: RpcProcess | undefined;
	#count = 0;

	constructor(command: string, log: Log) {
		this.#command = command.split(" ").filter((word) => word !== "");
		this.#log = log;
	}

	async call<Result>(method: string, params: object, signal?: AbortSignal): Promise<Result> {
		this.#running ??= this.#start();
		const { child, waiting } = this.#running;
		const id = String(++this.#count);
		const settle = Promise.withResolvers<unknown>();
		waiting.set(id, { method, settle });
		const abort = () => settle.reject(networkError(method, signal?.reason));
		signal?.addEventListener("abort", abort, { once: true });
		child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
		try {
			return (await settle.promise) as Result;
		} finally {
			waiting.delete(id);
			signal?.removeEventListener("abort", abort);
		}
	}

	/** Subscribes and takes notifications, one after another, until the process ends or the signal aborts. */
	async follow(
		method: string,
		params: object,
		{ signal, begun }: { signal: AbortSignal; begun(): void },
		take: Take,
	): Promise<void> {
		this.#running ??= this.#start();
		const now = this.#running;
		// Notifications may come before the answer.
		const notified = on(now.events, "notified", { signal, close: ["ended"] });
		try {
			await this.call(method, params, signal);
			begun();
			for await (const given of notified) {
				if (signal.aborted) return;
				await take(...(given as Parameters<Take>));
			}
		} catch (cause) {
			if (!signal.aborted) throw cause;
		} finally {
			await notified.return?.();
		}
		if (now.ended && !signal.aborted) throw now.ended;
	}

	async close(): Promise<void> {
		if (this.#running) await stop(this.#running.child);
	}

	#start(): RpcProcess {
		const [program = "", ...args] = this.#command;
		const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
		const now: RpcProcess = { child, waiting: new Map(), events: new EventEmitter() };
		child.once("error", (cause) => {
			const unstarted = child.pid === undefined;
			const advice = unstarted ? ". Is it installed?" : "";
			const fault = unstarted ? "unavailable" : "unknown_outcome";
			this.#end(now, new PlatformError(fault, `${program}: ${cause.message}${advice}`));
		});
		child.once("close", (code) =>
			this.#end(now, new PlatformError("unknown_outcome", `${program} ended with code ${code}`)),
		);
		this.#read(now);
		return now;
	}

	#read(now: RpcProcess): void {
		const { stdin, stderr, stdout } = now.child;
		const log = this.#log;
		stdin?.on("error", (cause) => log.debug({ error: cause.message }, "imsg has closed its input"));
		stderr?.setEncoding("utf8").on("data", (text: string) => log.debug({ stderr: text.trimEnd() }, "imsg"));
		const onFault = (fault: object) => log.warn(fault, "skipped a line of imsg");
		const reader = createLineReader({ lineBytesMax: LINE_BYTES_MAX, onFault });
		stdout?.on("data", (chunk: Buffer) => {
			for (const line of reader.push(chunk) as JsonRpcMessage[]) {
				settle(now, line);
				if (line.error?.code !== BLOCKED) continue;
				// An earlier send hangs in this process: the next call starts another one.
				if (this.#running === now) this.#running = undefined;
				void stop(now.child);
			}
		});
	}

	#end(now: RpcProcess, error: PlatformError): void {
		if (this.#running === now) this.#running = undefined;
		now.ended ??= error;
		for (const { settle } of now.waiting.values()) settle.reject(error);
		now.events.emit("ended");
	}
}

async function stop(child: ChildProcess): Promise<void> {
	const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
	child.stdin?.end();
	const cancel = systemClock.after(STOP_GRACE_MS, () => child.kill());
	await closed;
	cancel();
}

function settle(now: RpcProcess, { id, method, params, result, error }: JsonRpcMessage): void {
	if (method !== undefined) now.events.emit("notified", method, params);
	const call = id === undefined ? undefined : now.waiting.get(id);
	if (!call) return;
	if (error) call.settle.reject(refusal(call.method, error));
	else call.settle.resolve(result);
}

/** Nothing of these calls has happened: the server is busy, its database cannot be read, an earlier send hangs. */
const BLOCKED = -32004;
const UNTOUCHED: ReadonlySet<number> = new Set([-32000, -32002, BLOCKED]);
const INVALID: ReadonlySet<number> = new Set([-32600, -32601, -32602]);

/** The first match decides; after any other failure of a send the outcome is unknown. */
function refusal(call: string, { code, message = "", data }: JsonRpcError): PlatformError {
	const { detail = "", retry_safe: untouched = false } = typeof data === "string" ? { detail: data } : (data ?? {});
	const text = `${call}: ${code} ${message}${detail === "" ? "" : `: ${detail}`}`;
	if (/full disk access|authori[sz]ation denied|not (?:permitted|allowed|authori[sz]ed)|permission|-1743/i.test(text)) {
		return new PlatformError("denied", `${text}. Allow it in System Settings, Privacy & Security.`);
	}
	if (
		/(?:chat|recipient) (?:was )?not found|unknown chat|no such chat|can.t get chat|invalid (?:recipient|chat)/i.test(
			text,
		)
	)
		return new PlatformError("gone", text);
	if (INVALID.has(code)) return new PlatformError("invalid", text);
	return new PlatformError(untouched || UNTOUCHED.has(code) ? "unavailable" : "unknown_outcome", text);
}
