import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { McpConfig } from "../../../packages/daemon/src/engine/mcp/mcp.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { until } from "../../until.ts";
import { answered, context, isAlive, liar, request, rig, toolNamed } from "./rig.ts";

function lying(how: string, limits: Omit<McpConfig, "servers"> = {}, file?: string) {
	const made = rig({ servers: { liar: liar(how, ...(file === undefined ? [] : [file])) }, stopMs: 100, ...limits });
	onTestFinished(() => made.mcp.close());
	return made;
}

const text = (part: unknown) => (part as { text: string }).text;

async function outcome(how: string, limits: Omit<McpConfig, "servers"> = {}) {
	const { mcp, logged } = lying(how, limits);
	const tool = await toolNamed(mcp, how === "schema" ? "mcp__liar__count" : "mcp__liar__go");
	return { ...(await tool.execute({}, context())), mcp, logged };
}

describe("A16: a server that is dead, slow or lying is a failed tool with its reason", () => {
	test("garbage between the messages is passed over", async () => {
		expect(await outcome("garbage")).toMatchObject({ content: [{ type: "text", text: "after the garbage" }] });
	});

	test.each([
		["endless-garbage", "too much that is not a message"],
		["endless-line", "a message of more than 100000 bytes"],
		["flood", "too many messages in a second"],
	])("%s: it is ended", async (how, reason) => {
		const { failed, content } = await outcome(how, { messageBytesMax: 100_000 });
		expect(failed).toBe(true);
		expect(text(content[0])).toContain(reason);
	});

	test("its last output is reported when it dies", async () => {
		const { failed, content } = await outcome("dies");
		expect(failed).toBe(true);
		expect(text(content[0])).toContain("ended with code 3; its last words: out of ideas");
	});

	test("a result that does not fit its schema, or no form at all, has failed", async () => {
		expect(await outcome("schema")).toMatchObject({ failed: true });
		expect(await outcome("wrong-shape")).toMatchObject({ failed: true });
	});

	test("a result is bounded in bytes and parts, and says what was left out", async () => {
		const { content, failed } = await outcome("large-result", { resultBytesMax: 1_000_000, resultPartsMax: 10 });
		expect(failed).toBeUndefined();
		expect(content).toHaveLength(11);
		expect(text(content[0])).toHaveLength(400_000);
		expect(text(content[1])).toMatch(/^z{200000}\n\[the rest was left out: the result is too large\]$/);
		expect(text(content[2])).toBe("[image image/png of 300000 bytes was left out: the result is too large]");
		expect(text(content[10])).toBe("[93 more parts were left out]");
	});

	test("a server that never starts offers nothing and says why", async () => {
		const { mcp, logged } = lying("never");
		expect(await mcp.source.tools(request())).toEqual([]);
		expect(mcp.status()).toMatchObject([{ lastError: expect.stringContaining("ended with code 1") }]);
		expect(logged.filter(({ level }) => level === "warn").map(({ message }) => message)).toContain(
			"an MCP server is down",
		);
	});

	test("a program that is not there is said at start, and offers nothing", async () => {
		const { mcp, logged } = rig({ servers: { gone: { command: "no-such-program-anywhere" } } });
		onTestFinished(() => mcp.close());
		expect(logged[0]?.facts.problem).toContain("no-such-program-anywhere cannot be found");
		expect(await mcp.source.tools(request())).toEqual([]);
		expect(mcp.status()[0]?.lastError).toContain("ENOENT");
	});

	test("one that is not ready in time is ended, and started again", async () => {
		const file = join(freshFolder(), "starts");
		const { mcp } = lying("slow-once", { startMs: 1500 }, file);
		expect(await mcp.source.tools(request())).toEqual([]);
		expect(mcp.status()[0]?.lastError).toContain("not ready within 1500 ms");
		await until("it is started again", () => mcp.status()[0]?.state === "running");
		expect((await mcp.source.tools(request())).map(({ name }) => name)).toEqual(["mcp__liar__go"]);
		expect(readFileSync(file, "utf8")).toBe("2");
	});

	test("one that answers no ping is started again", async () => {
		const { mcp } = lying("deaf", { pingMs: 200 });
		await mcp.source.tools(request());
		const first = mcp.status()[0]?.pid ?? 0;
		await until("it is given up", () => (mcp.status()[0]?.restarts ?? 0) > 0 && !isAlive(first));
		expect(mcp.status()[0]?.lastError).toContain("does not answer within 200 ms");
	});
});

