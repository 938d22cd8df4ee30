/** `nexus mcp`, its part of `doctor`, and a daemon that has MCP servers. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { McpServerJson } from "../../packages/protocol/src/gen/api.ts";
import { isAlive, liar } from "../engine/mcp/rig.ts";
import { freshFolder } from "../runtime/folder.ts";
import { daemonHere, jsonLines, run } from "./in-process.ts";

function place(mcp: object) {
	const folder = freshFolder();
	writeFileSync(join(folder, "nexus.yaml"), JSON.stringify({ engine: "demo", port: 0, mcp }));
	const env = { NEXUS_DATA: join(folder, "data"), PATH: process.env.PATH };
	return { folder, env, cli: (...args: string[]) => run(args, { cwd: folder, env }) };
}

const doctorOf = (out: string) => jsonLines<Record<string, string>>(out).find(({ check }) => check === "mcp");

describe("A31: nexus mcp", () => {
	it("lists servers, their tools and their state, and starts them on request", async () => {
		const { folder, env, cli } = place({ servers: { good: liar("fine"), bad: liar("never") }, stopMs: 100 });
		const daemon = await daemonHere(env.NEXUS_DATA, { cwd: folder, env });
		const before = await cli("mcp");
		expect(before.out).toMatch(/good\s+stdio\s+not started/);
		const started = await cli("mcp", "--start");
		expect(started.code).toBe(1);
		expect(started.out).toMatch(/good\s+stdio\s+running, 1 tool/);
		expect(started.out).toContain("mcp__good__go");
		// It is tried again and again: where it is in that when the list is made is chance.
		expect(started.out).toMatch(/bad\s+stdio\s+(?!running)\w.*ended with code 1/);
		const servers = jsonLines<McpServerJson>((await cli("mcp", "--json")).out);
		expect(servers).toMatchObject([
			{ name: "good", state: "running", tools: [{ tool: "go" }] },
			{ name: "bad", tools: [] },
		]);
		const pid = servers[0]?.pid ?? 0;
		expect(isAlive(pid)).toBe(true);
		await daemon.close();
		expect(isAlive(pid)).toBe(false);
	});

	it("says how to configure one when there is none", async () => {
		const { folder, env, cli } = place({ servers: {} });
		await daemonHere(env.NEXUS_DATA, { cwd: folder, env });
		const { code, err } = await cli("mcp");
		expect([code, err]).toEqual([0, expect.stringContaining("no MCP servers; `mcp.servers` in nexus.yaml")]);
	});

	it("a daemon with a server that cannot be one does not start, and says which and why", async () => {
		const { folder, env } = place({ servers: { my__docs: liar("fine") } });
		await expect(daemonHere(env.NEXUS_DATA, { cwd: folder, env })).rejects.toThrow(
			"mcp.servers.my__docs: a server's name",
		);
	});
});

it("A3: a time limit above the run's own is refused", async () => {
	const { folder, env } = place({ servers: { docs: { ...liar("fine"), timeoutMs: 999_999_999 } } });
	await expect(daemonHere(env.NEXUS_DATA, { cwd: folder, env })).rejects.toThrow(
		"mcp.servers.docs.timeoutMs: 999999999 is above broker.toolMs",
	);
});

describe("nexus doctor: mcp", () => {
	it("checks the servers without starting them", async () => {
		const good = place({ servers: { docs: liar("fine") } });
		expect(doctorOf((await good.cli("doctor", "--json")).out)).toMatchObject({
			result: "ok",
			detail: expect.stringContaining("docs"),
		});
		const bad = place({
			servers: {
				docs: { command: "no-such-program-anywhere" },
				far: { url: "http://10.0.0.1/", headers: { Authorization: { env: "FAR_TOKEN" } } },
			},
		});
		const found = doctorOf((await bad.cli("doctor", "--json")).out);
		expect(found?.result).toBe("fail");
		expect(found?.detail?.split("\n")).toEqual([
			"docs: command: no-such-program-anywhere cannot be found and run",
			"far: url: 10.0.0.1 is a private address, which is not allowed",
			"far: the variable FAR_TOKEN is not set; it is needed for Authorization",
		]);
	});

	it.each([
		[{ servers: { docs: {} } }, "mcp.servers.docs: a map is not allowed; allowed: a map with either `command`"],
		[{ servers: { docs: { command: "a", url: "https://b" } } }, "mcp.servers.docs: a map is not allowed"],
		[{ pingMs: 5 }, "mcp.servers: undefined is not allowed; allowed: a map from names to servers"],
		[{ servers: {}, pingms: 5 }, 'mcp.pingms: unknown key; did you mean "pingMs"?'],
	])("a section like %j is refused", async (mcp, message) => {
		const { out } = await place(mcp).cli("doctor");
		expect(out).toContain(message);
	});
});
