/** `nexus audit`, against a daemon in this process. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { timeOf, writeWhole } from "../../packages/daemon/src/cli/commands/audit.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { freshFolder } from "../runtime/folder.ts";
import { daemonWith, jsonLines } from "./in-process.ts";

async function house() {
	const { cwd, on } = await daemonWith("engine: reason-act\nreasonAct: { provider: scripted }\n");
	expect((await on("send", "/script\n- { text: done, tokensPerSecond: 0 }\n", "--session", "one")).code).toBe(0);
	return { cwd, on };
}

describe("nexus audit", () => {
	it("lists what happened, newest first, and the daemon's own start with a digest", async () => {
		const { on } = await house();
		const listed = jsonLines((await on("audit", "--json", "--limit", "100")).out);
		const what = listed.map(({ domain, operation }) => `${String(domain)}/${String(operation)}`).reverse();
		expect(what).toEqual(
			expect.arrayContaining(["configuration/started", "messages/accepted", "runs/started", "runs/settled"]),
		);
		const started = listed.find(({ domain }) => domain === "configuration");
		expect(started?.payload).toMatchObject({
			engine: "reason-act",
			config_digest: expect.stringMatching(/^[0-9a-f]{32}$/),
		});
		const runs = jsonLines((await on("audit", "list", "--json", "--domain", "runs", "--since", "1d")).out);
		expect(runs.map(({ operation }) => operation)).toEqual(["settled", "started"]);
		expect((await on("audit", "--until", "2020-01-01")).err).toContain("nothing is on record");
		expect((await on("audit", "--since", "soon")).code).toBe(2);
	});

	it("exports to stdout and to files, as NDJSON, CSV and gzip", async () => {
		const { on, cwd } = await house();
		const out = jsonLines((await on("audit", "export", "--domain", "runs")).out);
		expect(out.map(({ operation }) => operation)).toEqual(["started", "settled"]);
		const csv = await on("audit", "export", "--format", "csv", "--domain", "runs", "-o", "audit.csv");
		expect([csv.code, csv.err]).toEqual([0, expect.stringContaining("3 lines")]);
		expect(readFileSync(join(cwd, "audit.csv"), "utf8").split("\n")[1]).toContain(",runs,started,");
		expect((await on("audit", "export", "--gzip", "-o", "audit.gz", "--domain", "runs")).code).toBe(0);
		expect(jsonLines(gunzipSync(readFileSync(join(cwd, "audit.gz"))).toString())).toEqual(out);
		expect((await on("audit", "export", "--gzip")).code).toBe(2);
		expect((await on("audit", "export", "--format", "xml")).code).toBe(2);
	});

	it("P5.4: an export that breaks off leaves no file that could be taken for one, and says so", async () => {
		const file = join(freshFolder(), "audit.ndjson");
		async function* cut() {
			yield '{"sequence":1}\n';
			throw new NexusError("unavailable", "the connection was cut");
		}
		const exported = writeWhole(file, Readable.from(cut()), false);
		await expect(exported).rejects.toMatchObject({
			code: "unavailable",
			message: expect.stringContaining("not whole"),
		});
		expect([existsSync(file), existsSync(`${file}.part`)]).toEqual([false, false]);
	});
});

it("a time is said as a span, a date or an instant", () => {
	const now = Date.parse("2026-11-17T12:00:00Z");
	expect(["90m", "12h", "2d"].map((text) => timeOf(text, now))).toEqual([
		"2026-11-17T10:30:00.000Z",
		"2026-11-17T00:00:00.000Z",
		"2026-11-15T12:00:00.000Z",
	]);
	expect(timeOf("2026-11-01", now)).toBe("2026-11-01T00:00:00.000Z");
	expect(timeOf("2026-11-01T02:00:00+02:00", now)).toBe("2026-11-01T00:00:00.000Z");
	for (const text of ["yesterday", "5", "2026-13-01", "-1d"]) expect(() => timeOf(text, now)).toThrow("is not a time");
});