describe("A16: what a server says about its tools", () => {
	test("a changed list counts from the next run; what changed is logged, and has another revision", async () => {
		const { mcp, logged } = lying("changing");
		const before = await mcp.source.tools(request());
		expect(before.map(({ name }) => name)).toEqual(["mcp__liar__stays", "mcp__liar__turns"]);
		await before[0]!.execute({}, context());
		expect(mcp.status()[0]?.tools).toHaveLength(2);
		const after = await mcp.source.tools(request({ runId: "run_2" }));
		expect(after.map(({ name }) => name)).toEqual(["mcp__liar__stays", "mcp__liar__turns", "mcp__liar__new"]);
		expect(after[0]?.revision).toBe(before[0]?.revision);
		expect(after[1]?.revision).not.toBe(before[1]?.revision);
		expect(before[1]?.description).toBe("reads a file");
		expect(logged.find(({ message }) => message.includes("approvals"))?.facts.tools).toEqual(["mcp__liar__turns"]);
	});

	test("tools that come out the same are refused, long names are cut with a hash", async () => {
		const { mcp } = lying("colliding");
		const names = (await mcp.source.tools(request())).map(({ name }) => name);
		expect(names).toEqual(["mcp__liar__fine", expect.stringMatching(/^mcp__liar__x{44}_[0-9a-f]{8}$/)]);
		expect(mcp.status()[0]?.refused).toEqual(
			["a.b", "a_b"].map((tool) => ({ tool, reason: "several tools come out as mcp__liar__a_b" })),
		);
	});

	test("descriptions and schemas are bounded", async () => {
		const { mcp } = lying("large");
		const tools = await mcp.source.tools(request());
		expect(tools.map(({ name, description }) => [name, description.length])).toEqual([["mcp__liar__long", 4096]]);
		expect(mcp.status()[0]?.refused).toEqual([{ tool: "large", reason: "its schema is too large" }]);
	});

	test("annotations lower no policy", async () => {
		const { mcp } = lying("annotated");
		expect((await toolNamed(mcp, "mcp__liar__deletes")).approval).toBe("non-owner");
		const strict = rig({ servers: { liar: { ...liar("annotated"), approval: "always", timeoutMs: 5 } } });
		onTestFinished(() => strict.mcp.close());
		expect(await toolNamed(strict.mcp, "mcp__liar__deletes")).toMatchObject({ approval: "always", timeoutMs: 5 });
	});
});

describe("A16: what a server asks for", () => {
	test("sampling and roots are refused", async () => {
		const { content } = await outcome("samples");
		expect(JSON.parse(text(content[0]))).toMatchObject([{ code: -32601 }, { code: -32601 }]);
	});

	test("one question at a time", async () => {
		const { mcp, logged } = lying("asks-twice");
		const tool = await toolNamed(mcp, "mcp__liar__go");
		const how = context({
			async answer() {
				await until("the other one is refused", () =>
					logged.some(({ message }) => message.includes("has no person to ask")),
				);
				return answered("yes");
			},
		});
		const { content } = await tool.execute({}, how);
		expect(how.asked).toEqual([{ question: 'The MCP server "liar" asks: May I?', choices: ["yes", "no"] }]);
		const actions = (JSON.parse(text(content[0])) as { action: string }[]).map(({ action }) => action);
		expect(actions.toSorted()).toEqual(["accept", "cancel"]);
	});

	test("one that ignores the end is killed, with all that it has started", async () => {
		const file = join(freshFolder(), "child");
		const { mcp } = lying("stubborn", {}, file);
		await mcp.source.tools(request());
		const pids = [mcp.status()[0]?.pid ?? 0, Number(readFileSync(file, "utf8"))];
		expect(pids.map(isAlive)).toEqual([true, true]);
		await mcp.close();
		await until("both are gone", () => !pids.some(isAlive));
	});

	test("nothing of it outlives the end, whatever it does", async () => {
		const { mcp } = lying("hangs");
		const tool = await toolNamed(mcp, "mcp__liar__go");
		const pid = mcp.status()[0]?.pid ?? 0;
		const call = tool.execute({}, context());
		await mcp.close();
		expect(isAlive(pid)).toBe(false);
		expect(await call).toMatchObject({ failed: true });
		expect(existsSync(`/proc/${pid}`) && readdirSync(`/proc/${pid}`).length > 0).toBe(false);
	});
});
