/** The adapter suite: good adapters in two languages pass it, and it notices what it promises to notice. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
	type ConformanceOptions,
	type ConformanceReport,
	faultsOf,
} from "../../../packages/adapter/src/conformance/conformance.ts";
import { runConformance } from "../../../packages/adapter/src/host.ts";

const path = (relative: string) => fileURLToPath(new URL(`../../../${relative}`, import.meta.url));

let folder = "";
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "nexus-conformance-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const terminal = (): ConformanceOptions => ({ env: { NEXUS_TERMINAL_FILE: join(folder, "terminal.txt") } });

const failedOf = ({ cases }: ConformanceReport) => cases.filter(({ result }) => result === "failed");

const SUITE_MS = 600_000;
/** A good adapter is waited for on however slow a machine. */
const LIMIT_MS = 60_000;

describe("conformance: adapters that pass", () => {
	it("the Python example passes every case", { timeout: SUITE_MS }, async () => {
		const report = await runConformance(["python3", path("examples/adapter.py")], { ...terminal(), limitMs: LIMIT_MS });
		expect(failedOf(report)).toEqual([]);
		// A terminal's messages are where it wrote them: there is nothing to note. And nothing to press.
		const skipped = report.cases.filter(({ result }) => result === "skipped");
		const details = new Set(skipped.map(({ detail }) => detail));
		expect(details).toEqual(new Set(['it does not declare "notes"', 'it does not declare "ask"']));
		expect(report.passed).toBe(true);
	});

	it("the minimal example gets only the basic lines, and passes", { timeout: SUITE_MS }, async () => {
		const options = { ...terminal(), limitMs: LIMIT_MS };
		const report = await runConformance(["python3", path("examples/adapter-minimal.py")], options);
		expect(failedOf(report)).toEqual([]);
		const skipped = report.cases.filter(({ result }) => result === "skipped");
		expect(skipped.length).toBeGreaterThan(0);
		for (const { detail } of skipped) expect(detail).toContain("does not declare");
	});

	it("an adapter of the kit passes", { timeout: SUITE_MS }, async () => {
		const report = await ofKit("test/adapter/kit/file-platform.ts", { folder: join(folder, "messages") });
		expect(failedOf(report)).toEqual([]);
		expect(report.passed).toBe(true);
	});
});

/** An adapter of the kit, by its file. */
function ofKit(file: string, settings: Record<string, string>, options: ConformanceOptions = {}) {
	const account = join(folder, "account.json");
	writeFileSync(account, JSON.stringify({ id: "a", settings }));
	const env = { NEXUS_ACCOUNT_FILE: account };
	const command = [process.execPath, "--conditions=nexus-source", path(file)];
	return runConformance(command, { account: "a", env, limitMs: LIMIT_MS, ...options });
}

const noting = (settings: Record<string, string>) =>
	ofKit(
		"test/nex/outbound/adapters/noting-platform.ts",
		{ file: join(folder, "calls"), ...settings },
		{ only: "notes" },
	);

describe("conformance: notes (ST26)", () => {
	it("an adapter of the kit sends once its note is answered", async () => {
		expect((await noting({})).cases).toMatchObject([{ result: "passed" }, { result: "passed" }]);
	});

	it("one that does not wait is noticed", async () => {
		const { cases } = await noting({ hasty: "yes" });
		expect(cases.at(-1)).toMatchObject({ detail: "a message was sent before its note was answered" });
	});
});

