/** JSON-RPC over the standard streams of a child process, which is started when it is needed and again when it has ended. */

import { type ChildProcess, spawn } from "node:child_process";
import { PlatformError } from "@nexus-stream/adapter";
import { networkError } from "@nexus-stream/adapter/platform/network";
import { createLineReader } from "@nexus-stream/adapter/serve/lines";
import type { Log } from "@nexus-stream/protocol/log";

const LINE_BYTES_MAX = 16_000_000;
const STOP_GRACE_MS = 2000;

export interface JsonRpcClient {
	call<Result>(method: string, params: object, signal?: AbortSignal): Promise<Result>;
	/** Subscribes and takes notifications, one after another, until the process ends or the signal aborts. */
	follow(method: string, params: object, options: { signal: AbortSignal; begun(): void }, take: Take): Promise<void>;
	close(): Promise<void>;
}

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
	/** The kind of error; what it is about stands in `data`. */
	message?: string;
	data?: string | { detail?: string; retry_safe?: boolean };
}

interface Running {
	child: ChildProcess;
	waiting: Map<string, { method: string; settle: PromiseWithResolvers<unknown> }>;
	/** Why the process has ended, once it has. */
	ended?: PlatformError;
	notify(method: string, params: unknown): void;
	/** Its end is heard at once. */
	over(): void;
}

export function createRpc(command: string, log: Log): JsonRpcClient {
	let running: Running | undefined;
	let count = 0;

	function start(): Running {
		const [program = "", ...args] = command.split(" ").filter((word) => word !== "");
		const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
		const now: Running = { child, waiting: new Map(), notify: () => {}, over: () => {} };
		const fail = (error: PlatformError) => {
			if (running === now) running = undefined;
			now.ended ??= error;
			for (const { settle } of now.waiting.values()) settle.reject(error);
			now.over();
		};
		child.once("error", (cause) => {
			const unstarted = child.pid === undefined;
			const advice = unstarted ? ". Is it installed?" : "";
			fail(new PlatformError(unstarted ? "unavailable" : "unknown_outcome", `${program}: ${cause.message}${advice}`));
		});
		child.once("close", (code) => fail(new PlatformError("unknown_outcome", `${program} ended with code ${code}`)));
		child.stdin?.on("error", (cause) => log.debug({ error: cause.message }, "imsg reads nothing more"));
		child.stderr?.setEncoding("utf8").on("data", (text: string) => log.debug({ stderr: text.trimEnd() }, "imsg"));
		const onFault = (fault: object) => log.warn(fault, "skipped a line of imsg");
		const reader = createLineReader({ lineBytesMax: LINE_BYTES_MAX, onFault });
		child.stdout?.on("data", (chunk: Buffer) => {
			for (const line of reader.push(chunk)) {
				hear(now, line as JsonRpcMessage);
				if ((line as JsonRpcMessage).error?.code === BLOCKED) retire(now);
			}
		});
		return now;
	}

	/** A send of its own hangs, and it sends nothing more: the next call starts another one. */
	function retire(now: Running): void {
		if (running === now) running = undefined;
		now.child.stdin?.end();
		const timer = setTimeout(() => now.child.kill(), STOP_GRACE_MS);
		now.child.once("close", () => clearTimeout(timer));
	}

	async function call<Result>(method: string, params: object, signal?: AbortSignal): Promise<Result> {
		running ??= start();
		const { child, waiting } = running;
		const id = String(++count);
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

	return {
		call,
		async follow(method, params, { signal, begun }, take) {
			running ??= start();
			const now = running;
			const queue: [method: string, params: unknown][] = [];
			let wake = () => {};
			now.notify = (...given) => {
				queue.push(given);
				wake();
			};
			now.over = () => wake();
			signal.addEventListener("abort", now.over, { once: true });
			try {
				await call(method, params, signal);
				begun();
				while (!signal.aborted) {
					const next = queue.shift();
					const woken = new Promise<void>((resolve) => {
						wake = resolve;
					});
					if (next !== undefined) await take(...next);
					else if (now.ended) throw now.ended;
					else await woken;
				}
			} finally {
				signal.removeEventListener("abort", now.over);
			}
		},
		async close() {
			const child = running?.child;
			if (!child) return;
			const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
			child.stdin?.end();
			const timer = setTimeout(() => child.kill(), STOP_GRACE_MS);
			await closed;
			clearTimeout(timer);
		},
	};
}

function hear(now: Running, { id, method, params, result, error }: JsonRpcMessage): void {
	if (method !== undefined) now.notify(method, params);
	const asked = id === undefined ? undefined : now.waiting.get(id);
	if (!asked) return;
	if (error) asked.settle.reject(refusal(asked.method, error));
	else asked.settle.resolve(result);
}

/** Nothing of these calls has happened: the server is busy, its database cannot be read, an earlier send hangs. */
const BLOCKED = -32004;
const UNTOUCHED: ReadonlySet<number> = new Set([-32000, -32002, BLOCKED]);
const INVALID: ReadonlySet<number> = new Set([-32600, -32601, -32602]);

/** The first that fits decides; of other failures of a send nobody knows what Messages has done. */
function refusal(call: string, { code, message = "", data }: JsonRpcError): PlatformError {
	const { detail = "", retry_safe: untouched = false } = typeof data === "string" ? { detail: data } : (data ?? {});
	const said = `${call}: ${code} ${message}${detail === "" ? "" : `: ${detail}`}`;
	if (/full disk access|authori[sz]ation denied|not (?:permitted|allowed|authori[sz]ed)|permission|-1743/i.test(said)) {
		return new PlatformError("denied", `${said}. Allow it in System Settings, Privacy & Security.`);
	}
	if (
		/(?:chat|recipient) (?:was )?not found|unknown chat|no such chat|can.t get chat|invalid (?:recipient|chat)/i.test(
			said,
		)
	)
		return new PlatformError("gone", said);
	if (INVALID.has(code)) return new PlatformError("invalid", said);
	return new PlatformError(untouched || UNTOUCHED.has(code) ? "unavailable" : "unknown_outcome", said);
}
