/** Nothing that comes from outside steers the terminal: every field of every record, in every command that prints it. */

import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { createTerminal, reportFailure } from "../../packages/daemon/src/cli/terminal.ts";
import { createLogger, readable } from "../../packages/daemon/src/runtime/observe/logger.ts";
import { checksumOf, crc32, messageIdOf, NexusError } from "../../packages/protocol/src/protocol.ts";
import { freshFolder } from "../runtime/folder.ts";
import { serving } from "../serving.ts";
import { jsonLines, run } from "./in-process.ts";

/** A window's title, a colour by ESC and one by U+009B, the start of the line, text from right to left, and a forged line. */
const EVIL = "a\x1b]0;owned\x07\x1b[35mb\x9b35mc\rd\u202Ee\u2066f\x7f\u0085\ng";
const STEERING = /(?![\t\n])[\p{Cc}\u202A-\u202E\u2066-\u2069]/u;
/** The terminal's own colours. */
const OWN = new RegExp(`${String.fromCharCode(27)}\\[(?:1|2|22|31|32|33|39)m`, "g");

/** Every text below is hostile; numbers and shapes stay. */
function poisoned<T>(value: T): T {
	if (typeof value === "string") return `${value}${EVIL}` as T;
	if (Array.isArray(value)) return value.map(poisoned) as T;
	if (typeof value !== "object" || value === null) return value;
	return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, poisoned(each)])) as T;
}

const RUN = {
	run_id: "run_1",
	session: "s",
	engine: "e",
	status: "failed",
	reason: "error",
	started_at: 1,
	ended_at: 2,
	error: { code: "engine_failed", message: "no" },
	usage: { input: 1, output: 2 },
	messages: [
		{ role: "user", text: "hi", attachments: [{ name: "a.txt", bytes: 1 }] },
		{ role: "assistant", text: "ho" },
	],
	tool_calls: [{ name: "search", status: "failed", summary: "none", started_at: 1 }],
	trace: {
		channel: "telegram",
		account: "main",
		sender: "42",
		stages: [{ stage: "acl", ms: 1 }],
		deliveries: ["dlv_1"],
		hooks: [{ plugin: "p", hook: "onReceive", ms: 1, outcome: "changed", detail: "more" }],
	},
	frames_available: true,
};
const SESSION = { session: "s", updated_at: 1, turns: 1, title: "t", live_run_id: "run_1" };
const EVENT = {
	event_id: "evt_1",
	session: "s",
	text: "t",
	received_at: 1,
	disposition: "rejected",
	because: "b",
	channel: "telegram",
	account: "main",
	sender: "42",
	sender_name: "Ann",
};
const PAIRING = {
	code: "ABC",
	channel: "telegram",
	account: "main",
	sender: "42",
	sender_name: "Ann",
	requested_at: 1,
	expires_at: 2,
};
const DELIVERY = {
	delivery_id: "dlv_1",
	run_id: "run_1",
	channel: "telegram",
	account: "main",
	target: { to: "1" },
	mode: "stream",
	state: "failed",
	position: 1,
	messages: [{}],
	error: "gone",
	updated_at: 1,
};
const ACCOUNT = {
	channel: "telegram",
	account: "main",
	rate: { blocked_until: 1 },
	deliveries: { failed: 1 },
	last_error: "no",
	processes: { stream: { state: "open_circuit", restarts: 1 } },
};

/** A well-framed run, hostile wherever a frame holds words of others. */
function hostileRun(): string[] {
	const run_id = "run_1";
	const ids = { run_id, trace_id: "0".repeat(32), correlation_group: run_id, session: "s", ts: 1 };
	let streams = 0;
	const stream = (modality: string, payload: string, end: object): string[] => {
		const message_id = messageIdOf(run_id, ++streams);
		const checksum = checksumOf(crc32(payload));
		const frames = [
			{ type: "stream.begin", message_id, modality, content_type: `text/plain${EVIL}`, ...ids },
			{ type: "stream.chunk", message_id, seq_no: 1, payload, is_partial: false, ts: 1 },
			{ type: "stream.end", message_id, total_chunks: 1, checksum, ts: 1, ...end },
		];
		return frames.map((frame) => JSON.stringify(frame));
	};
	const tool = poisoned({ type: "tool_status", toolName: "t", toolCallId: "c", status: "failed", summary: "s" });
	const inner = { final: false, reason: "completed" };
	const error = { code: "engine_failed", message: `failed${EVIL}` };
	return [
		...stream("text", `text${EVIL}`, inner),
		...stream("reasoning", `reasoning${EVIL}`, inner),
		...stream("tool", JSON.stringify(tool), inner),
		...stream(`card${EVIL}`, JSON.stringify(poisoned({ title: "title" })), inner),
		...stream(`data${EVIL}`, EVIL, inner),
		...stream("text", "end", { final: true, reason: "error", error }),
	];
}