describe("conformance: questions", () => {
	/** Says to each line what `answers` makes of it. Its monitor tells something all the time, if given. */
	const adapter = (answers: string, told?: object): string[] => {
		const file = join(folder, "asks.mjs");
		const info = {
			channel: "asks",
			version: "1",
			protocol: 1,
			supports: ["send", "monitor", "ask"],
			fields: ["runId"],
			limits: { textMax: 4000, unit: "utf16" },
			settings: [],
		};
		writeFileSync(
			file,
			`import { createInterface } from "node:readline";
const say = (line) => console.log(JSON.stringify(line));
const sent = ({ nonce, messageId = "m" }) => say({ type: "message_sent", messageId, final: true, nonce });
const refused = ({ nonce }) => say({ type: "delivery_error", error: "no", code: "invalid", nonce });
const isOne = ({ id, choices }) => /^[\\w-]{1,32}$/.test(id) && choices.length > 0 && choices.length < 100 && choices.every((c) => /^[\\w-]+$/.test(c.id) && c.label);
if (process.argv[2] === "monitor" && ${told !== undefined}) setInterval(() => say(${JSON.stringify(told)}), 50);
if (process.argv[2] === "info") say(${JSON.stringify(info)});
else createInterface({ input: process.stdin }).on("line", (text) => { const line = JSON.parse(text); ${answers} });
`,
		);
		return [process.execPath, file];
	};
	const GOOD =
		'if (line.type === "ask") isOne(line) ? sent(line) : refused(line); if (line.type === "asked") line.messageId === "m" ? sent(line) : refused(line);';

	it("one that keeps the promises passes; pressing is skipped when the run cannot press buttons", async () => {
		const { cases } = await runConformance(adapter(GOOD), { limitMs: LIMIT_MS, only: "ask" });
		expect(cases.map(({ result }) => result)).toEqual(["passed", "passed", "passed", "passed"]);
		const { cases: presses } = await runConformance(adapter(GOOD), { limitMs: LIMIT_MS, only: "choice" });
		expect(presses.at(-1)).toMatchObject({ result: "skipped", detail: "this run cannot press buttons" });
	});

	it.each([
		["a question that cannot be shown was sent", "sent(line);", "an invalid question is refused"],
		["expected an answer to", 'if (line.type === "ask") sent(line);', "as often as one likes"],
		["it settled a message that is not there", "sent(line);", "not there"],
		["it settled another message", "sent({ ...line, messageId: line.type });", "as often"],
	])("it notices: %s", async (detail, answers, only) => {
		const { cases } = await runConformance(adapter(answers), { limitMs: 2000, only });
		expect(cases.at(-1)).toMatchObject({ result: "failed", detail: expect.stringContaining(detail) });
	});

	it("it notices a choice of another question", async () => {
		const chat = { id: "1", type: "direct" };
		const choice = { type: "choice", eventId: "1", id: "other", choice: "approve", from: { id: "1" }, chat };
		const options = { limitMs: 2000, only: "choice", press: async () => {} };
		const { cases } = await runConformance(adapter(GOOD, choice), options);
		const detail = expect.stringContaining("the choice is of other");
		expect(cases.at(-1)).toMatchObject({ result: "failed", detail });
	});
});

