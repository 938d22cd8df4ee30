/** The thread behind `script.ts`: runs one script at a time in QuickJS, each in its own WebAssembly instance, with no host function. */

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import {
	newQuickJSWASMModule,
	newVariant,
	type QuickJSContext,
	type QuickJSHandle,
	RELEASE_SYNC,
} from "quickjs-emscripten";
import type { ScriptAnswer, ScriptTask, ScriptThread, ThreadAnswer } from "./script.ts";

const STACK_BYTES_MAX = 256 * 1024;
const PAGE_BYTES = 64 * 1024;
/** The library's initial memory, in pages. */
const PAGES_MIN = 256;

const { memoryBytesMax, resultCharsMax, wordsCharsMax } = workerData as ScriptThread;

/** Compiled once: an instance of it is then a matter of a millisecond. Found from where the library itself would look. */
const wasmModule = new WebAssembly.Module(
	readFileSync(
		createRequire(import.meta.resolve("quickjs-emscripten")).resolve("@jitl/quickjs-wasmfile-release-sync/wasm"),
	),
);

/**
 * All that a script can allocate is this memory: QuickJS's own limit counts eight bytes for an allocation, whatever its size, and lets a script
 * take gigabytes.
 */
function newInstance() {
	const maximum = Math.max(PAGES_MIN, Math.floor(memoryBytesMax / PAGE_BYTES));
	const memory = new WebAssembly.Memory({ initial: PAGES_MIN, maximum });
	const quickJs = newQuickJSWASMModule(newVariant(RELEASE_SYNC, { wasmModule, wasmMemory: memory }));
	// The script that needs it gets the error.
	quickJs.catch(() => {});
	return { quickJs, memory };
}

/** Made while no script waits for it: an instance takes longer than most scripts, and its memory wakes the garbage collector. */
let next = newInstance();

/**
 * Calls a script and makes one text of what came of it, so that the host copies nothing else: `=` and JSON, `!` and what it threw, or `>` when
 * the JSON is too long. It is evaluated before the script, which can change what these names stand for afterwards.
 */
const HARNESS = `(function () {
	"use strict";
	const { parse, stringify } = JSON;
	const cut = Function.prototype.call.bind(String.prototype.slice);
	const words = (thrown, charsMax) => {
		if (thrown === null) return "null; perhaps it ran out of memory";
		if (typeof thrown !== "object") return cut(String(thrown), 0, charsMax);
		const { name, message } = thrown;
		if (typeof message !== "string") return cut(stringify(thrown) ?? "something without words", 0, charsMax);
		return cut((typeof name === "string" ? cut(name, 0, 100) : "Error") + ": " + cut(message, 0, charsMax), 0, charsMax);
	};
	return (script, input, jsonCharsMax, wordsCharsMax) => {
		try {
			const result = script(parse(input));
			if (result !== null && typeof result === "object" && typeof result.then === "function")
				return "!a script returns a value, not a promise";
			const json = stringify(result === undefined ? null : result) ?? "null";
			return json.length > jsonCharsMax ? ">" : "=" + json;
		} catch (thrown) {
			try {
				return "!" + words(thrown, wordsCharsMax);
			} catch {
				return "!it threw something that cannot be described";
			}
		}
	};
})()`;

/** Nothing is disposed of: the whole instance goes, and one that ran out of memory could not tidy up. */
async function run({ code, input, deadlineMs }: ScriptTask): Promise<ScriptAnswer> {
	const runtime = (await next.quickJs).newRuntime();
	runtime.setMaxStackSize(STACK_BYTES_MAX);
	const context = runtime.newContext();
	const harness = context.unwrapResult(context.evalCode(HARNESS, "harness.js"));
	// From here on it is the script's own time.
	const end = performance.now() + deadlineMs;
	let late = false;
	runtime.setInterruptHandler(() => (late ||= performance.now() > end));
	const script = context.evalCode(`(function (inputs) { "use strict";\n${code}\n})`, "script.js");
	if (late) return { late: true };
	if (script.error) return { failure: wordsOfError(context, script.error) };
	const [given, json, words] = [
		context.newString(input),
		context.newNumber(resultCharsMax),
		context.newNumber(wordsCharsMax),
	];
	const result = context.callFunction(harness, context.undefined, script.value, given, json, words);
	if (late) return { late: true };
	if (result.error) return { failure: wordsOfError(context, result.error) };
	return answerOf(textOf(context, result.value, resultCharsMax + 1));
}

function answerOf(text: string | undefined): ScriptAnswer {
	if (text?.startsWith("=")) return { json: text.slice(1) };
	if (text === ">") return { tooLarge: true };
	return { failure: text?.startsWith("!") ? text.slice(1) : "it left its function" };
}

/** A text of at most so many characters; a longer one is not copied. The length of a text is nothing that a script can change. */
function textOf(context: QuickJSContext, handle: QuickJSHandle, charsMax: number): string | undefined {
	if (context.typeof(handle) !== "string") return undefined;
	return context.getNumber(context.getProp(handle, "length")) <= charsMax ? context.getString(handle) : undefined;
}

/** Describes an error that no script can catch: a syntax error, or the end of memory or stack. */
function wordsOfError(context: QuickJSContext, error: QuickJSHandle): string {
	const [name, message] = ["name", "message"].map((key) => textOf(context, context.getProp(error, key), wordsCharsMax));
	return message === undefined ? "out of memory" : `${name ?? "Error"}: ${message}`;
}

parentPort!.on("message", (task: ScriptTask) => {
	const answered = (answer: ScriptAnswer) => {
		const grown = next.memory.buffer.byteLength > PAGES_MIN * PAGE_BYTES;
		parentPort!.postMessage({ ...answer, grown } satisfies ThreadAnswer);
		if (!grown) next = newInstance();
	};
	// An instance that has no memory left may fail anywhere.
	run(task).then(answered, (cause: unknown) => answered({ failure: String(cause).slice(0, wordsCharsMax) }));
});
