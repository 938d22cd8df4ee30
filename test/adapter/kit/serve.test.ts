/** An adapter of the kit as a real process: verbs, environment, resume after kill -9, and how it stops. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type AdapterLine, AdapterProcess } from "../../../packages/adapter/src/conformance/process.ts";
import { openState } from "../../../packages/adapter/src/memory/state.ts";
import type { DraftStyle } from "../../../packages/adapter/src/platform/session.ts";
import type { StreamStatus } from "../../../packages/adapter/src/port.ts";
import { seeded } from "../../../packages/lab/src/fake.ts";
import { atEffort } from "../../effort.ts";
import { callsIn, visibleIn } from "./file-platform.ts";
import { Daemon, from, type Source } from "./world.ts";

const PLATFORM = fileURLToPath(new URL("./file-platform.ts", import.meta.url));
const PROGRAM = [process.execPath, "--conditions=nexus-source", PLATFORM];
const LIMIT_MS = 60_000;
const DEATHS = atEffort(8, 3);

let root = "";
let messages = "";
let env: Record<string, string> = {};
const started: AdapterProcess[] = [];

function account(settings: Record<string, string> = {}): void {
	const file = join(root, "account.json");
	writeFileSync(file, JSON.stringify({ id: "a", settings: { folder: messages, ...settings } }));
	env = { NEXUS_ACCOUNT_FILE: file, NEXUS_STATE_FILE: join(root, "state.json") };
}

function start(...args: string[]): AdapterProcess {
	const adapter = new AdapterProcess(PROGRAM, args, { env });
	started.push(adapter);
	return adapter;
}

const serving = (verb: string): AdapterProcess => start(verb, "--account", "a", "--format", "jsonl");

beforeEach(() => {
	root = mkdtempSync(join(tmpdir(), "nexus-kit-"));
	messages = join(root, "messages");
	account();
});
afterEach(async () => {
	await Promise.all(started.splice(0).map((adapter) => adapter.kill()));
	rmSync(root, { recursive: true, force: true });
});

describe("serve: verbs and exit codes", () => {
	it("info prints one object and needs no account", async () => {
		env = {};
		const adapter = start("info");
		expect(await adapter.exited(LIMIT_MS)).toBe(0);
		expect(adapter.lines).toMatchObject([{ channel: "folder", protocol: 1 }]);
	});

	it("an unknown verb or a missing account is refused with the usage", async () => {
		for (const args of [["sing"], ["stream"], ["stream", "--account", "a", "--format", "xml"], []]) {
			const adapter = start(...args);
			expect(await adapter.exited(LIMIT_MS)).toBe(2);
			expect(adapter.stderr).toContain("Usage: folder info | monitor");
		}
	});

	it("a missing setting, a foreign or a damaged account file is a configuration error", async () => {
		const file = join(root, "account.json");
		for (const text of ['{"id":"a","settings":{}}', '{"id":"b","settings":{"folder":"x"}}', "{"]) {
			writeFileSync(file, text);
			const adapter = serving("health");
			expect(await adapter.exited(LIMIT_MS)).toBe(78);
			expect(JSON.parse(adapter.stderr)).toMatchObject({ level: "error", code: "config" });
		}
	});

	it("health answers and agrees with its exit code", async () => {
		const adapter = serving("health");
		expect(await adapter.exited(LIMIT_MS)).toBe(0);
		expect(adapter.lines).toEqual([{ ok: true, detail: `folder ${messages}` }]);
	});
});

describe("serve: stopping", () => {
	it.each(["SIGTERM", "the end of the input"])(
		"%s ends it with 0; what has no end yet is left to be resumed",
		async (way) => {
			const adapter = serving("stream");
			adapter.say({ type: "stream_start", runId: "r", sessionLabel: "s", target: { to: "c" } });
			adapter.say({ type: "token", text: "open" });
			await adapter.hear("message_created", ({ type }) => type === "message_created", LIMIT_MS);
			if (way === "SIGTERM") adapter.child.kill("SIGTERM");
			else adapter.closeInput();
			expect(await adapter.exited(LIMIT_MS)).toBe(0);
			expect(adapter.lines.some(({ type }) => type === "delivery_error")).toBe(false);
			expect(visibleIn(messages, "c")).toEqual(["open"]);
		},
	);
});

describe("serve: monitor", () => {
	const chat = { id: "c", type: "direct" };
	const inbound = (text: string) =>
		JSON.stringify({ eventId: `e-${text}`, from: { id: "p" }, chat, text, target: { to: "c" }, ts: 1 });

	it("a message is confirmed to the platform once the daemon has it safe, not before", async () => {
		account();
		await serving("health").exited(LIMIT_MS);
		writeFileSync(join(messages, "inbound.jsonl"), `${inbound("one")}\n${inbound("two")}\n`);
		const adapter = serving("monitor");
		const confirmed = () => callsIn(messages).filter(({ name }) => name === "confirmed").length;
		const hear = (text: string) =>
			adapter.hear(text, (line) => line.type === "message" && line.text === text, LIMIT_MS);
		await hear("one");
		expect(confirmed()).toBe(0);
		adapter.say({ type: "ack", eventId: "e-one" });
		await hear("two");
		expect(confirmed()).toBe(1);
		adapter.closeInput();
		expect(await adapter.exited(LIMIT_MS)).toBe(0);
	});

	it("a webhook is answered after its messages are safe", async () => {
		const adapter = serving("monitor");
		const body = Buffer.from("hello").toString("base64");
		adapter.say({ type: "webhook", id: "w1", method: "POST", query: "", headers: {}, body });
		await adapter.hear("message", (line) => line.type === "message" && line.eventId === "w-hello", LIMIT_MS);
		expect(adapter.lines.some(({ type }) => type === "webhook_response")).toBe(false);
		adapter.say({ type: "ack", eventId: "w-hello" });
		const answer = await adapter.hear("webhook_response", ({ type }) => type === "webhook_response", LIMIT_MS);
		expect(answer).toEqual({ type: "webhook_response", id: "w1", status: 200, body: "got hello" });
	});
});

describe("serve: send", () => {
	it("long texts go in pieces, attachments after them, chats in their own order", async () => {
		const adapter = serving("send");
		const text = "word ".repeat(60);
		const attachments = [{ name: "a.txt", contentType: "text/plain", data: "aGk=" }];
		const line = { type: "send", delivery: "d", runId: "r", nonce: "n", target: { to: "c" } };
		adapter.say({ ...line, text, from: 10, to: 10 + text.length, attachments });
		adapter.say({ ...line, nonce: "n2", text: "after", from: 310, to: 315 });
		adapter.say({ type: "typing", target: { to: "c" }, on: true });
		await adapter.hear("the second line", ({ nonce, final }) => nonce === "n2" && final === true, LIMIT_MS);
		const sent = adapter.lines.filter(({ type }) => type === "message_sent");
		expect(sent.map(({ nonce, from: at, to, final }) => [nonce, at, to, final])).toEqual([
			["n", 10, 210, false],
			["n.2", 210, 310, false],
			["n.3", 310, 310, true],
			["n2", 310, 315, true],
		]);
		expect(visibleIn(messages, "c").slice(-2)).toEqual(["[a.txt]", "after"]);
		adapter.closeInput();
		expect(await adapter.exited(LIMIT_MS)).toBe(0);
	});

	it("what the platform will never take is reported with its nonce", async () => {
		const adapter = serving("send");
		adapter.say({ type: "send", delivery: "d", nonce: "n", target: { to: "c" }, text: "  ", from: 0, to: 2 });
		const error = await adapter.hear("delivery_error", ({ type }) => type === "delivery_error", LIMIT_MS);
		expect(error).toMatchObject({ code: "invalid", nonce: "n", delivery: "d" });
	});
});

describe("serve: kill -9", () => {
	const words = Array.from({ length: 150 }, (_, index) => `word${index} `);
	const lines: Source[] = [
		...words.slice(0, 70).map((text) => ({ type: "token" as const, text })),
		{ type: "end", final: false },
		...words.slice(70).map((text) => ({ type: "token" as const, text })),
		{ type: "end", final: true },
	];
	const wire = (input: ReturnType<typeof from>[number]): AdapterLine => {
		if (input.type === "end") return { type: "stream_end", final: input.final };
		return input.type === "error" ? { type: "stream_error", error: "x", partial: true } : { ...input };
	};

	/** Lives until it has said `lines`, or until the delivery is over. */
	async function life(daemon: Daemon, linesMax: number): Promise<void> {
		const adapter = serving("stream");
		const names = { delivery: "d1", runId: "r1" };
		const isOver = () => daemon.over !== undefined || adapter.lines.length >= linesMax;
		adapter.onLine = (line) => {
			const nonce = daemon.hear(line as unknown as StreamStatus);
			if (nonce !== undefined) adapter.say({ type: "ack", nonce, ...names });
		};
		adapter.say({ type: "stream_start", sessionLabel: "s", target: { to: "c" }, ...names, resume: daemon.resume() });
		for (const input of from(lines, daemon.cursor)) {
			if (isOver()) break;
			adapter.say({ ...wire(input), ...names });
			await adapter.until(isOver, 2);
		}
		await adapter.until(isOver, LIMIT_MS);
		await adapter.kill();
	}

	it.each<DraftStyle>(["edit", "append", "preview", "whole"])(
		"I7: style %s shows the answer once, whole, after many deaths",
		async (style) => {
			account({ style, pace_ms: "5" });
			const daemon = new Daemon();
			const random = seeded(style.length);
			let deaths = 0;
			for (; daemon.over === undefined && deaths < DEATHS; deaths++) await life(daemon, 1 + Math.floor(random() * 6));
			if (daemon.over === undefined) await life(daemon, Number.POSITIVE_INFINITY);
			expect(daemon.over).toBe("complete");
			const visible = visibleIn(messages, "c").map((text) => text.trim());
			expect(visible.join(" ")).toBe(words.join("").trim());
			expect(deaths).toBeGreaterThan(2);
		},
	);
});

it("the account's memory is whole on disk, and survives", () => {
	const file = join(root, "state.json");
	const state = openState(file);
	state.set("offset", "7");
	openState(file).set("second", "x");
	state.set("offset", "8");
	expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ offset: "8", second: "x" });
	expect(openState(file).get("offset")).toBe("8");
	expect(existsSync(`${file}.${process.pid}.tmp`)).toBe(false);
});