describe("conformance: what it notices", () => {
	/** The Python example with one thing wrong. */
	async function broken(right: string, wrong: string, options: ConformanceOptions) {
		const source = readFileSync(path("examples/adapter.py"), "utf8");
		expect(source).toContain(right);
		const file = join(folder, "broken.py");
		writeFileSync(file, source.replace(right, wrong));
		return await runConformance(["python3", file], { ...terminal(), limitMs: LIMIT_MS, ...options });
	}

	/** For its reason, and not because the machine was slow. */
	function expectNoticed({ cases, passed }: ConformanceReport, only: string, reason: string): void {
		const failed = cases.filter(({ result }) => result === "failed");
		expect(failed.length).toBeGreaterThan(0);
		for (const { name, detail } of failed)
			expect([name, detail]).toEqual([expect.stringContaining(only), expect.stringContaining(reason)]);
		expect(passed).toBe(false);
	}

	/** Done after the last answer. */
	const AT_ITS_END = (work: string): [right: string, wrong: string] => {
		const end = "    # The daemon has closed our input";
		return [end, `    ${work}\n${end}`];
	};

	it.each([
		["nothing is created before", "a message was created without an intent", "if not self.intent:", "if True:"],
		[
			"nothing is created before",
			"a message was created before the ack",
			"\n\n    def cut(",
			"\n        self.waiting = None\n        self.create(nonce)\n\n    def cut(",
		],
		["open message", "it finished another message than the open one", 'if "messageId" in resume:', "if False:"],
		["a new assistant message", "1 messages instead of 2", "self.bounds.append(len(self.text))", "pass"],
		["any text", "the messages end at 8067, the source at 8071", "sum(ord(char) > 0xFFFF for char in text)", "0"],
		["rollover", "1 messages cannot hold the text; it needs 3", "elif len(segment) > TEXT_MAX:", "elif False:"],
		["garbage", "the process ended", "except ValueError as error:", "except KeyError as error:"],
		[
			"interleaved",
			"the messages end at 1040, the source at 130",
			'key = line.get("delivery", line.get("runId", latest))',
			'key = ""',
		],
		[
			"find",
			"it found a message that was never sent",
			"there = terminal.shown",
			'there = "" is not None or terminal.shown',
		],
		["in pieces", "message 2 of a line does not have the nonce <nonce>.2", '.{piece}"', '-{piece}"'],
		[
			"one final",
			"3 messages are final, for 2 lines",
			"\n\ndef monitor(account):",
			"    emit(sent)\n\n\ndef monitor(account):",
		],
		["a failed answer", "1 of 2 messages were announced", "if not self.intent:", "if self.closed:"],
		["one delivery", "expected string, received number", '"messageId": message, "final"', '"messageId": 7, "final"'],
		[
			"several deliveries",
			"6 ends for 3 deliveries",
			'self.say({"type": "delivery_complete", "messageIds": self.ids})',
			'[self.say({"type": "delivery_complete", "messageIds": self.ids}) for _ in range(2)]',
		],
		[
			"several deliveries",
			"4 ends for 3 deliveries",
			...AT_ITS_END('emit({"type": "delivery_complete", "messageIds": []})'),
		],
		[
			"garbage is skipped",
			"nothing on stderr tells of the garbage",
			'log("skipped a line of the input", reason=str(error)',
			"dict(reason=str(error)",
		],
		["one delivery", "stdout had a line that is not JSON: bye", ...AT_ITS_END("print('bye', flush=True)")],
		[
			"the basic lines",
			"reasoning appears in a status",
			...AT_ITS_END('emit({"type": "call", "call": "SECRET-REASONING", "ms": 1, "ok": True})'),
		],
		[
			"white space at the end",
			"the messages end at 6, the source at 9",
			"        self.skip(length)\n        self.since",
			"        self.skip(len(self.text[:length].rstrip()))\n        self.since",
		],
		[
			"find: a message",
			'found names the delivery "d0" instead of dlv_',
			'{"type": "found",',
			'{"type": "found", "delivery": "d0",',
		],
		[
			"a part is out",
			"it reported the part that was already sent",
			'done = line.get("done", ',
			'done = ({}).get("done", ',
		],
	])("%s: %s", async (only, reason, right, wrong) => {
		expectNoticed(await broken(right, wrong, { only }), only, reason);
	});

	it("an adapter that does not stop", async () => {
		const report = await broken(...AT_ITS_END("time.sleep(600)"), { only: "stops it", momentMs: 1000 });
		expectNoticed(report, "stops it", "it has not ended 1000 ms after its input");
	});

	it("nothing in an adapter that relies on find lines being as complete as send lines", async () => {
		const report = await broken('line.get("from", 0)', 'line["from"]', { only: "find: a message" });
		expect(failedOf(report)).toEqual([]);
	});

	it("a command that is not there, as a failed case that says so", async () => {
		const report = await runConformance([join(folder, "no-such-program")], { limitMs: 3_000 });
		expect(report.passed).toBe(false);
		expect(report.cases).toHaveLength(1);
		expect(report.cases[0]!.detail).toContain("ENOENT");
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
		expect(faultsOf({ ...good, supports: ["send", "ask"] })).toEqual(['"ask" needs "send" and "monitor"']);
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