/** A daemon that answers everything with hostile records. */
function answer(method: string | undefined, path: string): string {
	const answers: [RegExp, object][] = [
		[/^\/v1\/runs\?/, { runs: [RUN] }],
		[/^\/v1\/runs\/[^/]+$/, RUN],
		[/\/abort$/, { status: "aborted" }],
		[/^\/v1\/sessions\?/, { sessions: [SESSION] }],
		[/^\/v1\/events/, { events: [EVENT] }],
		[/\/approve$/, { ...PAIRING, approved_at: 3 }],
		[/^\/v1\/pairings/, { pairings: [PAIRING] }],
		[/^\/v1\/accounts/, { accounts: [ACCOUNT] }],
		[/^\/v1\/sign-in-codes/, { url: "http://x/#code=1" }],
	];
	const delivery = { ...poisoned(DELIVERY), delivery_id: "dlv_1" };
	const event = (text: string, index: number) => `id: ${index + 1}\nevent: stream.any\ndata: ${text}\n\n`;
	if (path.startsWith("/v1/deliveries"))
		return JSON.stringify(method === "POST" ? { delivery_id: "dlv_1" } : { deliveries: [delivery] });
	if (path.endsWith("/messages")) return JSON.stringify({ event_id: "evt_1", disposition: "started", run_id: "run_1" });
	if (path.includes("/frames")) return hostileRun().join("\n");
	if (path.includes("/stream")) return hostileRun().map(event).join("");
	const found = answers.find(([pattern]) => pattern.test(path));
	if (!found) throw new Error(`no answer for ${path}`);
	return JSON.stringify(poisoned(found[1]));
}

const COMMANDS = [
	"runs",
	"runs run_1",
	"sessions",
	"stop run_1",
	"url",
	"inbox",
	"pair",
	"pair ABC",
	"deliveries",
	"adapters",
	"deliver --channel telegram --to 1 --run run_1",
	"tail run_1 --reasoning",
	"replay run_1 --speed max --reasoning",
	"send hi --reasoning",
];

/** The output of a command for a person or a pipe, its failure included. */
async function printed(command: string, tty: boolean, ...more: string[]) {
	const url = await serving(({ method, url: path = "" }, response) => response.end(answer(method, path)));
	return run([...command.split(" "), ...more, "--url", url, "--token", "x"], { env: { TERM: "xterm" }, tty });
}

describe.each(COMMANDS)("nexus %s", (command) => {
	it.each([true, false])("lets nothing through that steers (a terminal: %s)", async (isTTY) => {
		const { out, err } = await printed(command, isTTY);
		expect(out + err).not.toBe("");
		expect((out + err).replace(OWN, "")).not.toMatch(STEERING);
	});

	it.skipIf(/^(?:stop|url)/.test(command))("says the same values as JSON, with what steers escaped", async () => {
		const { out, err } = await printed(command, true, "--json");
		expect((out + err).replace(OWN, "")).not.toMatch(STEERING);
		expect(JSON.stringify(jsonLines(out))).toContain(JSON.stringify(EVIL).slice(1, -1));
	});
});

it("an error of the daemon is as safe", () => {
	const stream = Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: true, columns: 400 });
	reportFailure(new NexusError("internal", EVIL), createTerminal(stream, stream, {}), {});
	expect((stream.read() as string).replace(OWN, "")).not.toMatch(STEERING);
});

describe("the log", () => {
	const facts = {
		level: "warn",
		time: "2026-01-01T00:00:00.000Z",
		msg: `m${EVIL}`,
		stderr: EVIL,
		deep: { text: EVIL },
	};

	it("is safe where a person reads it, and one line stays one", () => {
		const line = readable(JSON.stringify({ ...facts, err: { stack: `Error: ${EVIL}` } }));
		expect(line).not.toMatch(STEERING);
		expect(readable(JSON.stringify(facts)).trim()).not.toContain("\n");
	});

	it("is safe as JSON, and the same", () => {
		const folder = freshFolder();
		const fd = openSync(join(folder, "log"), "w");
		const { level: _level, time: _time, msg, ...said } = facts;
		createLogger("info", { isTTY: false, fd } as never).warn(said, msg);
		closeSync(fd);
		const line = readFileSync(join(folder, "log"), "utf8");
		expect(line).not.toMatch(STEERING);
		expect(JSON.parse(line)).toMatchObject({ ...said, msg });
	});
});
