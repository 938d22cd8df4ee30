/** Scripts of workflows: QuickJS in WebAssembly, in a thread that can be ended (Z19). They see their inputs and nothing else. */

import { Worker } from "node:worker_threads";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { FairQueue } from "../../kit/fair-queue.ts";
import { outputsTooLarge, type WorkflowLimits } from "../port.ts";

export interface ScriptTask {
	code: string;
	/** JSON text. */
	input: string;
	deadlineMs: number;
}

/** Limits of every script of a thread. */
export interface ScriptThread {
	memoryBytesMax: number;
	/** Length of a script's result, as JSON. */
	resultCharsMax: number;
	/** Length of the error that it throws. */
	wordsCharsMax: number;
}

export interface ScriptRun extends Pick<ScriptTask, "code" | "deadlineMs"> {
	/** Applications take turns. */
	appId: string;
	inputs: unknown;
}

export type ScriptAnswer = { json: string } | { failure: string } | { late: true } | { tooLarge: true };
/** `grown`: the thread holds more memory than a new one. */
export type ThreadAnswer = ScriptAnswer & { grown: boolean };

export type Scripts = ReturnType<typeof createScripts>;

/** A thread that does not even heed the interrupt is ended this long after the deadline; its start may take a while, too. */
const GRACE_MS = 5000;
/** The thread's own heap; scripts have theirs. With a small heap the collector runs for every other instance, which costs more than the script. */
const THREAD_MB_MAX = 256;

export function createScripts(limits: WorkflowLimits, clock: Clock) {
	const idle = new Map<Worker, () => void>();
	const slots = createSlots(limits.scriptsRunningMax, clock);
	let closed = false;
	const forget = (worker: Worker) => {
		idle.get(worker)?.();
		idle.delete(worker);
	};
	const take = (): Worker => {
		const worker = [...idle.keys()].at(-1) ?? startWorker(limits, forget);
		forget(worker);
		return worker;
	};
	const keep = (worker: Worker) => {
		if (closed) return void worker.terminate();
		const end = () => {
			forget(worker);
			void worker.terminate();
		};
		idle.set(worker, clock.after(limits.scriptIdleMs, end));
	};
	return {
		/** Resolves with the script's result. Rejects with `invalid` for an error that it threw, `too_large`, `timeout`, or the signal's reason. */
		async run({ appId, code, inputs, deadlineMs }: ScriptRun, signal: AbortSignal): Promise<unknown> {
			const leave = await slots(appId, signal);
			try {
				const task = { code, input: JSON.stringify(inputs), deadlineMs };
				const worker = take();
				const answer = await answerOf(worker, task, signal, clock);
				if ("late" in answer) {
					// The script ran past its deadline and may still be running.
					void worker.terminate();
					throw new NexusError("timeout", `the script ran longer than ${deadlineMs} ms`);
				}
				// Its memory would stay until the thread's collector comes along.
				if (answer.grown) void worker.terminate();
				else keep(worker);
				if ("failure" in answer) throw new NexusError("invalid", `the script failed: ${answer.failure}`);
				if ("tooLarge" in answer) throw outputsTooLarge(limits);
				return JSON.parse(answer.json) as unknown;
			} finally {
				leave();
			}
		},
		close(): void {
			closed = true;
			for (const worker of idle.keys()) void worker.terminate();
		},
	};
}

/** Applications take the slots in turns. Resolves with how to free the slot; rejects with the signal's reason. */
export function createSlots(slots: number, clock: Clock): (appId: string, signal: AbortSignal) => Promise<() => void> {
	const any = Number.POSITIVE_INFINITY;
	const starts = new Map<string, () => void>();
	const queue = new FairQueue({
		clock,
		limits: { runningMax: slots, runningPerAppMax: any, waitingMax: any, waitingPerAppMax: any },
		start: (id) => starts.get(id)!(),
	});
	let made = 0;
	return async (appId, signal) => {
		signal.throwIfAborted();
		const id = `script ${made++}`;
		const { promise, resolve, reject } = Promise.withResolvers<void>();
		const leave = () => {
			starts.delete(id);
			queue.step({ type: "leave", id });
		};
		const aborted = () => reject(signal.reason as Error);
		starts.set(id, resolve);
		signal.addEventListener("abort", aborted, { once: true });
		queue.step({ type: "wait", id, appId, readyAt: 0 });
		try {
			await promise;
			return leave;
		} catch (cause) {
			leave();
			throw cause;
		} finally {
			signal.removeEventListener("abort", aborted);
		}
	};
}

function startWorker(limits: WorkflowLimits, gone: (worker: Worker) => void): Worker {
	const file = import.meta.url.endsWith(".ts") ? "./script-worker.ts" : "./script-worker.js";
	const workerData: ScriptThread = {
		memoryBytesMax: limits.scriptMemoryBytesMax,
		resultCharsMax: limits.outputsBytesMax,
		wordsCharsMax: limits.errorCharsMax,
	};
	const worker = new Worker(new URL(file, import.meta.url), {
		env: {},
		workerData,
		resourceLimits: { maxOldGenerationSizeMb: THREAD_MB_MAX },
	});
	// A thread may die while it is idle and has no other listener; its error must not end the daemon.
	worker.on("error", () => {}).on("exit", () => gone(worker));
	// A process that has nothing else to do must be able to end.
	worker.unref();
	return worker;
}

/** Rejects when the thread dies or is given up, and ends it then. */
function answerOf(worker: Worker, task: ScriptTask, signal: AbortSignal, clock: Clock): Promise<ThreadAnswer> {
	return new Promise((resolve, reject) => {
		const cancel = clock.after(task.deadlineMs + GRACE_MS, () => over(() => resolve({ late: true, grown: true })));
		const fail = (cause: unknown) =>
			over(() => {
				void worker.terminate();
				reject(cause instanceof Error ? cause : new NexusError("internal", "the thread of the script ended"));
			});
		const aborted = () => fail(signal.reason);
		const over = (then: () => void) => {
			cancel();
			worker.off("message", answered).off("error", fail).off("exit", fail);
			signal.removeEventListener("abort", aborted);
			then();
		};
		const answered = (answer: ThreadAnswer) => over(() => resolve(answer));
		worker.on("message", answered).on("error", fail).on("exit", fail);
		signal.addEventListener("abort", aborted, { once: true });
		// Listening takes a reference, too.
		worker.unref();
		worker.postMessage(task);
	});
}
