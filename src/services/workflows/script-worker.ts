/** The thread behind `script.ts`: runs one script at a time in QuickJS, each in a WebAssembly instance of its own, with no host function. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parentPort } from "node:worker_threads";
import { newQuickJSWASMModule, newVariant, RELEASE_SYNC } from "quickjs-emscripten";
import type { ScriptAnswer, ScriptTask } from "./script.ts";

const STACK_BYTES_MAX = 256 * 1024;

/** Compiled once: an instance of it is then a matter of a millisecond. Found from where the library itself would look. */
const wasmModule = new WebAssembly.Module(
	readFileSync(
		createRequire(import.meta.resolve("quickjs-emscripten")).resolve("@jitl/quickjs-wasmfile-release-sync/wasm"),
	),
);
const VARIANT = newVariant(RELEASE_SYNC, { wasmModule });

/** The last line makes JSON of what the script returned; one that cannot be JSON is told as such. */
const programOf = (code: string, input: string): string => `
	const inputs = JSON.parse(${JSON.stringify(input)});
	const result = (function (inputs) { "use strict";
${code}
	})(inputs);
	if (result !== null && typeof result === "object" && typeof result.then === "function")
		throw new Error("a script returns a value, not a promise");
	JSON.stringify(result === undefined ? null : result) ?? "null";
`;

/** Made while nobody waits for it: an instance takes longer than most scripts, and its memory wakes the garbage collector. */
let next = newQuickJSWASMModule(VARIANT);

/** Nothing is disposed of: the whole instance goes, and one that ran out of memory could not tidy up. */
async function run({ code, input, deadlineMs, memoryBytesMax }: ScriptTask): Promise<ScriptAnswer> {
	const runtime = (await next).newRuntime();
	runtime.setMemoryLimit(memoryBytesMax);
	runtime.setMaxStackSize(STACK_BYTES_MAX);
	const end = performance.now() + deadlineMs;
	let late = false;
	runtime.setInterruptHandler(() => (late ||= performance.now() > end));
	const context = runtime.newContext();
	const result = context.evalCode(programOf(code, input), "script.js");
	if (late) return { late: true };
	if (result.error) return { failure: wordsOf(context.dump(result.error)) };
	return { json: String(context.dump(result.value)) };
}

/** What a script threw; it can throw anything. */
function wordsOf(value: unknown): string {
	if (typeof value !== "object" || value === null) return String(value);
	const { name, message } = value as { name?: unknown; message?: unknown };
	return typeof message === "string"
		? `${typeof name === "string" ? name : "Error"}: ${message}`
		: JSON.stringify(value);
}

parentPort!.on("message", (task: ScriptTask) => {
	const answered = (answer: ScriptAnswer) => {
		parentPort!.postMessage(answer);
		next = newQuickJSWASMModule(VARIANT);
		// Whoever needs it is told.
		next.catch(() => {});
	};
	run(task).then(answered, (cause: unknown) => answered({ failure: wordsOf(cause) }));
});
