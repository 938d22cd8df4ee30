/** The adapter suite: good adapters in two languages pass it, and it notices what it promises to notice. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ConformanceOptions, faultsOf, formatReport, runConformance } from "../../../src/adapter/adapter.ts";

const path = (relative: string) => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));

let folder = "";
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "nexus-conformance-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const terminal = (): ConformanceOptions => ({ env: { NEXUS_TERMINAL_FILE: join(folder, "terminal.txt") } });

const SUITE_MS = 180_000;
/** A good adapter is waited for on however slow a machine. */
const LIMIT_MS = 60_000;

describe("conformance: adapters that pass", () => {
	it("the Python example passes every case", { timeout: SUITE_MS }, async () => {
		const report = await runConformance(["python3", path("examples/adapter.py")], { ...terminal(), limitMs: LIMIT_MS });
		expect(formatReport(report, "human")).not.toContain("✗");
		expect(report.cases.filter(({ result }) => result === "skipped")).toEqual([]);
		expect(report.passed).toBe(true);
	});

	it("the minimal example gets only the seed's lines, and passes", { timeout: SUITE_MS }, async () => {
		const options = { ...terminal(), limitMs: LIMIT_MS };
		const report = await runConformance(["python3", path("examples/adapter-minimal.py")], options);
		expect(formatReport(report, "human")).not.toContain("✗");
		const skipped = report.cases.filter(({ result }) => result === "skipped");
		expect(skipped.length).toBeGreaterThan(0);
		for (const { detail } of skipped) expect(detail).toContain("does not declare");
	});

	it.each(["edit"])("an adapter of the kit passes with style %s", { timeout: SUITE_MS }, async (style) => {
		const account = join(folder, "account.json");
		writeFileSync(account, JSON.stringify({ id: "a", settings: { folder: join(folder, "messages"), style } }));
		const command = [process.execPath, path("test/adapter/kit/file-platform.ts")];
		const env = { NEXUS_ACCOUNT_FILE: account };
		const report = await runConformance(command, { account: "a", env, limitMs: LIMIT_MS });
		expect(formatReport(report, "human")).not.toContain("✗");
		expect(report.passed).toBe(true);
	});
});

describe("conformance: what it notices", () => {
	/** The Python example with one thing wrong. */
	async function broken(right: string, wrong: string, only: string) {
		const source = readFileSync(path("examples/adapter.py"), "utf8");
		expect(source).toContain(right);
		const file = join(folder, "broken.py");
		writeFileSync(file, source.replace(right, wrong));
		return await runConformance(["python3", file], { ...terminal(), only, limitMs: 10_000 });
	}

	it.each([
		["creating without waiting for the ack", "if not self.intent:", "if True:", "nothing is created before"],
		["creating an open message again", 'if "messageId" in resume:', "if False:", "open message"],
		["losing the boundary between messages", "self.bounds.append(len(self.text))", "pass", "a new assistant message"],
		["positions in the wrong unit", "sum(ord(char) > 0xFFFF for char in text)", "0", "any text"],
		["a message beyond the limit", "elif len(segment) > TEXT_MAX:", "elif False:", "rollover"],
		["dying of garbage", "except ValueError as error:", "except KeyError as error:", "garbage"],
		["mixing deliveries up", 'key = line.get("delivery", line.get("runId", latest))', 'key = ""', "interleaved"],
		[
			"not stopping",
			"    # The daemon has closed our input",
			"    time.sleep(60)\n    # The daemon has closed our input",
			"stops it",
		],
		["finding what is not there", "there = terminal.shown", 'there = "" is not None or terminal.shown', "find"],
		["nonces of pieces that are not of their line", '.{piece}"', '-{piece}"', "in pieces"],
		["a second final", "\n\ndef monitor(account):", "    emit(sent)\n\n\ndef monitor(account):", "one final"],
		["an error's text without an intent", "if not self.intent:", "if self.closed:", "a failed answer"],
		["ids that are numbers", '"messageId": message, "final"', '"messageId": 7, "final"', "one delivery"],
		[
			"a second end",
			'self.say({"type": "delivery_complete", "messageIds": self.ids})',
			'[self.say({"type": "delivery_complete", "messageIds": self.ids}) for _ in range(2)]',
			"several deliveries",
		],
		[
			"a second end long after the first",
			"    # The daemon has closed our input",
			'    emit({"type": "delivery_complete", "messageIds": []})\n    # The daemon has closed our input',
			"several deliveries",
		],
		[
			"garbage without a word",
			'log("skipped a line of the input", reason=str(error)',
			"dict(reason=str(error)",
			"garbage is skipped",
		],
		[
			"words between the lines, long after the answer",
			"    # The daemon has closed our input",
			"    print('bye', flush=True)\n    # The daemon has closed our input",
			"one delivery",
		],
		[
			"reasoning in a status, long after the answer",
			"    # The daemon has closed our input",
			'    emit({"type": "call", "call": "SECRET-REASONING", "ms": 1, "ok": True})\n    # The daemon has closed our input',
			"the seed's lines",
		],
		[
			"white space at the end that is counted to no message",
			"        self.skip(length)\n        self.since",
			"        self.skip(len(self.text[:length].rstrip()))\n        self.since",
			"white space at the end",
		],
		["found with another delivery", '{"type": "found",', '{"type": "found", "delivery": "d0",', "find: a message"],
		["saying again what is out", 'done = line.get("done", ', 'done = ({}).get("done", ', "a part is out"],
	])("%s", async (_what, right, wrong, only) => {
		const report = await broken(right, wrong, only);
		const failed = report.cases.filter(({ result }) => result === "failed").map(({ name }) => name);
		expect(failed.join()).toContain(only);
		expect(report.passed).toBe(false);
	});

	it("nothing in an adapter that relies on find lines being as complete as send lines", async () => {
		const report = await broken('line.get("from", 0)', 'line["from"]', "find: a message");
		expect(formatReport(report, "human")).not.toContain("✗");
	});

	it("a command that is not there, as a failed case that says so", async () => {
		const report = await runConformance([join(folder, "no-such-program")], { limitMs: 3_000 });
		expect(report.passed).toBe(false);
		expect(report.cases).toHaveLength(1);
		expect(formatReport(report, "human")).toContain("ENOENT");
		expect(JSON.parse(formatReport(report, "json"))).toMatchObject({ passed: false });
	});

	it("every wrong field of info", () => {
		const good = {
			channel: "x",
			version: "1",
			protocol: 1,
			supports: ["send"],
			limits: { textMax: 1, unit: "utf8" },
			settings: [],
		};
		expect(faultsOf(good)).toEqual([]);
		expect(faultsOf({})).toHaveLength(8);
		expect(faultsOf({ ...good, fields: ["intent"] })).toEqual(['"intent" needs "runId"']);
		expect(faultsOf({ ...good, typing: { intervalMs: 0, expiryMs: 5000 } })).toEqual([
			expect.stringMatching(/^"typing.intervalMs"/),
		]);
		const setting = { name: "token", secret: true, required: true, prompt: "Token" };
		expect(faultsOf({ ...good, settings: [{ ...setting, pattern: "^\\d+$", when: { name: "mode" } }] })).toEqual([]);
		expect(faultsOf({ ...good, settings: [{ ...setting, pattern: "(" }] })).toEqual([
			'"settings.0.pattern": not a regular expression',
		]);
		expect(faultsOf({ ...good, blocks: { maxChars: "many" } })).toEqual([expect.stringMatching(/^"blocks.maxChars"/)]);
	});
});
