import { expect, onTestFinished, test } from "vitest";
import { createScripts, createSlots } from "../../../packages/daemon/src/services/workflows/nodes/script.ts";
import { WORKFLOW_LIMITS } from "../../../packages/daemon/src/services/workflows/port.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { until } from "../../until.ts";
import { rejectsWith } from "../parts.ts";

const MB = 1024 * 1024;

function scripts() {
	const made = createScripts(WORKFLOW_LIMITS, systemClock);
	onTestFinished(() => made.close());
	return (code: string, inputs: unknown = {}) =>
		made.run({ appId: "notes", code, inputs, deadlineMs: 60_000 }, AbortSignal.timeout(60_000));
}

test("I11: a script holds no more than its memory, however it takes it", async () => {
	const run = scripts();
	const hoard = (piece: string) => `
		let held = [];
		try { for (;;) held.push(${piece}); } catch { const count = held.length; held = []; return count; }`;
	const limit = WORKFLOW_LIMITS.scriptMemoryBytesMax / MB;
	for (const piece of ["new Uint8Array(1 << 20).fill(1)", "'x'.repeat(1 << 20) + held.length"]) {
		const { count } = { count: (await run(hoard(piece))) as number };
		expect(count).toBeGreaterThan(limit / 2);
		expect(count).toBeLessThan(limit);
	}
	expect(await run("return 1")).toBe(1);
});

test("I11: what a script throws is cut where it is thrown, whatever it throws", async () => {
	const run = scripts();
	const thrown = (code: string) =>
		run(code).then(String, (cause: Error) => cause.message.replace("the script failed: ", ""));
	const { errorCharsMax } = WORKFLOW_LIMITS;
	expect(await thrown("throw 'x'.repeat(4 << 20)")).toBe("x".repeat(errorCharsMax));
	expect(await thrown("throw new TypeError('y'.repeat(4 << 20))")).toMatch(/^TypeError: y+$/);
	expect(await thrown("throw { message: 1, text: 'z'.repeat(4 << 20) }")).toHaveLength(errorCharsMax);
	expect(await thrown("String.prototype.slice = () => 'w'.repeat(4 << 20); throw 'x'.repeat(4 << 20)")).toBe(
		"x".repeat(errorCharsMax),
	);
	expect(await thrown("throw { get message() { throw 'again' } }")).toBe("it threw something that cannot be described");
	expect(await thrown("throw null")).toContain("null");
	expect(await thrown("return (function f() { return f() + 1 })()")).toContain("stack overflow");
});

test("I11: what a script returns fits the outputs of a workflow, or is not copied", async () => {
	const run = scripts();
	const large = `'x'.repeat(${WORKFLOW_LIMITS.outputsBytesMax})`;
	await rejectsWith(run(`return ${large}`), "too_large");
	await rejectsWith(run(`JSON.stringify = () => ${large}; return ${large}`), "too_large");
	await rejectsWith(run(`}); String.prototype.concat = 1; (${large})\n//`), "invalid");
	expect(await run("JSON.stringify = () => '[]'; return { a: inputs.a }", { a: "é\u2028" })).toEqual({ a: "é\u2028" });
	expect(await run("return undefined")).toBeNull();
});

const never = new AbortController().signal;

test("I11: applications take turns, however many scripts one of them has", async () => {
	const enter = createSlots(1, systemClock);
	const order: string[] = [];
	let leave = await enter("a", never);
	const asked = ["a", "a", "a", "b", "b", "c"].map(async (appId) => {
		leave = await enter(appId, never);
		order.push(appId);
	});
	for (const n of asked.keys()) {
		leave();
		await until("the next turn", () => order.length === n + 1);
	}
	expect(order).toEqual(["b", "c", "a", "b", "a", "a"]);
});

test("who gives up waits no more, and takes no slot", async () => {
	const enter = createSlots(1, systemClock);
	const leave = await enter("a", never);
	const stopping = new AbortController();
	const gone = enter("b", stopping.signal);
	const next = enter("c", never);
	stopping.abort(new Error("cancelled"));
	await expect(gone).rejects.toThrow("cancelled");
	leave();
	await next;
});
