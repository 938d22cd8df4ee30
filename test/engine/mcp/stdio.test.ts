import { afterAll, describe, expect, test } from "vitest";
import { until } from "../../until.ts";
import { answered, context, everything, isAlive, request, rig, toolNamed } from "./rig.ts";

const env = { ...process.env, SECRET_KEY: "hidden", DOCS_TOKEN: "t0ken" };
const { mcp, logged } = rig(
	{ servers: { all: { ...everything, env: { GREETING: "hi", TOKEN: { env: "DOCS_TOKEN" } } } } },
	{ env },
);
afterAll(() => mcp.close());

const call = async (tool: string, args: Record<string, unknown> = {}, how = context()) =>
	(await toolNamed(mcp, `mcp__all__${tool}`)).execute(args, how);

describe("A16: the reference server over stdio", () => {
	test("is not started before a run may use its tools", async () => {
		expect(mcp.status()).toMatchObject([{ name: "all", transport: "stdio", state: "stopped", tools: [] }]);
		expect(await mcp.source.tools(request({ deniedTools: ["mcp__*"] }))).toEqual([]);
		expect(await mcp.source.tools(request({ allowedTools: ["read", "mcp__other__*"] }))).toEqual([]);
		expect(mcp.status()).toMatchObject([{ state: "stopped" }]);
	});

	test("lists its tools by name, with a policy, a schema and a revision; sampling and roots are not offered to it", async () => {
		const tools = await mcp.source.tools(request({ allowedTools: ["mcp__all__*"] }));
		const names = tools.map(({ name }) => name);
		expect(names).toContain("mcp__all__echo");
		expect(names).toContain("mcp__all__trigger-elicitation-request");
		expect(names.filter((name) => /sampling|roots|url-elicitation/.test(name))).toEqual([]);
		for (const tool of tools) expect(tool).toMatchObject({ approval: "non-owner", revision: expect.any(String) });
		expect(tools.find(({ name }) => name === "mcp__all__echo")?.parameters).toMatchObject({ required: ["message"] });
		expect(mcp.status()).toMatchObject([{ state: "running", restarts: 0, pid: expect.any(Number) }]);
	});

	test("answers a call", async () => {
		expect(await call("echo", { message: "hello" })).toEqual({ content: [{ type: "text", text: "Echo: hello" }] });
	});

	test("a call that it refuses has failed, with its words", async () => {
		const { failed, content } = await call("get-sum", { a: "one" });
		expect(failed).toBe(true);
		expect(JSON.stringify(content)).toContain("Invalid");
	});

	test("progress is the tool's progress", async () => {
		const how = context();
		await call("trigger-long-running-operation", { duration: 0.003, steps: 3 }, how);
		expect(how.said).toEqual(["1 of 3", "2 of 3", "3 of 3"]);
	});

	test("an abort cancels the call, and the server keeps running", async () => {
		const stop = new AbortController();
		const how = context({ signal: stop.signal, progress: () => stop.abort(new Error("enough")) });
		const { failed, content } = await call("trigger-long-running-operation", { duration: 2000, steps: 100_000 }, how);
		expect(failed).toBe(true);
		expect(content).toEqual([{ type: "text", text: expect.stringContaining("enough") }]);
		expect((await call("echo", { message: "still here" })).failed).toBeUndefined();
		expect(mcp.status()[0]?.restarts).toBe(0);
	});

	test("an image and resources become parts", async () => {
		const image = await call("get-tiny-image");
		expect(image.content[1]).toMatchObject({ type: "image", contentType: "image/png" });
		const held = await call("get-resource-reference", { resourceType: "Text", resourceId: 1 });
		expect(held.content[1]).toMatchObject({ type: "resource", contentType: "text/plain", text: expect.any(String) });
		const blob = await call("get-resource-reference", { resourceType: "Blob", resourceId: 2 });
		expect(blob.content[1]).toMatchObject({ type: "resource", data: expect.any(String) });
		const links = await call("get-resource-links", { count: 2 });
		expect(links.content.slice(1)).toMatchObject([{ type: "resource", uri: expect.any(String) }, { type: "resource" }]);
	});

	test("its environment is what is configured, besides PATH and HOME", async () => {
		const { content } = await call("get-env");
		const seen = JSON.parse((content[0] as { text: string }).text) as Record<string, string>;
		expect(Object.keys(seen).toSorted()).toEqual(["GREETING", "HOME", "PATH", "TOKEN"]);
		expect(seen.TOKEN).toBe("t0ken");
	});

	test("its question goes to the person, labelled with its name", async () => {
		const how = context({ answer: () => answered("Ada") });
		const { content } = await call("trigger-elicitation-request", {}, how);
		expect(how.asked).toHaveLength(1);
		expect(how.asked[0]?.question).toMatch(/^The MCP server "all" asks: Please provide inputs/);
		expect(JSON.stringify(content)).toContain("Name: Ada");
	});

	test("a denial declines, and without a person to ask the question is cancelled", async () => {
		const declined = await call(
			"trigger-elicitation-request",
			{},
			context({ answer: () => ({ id: "A", state: "denied" }) }),
		);
		expect(JSON.stringify(declined.content)).toContain('\\"action\\": \\"decline\\"');
		const cancelled = await call("trigger-elicitation-request");
		expect(JSON.stringify(cancelled.content)).toContain('\\"action\\": \\"cancel\\"');
		expect(logged.map(({ message }) => message)).toContain(
			"an MCP server asks for a person's answer, but the run has no person to ask",
		);
	});

	test("while runs of several people call it, no person is asked: the right one is unknown", async () => {
		const stop = new AbortController();
		const { promise: begun, resolve } = Promise.withResolvers<void>();
		const other = context({ runId: "run_2", signal: stop.signal, progress: () => resolve() });
		const long = call("trigger-long-running-operation", { duration: 2000, steps: 100_000 }, other);
		await begun;
		const how = context({ answer: () => answered("Ada") });
		const { content } = await call("trigger-elicitation-request", {}, how);
		expect(how.asked).toEqual([]);
		expect(JSON.stringify(content)).toContain('\\"action\\": \\"cancel\\"');
		stop.abort();
		await long;
	});

	test("a question is over with its call", async () => {
		const stop = new AbortController();
		const how = context({
			signal: stop.signal,
			answer: () => {
				stop.abort(new Error("time is over"));
				return new Promise<never>(() => {});
			},
		});
		expect(await call("trigger-elicitation-request", {}, how)).toMatchObject({ failed: true });
	});

	test("killed during a call: the call has failed with the reason, and the next one finds it started again", async () => {
		const pid = mcp.status()[0]?.pid ?? 0;
		const how = context({ progress: () => isAlive(pid) && process.kill(pid, "SIGKILL") });
		const { failed, content } = await call("trigger-long-running-operation", { duration: 2000, steps: 100_000 }, how);
		expect(failed).toBe(true);
		expect(content).toEqual([
			{ type: "text", text: expect.stringMatching(/"all" was lost during the call \(ended by SIGKILL.*is unknown$/) },
		]);
		expect(await call("echo", { message: "back" })).toEqual({ content: [{ type: "text", text: "Echo: back" }] });
		expect(mcp.status()).toMatchObject([
			{ state: "running", restarts: 1, lastError: expect.stringContaining("SIGKILL") },
		]);
	});

	test("closing ends its process, and later calls fail", async () => {
		const tool = await toolNamed(mcp, "mcp__all__echo");
		const pid = mcp.status()[0]?.pid ?? 0;
		expect(isAlive(pid)).toBe(true);
		await mcp.close();
		await until("the process is gone", () => !isAlive(pid));
		expect(await tool.execute({ message: "x" }, context())).toMatchObject({ failed: true });
	});
});
