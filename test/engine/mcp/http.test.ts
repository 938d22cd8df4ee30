import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { serving } from "../../serving.ts";
import { until } from "../../until.ts";
import { answered, context, everythingAt, request, rig, toolNamed } from "./rig.ts";

const server = await everythingAt();
const { mcp } = rig({ servers: { far: { url: server.url, allowLoopback: true } }, stopMs: 200 });
afterAll(async () => {
	await mcp.close();
	await server.kill();
});

const call = async (tool: string, args: Record<string, unknown> = {}, how = context()) =>
	(await toolNamed(mcp, `mcp__far__${tool}`)).execute(args, how);

const text = (part: unknown) => (part as { text: string }).text;

describe("A16: the reference server over streamable HTTP", () => {
	test("lists, calls, tells progress, and gives images", async () => {
		const tools = await mcp.source.tools(request());
		expect(tools.map(({ name }) => name)).toContain("mcp__far__echo");
		expect(mcp.status()).toMatchObject([{ transport: "http", state: "running", restarts: 0 }]);
		expect(await call("echo", { message: "over the wire" })).toEqual({
			content: [{ type: "text", text: "Echo: over the wire" }],
		});
		const how = context();
		await call("trigger-long-running-operation", { duration: 0.03, steps: 3 }, how);
		expect(how.said.slice(0, 2)).toEqual(["1 of 3", "2 of 3"]);
		expect((await call("get-tiny-image")).content[1]).toMatchObject({ type: "image", contentType: "image/png" });
	});

	test("asks the person", async () => {
		const how = context({ answer: () => answered("Grace") });
		const { content } = await call("trigger-elicitation-request", {}, how);
		expect(how.asked).toHaveLength(1);
		expect(JSON.stringify(content)).toContain("Name: Grace");
	});

	test("an abort ends the call, and the next one works", async () => {
		const stop = new AbortController();
		const how = context({ signal: stop.signal, progress: () => stop.abort() });
		expect(await call("trigger-long-running-operation", { duration: 2000, steps: 100_000 }, how)).toMatchObject({
			failed: true,
		});
		expect((await call("echo", { message: "on" })).failed).toBeUndefined();
	});

	test("gone during a call: the call has failed, and once the server is back it is found again", async () => {
		const how = context({ progress: () => void server.kill() });
		const { failed, content } = await call("trigger-long-running-operation", { duration: 2000, steps: 100_000 }, how);
		expect(failed).toBe(true);
		expect(text(content[0])).toMatch(/"far" was lost during the call .* is unknown$/);
		await server.start();
		const tool = await toolNamed(mcp, "mcp__far__echo");
		await until("it is connected again", () => mcp.status()[0]?.state === "running");
		const answer = await tool.execute({ message: "again" }, context());
		expect(answer).toEqual({ content: [{ type: "text", text: "Echo: again" }] });
		expect(mcp.status()[0]?.restarts).toBeGreaterThan(0);
	});
});

describe("A16: what an address may be", () => {
	/** A server that answers every request in the same way. */
	const answering = async (status: number, headers: Record<string, string>, body: string) => {
		const seen: Record<string, unknown>[] = [];
		const url = await serving((request, response) => {
			seen.push(request.headers);
			response.writeHead(status, headers).end(body);
		});
		return { url: `${url}/mcp`, seen };
	};
	const lastError = async (url: string, more: object = {}) => {
		const { mcp } = rig(
			{ servers: { odd: { url, allowLoopback: true, ...more } }, messageBytesMax: 10_000, stopMs: 100 },
			{ env: { TOKEN: "s3cret" } },
		);
		onTestFinished(() => mcp.close());
		expect(await mcp.source.tools(request())).toEqual([]);
		return mcp.status()[0]?.lastError;
	};

	test("a redirect is not followed", async () => {
		const target = await answering(200, {}, "");
		const { url } = await answering(307, { location: target.url }, "");
		expect(await lastError(url)).toContain("redirect, which is not followed");
		expect(target.seen).toEqual([]);
	});

	test("an endless answer is cut", async () => {
		const { url } = await answering(200, { "content-type": "application/json" }, `"${"x".repeat(20_000)}"`);
		expect(await lastError(url)).toContain("more than 10000 bytes");
	});

	test("an endless event is cut", async () => {
		const { url } = await answering(200, { "content-type": "text/event-stream" }, `data: ${"x".repeat(20_000)}`);
		expect(await lastError(url)).toContain("more than 10000 bytes");
	});

	test("a secret comes from a variable, and a missing one is said", async () => {
		const { url, seen } = await answering(401, {}, "");
		await lastError(url, { headers: { Authorization: { env: "TOKEN", prefix: "Bearer " } } });
		expect(seen[0]).toMatchObject({ authorization: "Bearer s3cret" });
		expect(await lastError(url, { headers: { Authorization: { env: "NONE" } } })).toContain("NONE is not set");
	});

	test.each([
		["http://example.org/mcp", "https"],
		["https://10.0.0.1/mcp", "private"],
		["https://169.254.169.254/latest", "metadata"],
		["https://[::1]/mcp", "this machine"],
		["https://user:secret@example.org/mcp", "password"],
		["ftp://example.org/", "https"],
		["nowhere", "not a valid address"],
	])("%s is refused at start", (url, reason) => {
		expect(() => rig({ servers: { odd: { url } } })).toThrow(reason);
	});
});
