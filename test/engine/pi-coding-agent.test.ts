import {
	existsSync,
	linkSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	rmSync,
	symlinkSync,
	writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { LLMock } from "@copilotkit/aimock";
import { type FauxResponseStep, fauxAssistantMessage, fauxText, fauxToolCall } from "@earendil-works/pi-ai";
import type { ApprovalOutcome, EngineEvent } from "@nexus-stream/protocol/engine";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { digestOf } from "../../packages/daemon/src/engine/engine.ts";
import { accountOf } from "../../packages/daemon/src/engine/pi/signature.ts";
import { createPiCodingAgentEngine } from "../../packages/daemon/src/engine/pi-coding-agent/pi-coding-agent.ts";
import { oneByOne } from "./demo-play.ts";
import {
	ask,
	deaf,
	expectPaired,
	fauxCodingEngine,
	lookingModel,
	NO_RETRY,
	ranWell,
	run,
	shape,
	stopMock,
	textOf,
	toolsOf,
	usageOf,
} from "./pi-kit.ts";

let base: string;
let home: string;
let root: string;
let homeBefore: string | undefined;

beforeEach(() => {
	base = mkdtempSync(path.join(tmpdir(), "nexus-coding-"));
	home = path.join(base, "home");
	root = path.join(base, "project");
	mkdirSync(home);
	mkdirSync(root);
	writeFileSync(path.join(root, "AGENTS.md"), "House rule: tabs.");
	homeBefore = process.env.HOME;
	process.env.HOME = home;
});

afterEach(() => {
	process.env.HOME = homeBefore;
	rmSync(base, { recursive: true, force: true });
});

const coding = (responses: FauxResponseStep[], more: Parameters<typeof fauxCodingEngine>[1] = {}) =>
	fauxCodingEngine(responses, { config: { filesRoot: root }, ...more });

const houseWith = (bash: object) => ({
	dataDir: path.join(base, "data"),
	protectedFiles: [],
	secretFiles: [],
	config: { tools: { bash } },
});

const call = (name: string, args: Record<string, string>, id = "c1") =>
	fauxAssistantMessage([fauxText("Working."), fauxToolCall(name, args, { id })], { stopReason: "toolUse" });

describe("A15: what is the daemon's", () => {
	const places = () => ({
		data: path.join(root, ".nexus", "token"),
		config: path.join(root, "nexus.yaml"),
		link: path.join(root, "link"),
		hard: path.join(root, "hard"),
		process: "/proc/self/environ",
		outside: path.join(base, "elsewhere.txt"),
		own: path.join(root, "own.txt"),
	});

	beforeEach(() => {
		const { data, config, link, hard, outside, own } = places();
		mkdirSync(path.dirname(data));
		for (const file of [data, config, outside, own]) writeFileSync(file, "s3cret");
		symlinkSync(data, link);
		linkSync(config, hard);
	});

	/** By the name of the place: what became of a call that goes there. */
	async function reached(name: string, args: (path: string) => Record<string, string>, owner: boolean) {
		const all = Object.entries(places());
		const calls = all.map(([id, file]) => call(name, args(file), id));
		const services = {
			dataDir: path.join(root, ".nexus"),
			protectedFiles: [path.join(root, "nexus.yaml")],
			secretFiles: [path.join(root, "nexus.yaml")],
		};
		const { engine } = await coding([...calls, fauxAssistantMessage("Done.")], { services });
		const { events } = await run(engine, ask("go", { owner, approval: { "*": "never" } }));
		const ended = toolsOf(events).filter(({ status }) => status === "completed" || status === "failed");
		return ended.flatMap(({ callId, status }) => (status === "completed" ? [callId] : []));
	}

	test.each([
		["the owner's", true, ["outside", "own"]],
		["a guest's", false, ["own"]],
	])("is neither read nor written with %s words, and guests stay in the folder", async (_, owner, may) => {
		expect(await reached("read", (file) => ({ path: file }), owner)).toEqual(may);
		expect(await reached("write", (file) => ({ path: file, content: "x" }), owner)).toEqual(may);
		expect(readFileSync(places().config, "utf8")).toBe("s3cret");
		expect(readFileSync(places().data, "utf8")).toBe("s3cret");
	});
});

describe("A10: the owner's run with a guest's words in its context", () => {
	const among = { whose: "Eve", from: { channel: "c", account: "a", sender: "eve" }, deniedTools: ["write"] };

	test("stays in the folder, unless a person agrees to the very call", async () => {
		const outside = path.join(base, "elsewhere.txt");
		writeFileSync(outside, "s3cret");
		const script = [call("read", { path: outside }), call("write", { path: outside, content: "new" }, "c2")];
		const { engine } = await coding([...script, fauxAssistantMessage("Done.")]);
		const events: EngineEvent[] = [];
		const answer = async (id: string): Promise<ApprovalOutcome> => {
			const { name, args } = toolsOf(events).find(({ asking }) => asking?.id === id)!;
			return { id, state: "approved", digest: digestOf(name, args) };
		};
		const signal = new AbortController().signal;
		for await (const event of oneByOne(engine.run(ask("go", { among }), { signal, answer }))) events.push(event);
		const asked = toolsOf(events).flatMap(({ name, asking }) => (asking?.state === "pending" ? [[name, asking]] : []));
		expect(asked).toEqual([
			["write", { id: "c2", kind: "approval", state: "pending", once: true, because: expect.stringContaining("Eve") }],
		]);
		const ends = toolsOf(events).filter(({ status }) => status === "completed" || status === "failed");
		expect(ends).toMatchObject([
			{ name: "read", status: "failed", result: expect.stringContaining("outside the folder") },
			{ name: "write", status: "completed" },
		]);
		expect(readFileSync(outside, "utf8")).toBe("new");
	});
});

describe("a whole run", () => {
	test("works in the files root and answers in two messages", async () => {
		const { engine } = await coding([
			call("write", { path: "hello.txt", content: "hi" }),
			call("bash", { command: "cat hello.txt; pwd" }, "c2"),
			fauxAssistantMessage("Done."),
		]);
		const { events } = await ranWell(engine, ask("make a file"));
		expect(shape(events)).toMatch(
			/^message text write:started write:completed message text bash:started (bash:progress )?bash:completed message text usage$/,
		);
		expect(readFileSync(path.join(root, "hello.txt"), "utf8")).toBe("hi");
		expect(toolsOf(events).at(-1)).toMatchObject({ result: expect.stringContaining(`hi${root}`) });
		expectPaired(events);
		expect(usageOf(events)).toHaveLength(1);
	});

	test("offers the tools that the run may use, and no others", async () => {
		const { response, offered } = lookingModel();
		const { engine } = await coding([response, response]);
		await run(engine, ask("hi", { allowedTools: ["read", "time"] }));
		expect(offered).toEqual(["read"]);
		await run(engine, ask("hi"));
		expect(offered).toEqual(["read", "bash", "edit", "write"]);
	});

	test("A15: commands run in the wrapper of tools.bash, whatever is in them", async () => {
		const wrapper = ["sh", "-c", 'echo "in the wrapper: $1"; exec "$@"', "wrapper"];
		const command = `echo 'quo''ted' "$(echo sub)" | tr a-z A-Z; exit 3`;
		const services = houseWith({ wrapper });
		const { engine } = await coding([call("bash", { command }), fauxAssistantMessage("Done.")], { services });
		const { events } = await run(engine, ask("go"));
		const { status, result } = toolsOf(events).at(-1)!;
		expect(status).toBe("failed");
		expect(result).toMatch(/^in the wrapper: bash\nQUOTED SUB\s+Command exited with code 3$/);
	});

	test("A15: a wrapper that is not there runs nothing, and without `enabled` there is no bash", async () => {
		const services = houseWith({ wrapper: ["no-such-wrapper"] });
		const { engine } = await coding([call("bash", { command: "touch made" }), fauxAssistantMessage("Done.")], {
			services,
		});
		const { events } = await run(engine, ask("go"));
		expect(toolsOf(events).at(-1)).toMatchObject({
			status: "failed",
			result: expect.stringContaining("no-such-wrapper"),
		});
		expect(existsSync(path.join(root, "made"))).toBe(false);
		const { response, offered } = lookingModel();
		await run((await coding([response], { services: houseWith({ enabled: false }) })).engine, ask("hi"));
		expect(offered).toEqual(["read", "edit", "write"]);
	});

	test("A15: a command sees no keys and no tokens", async () => {
		vi.stubEnv("NEXUS_TOKEN", "precious");
		vi.stubEnv("TELEGRAM_BOT_TOKEN", "precious");
		try {
			const { engine } = await coding([call("bash", { command: "env; echo $HOME" }), fauxAssistantMessage("Done.")]);
			const { events } = await run(engine, ask("look", { owner: true }));
			expect(JSON.stringify(events)).not.toContain("precious");
			expect(toolsOf(events).at(-1)).toMatchObject({ status: "completed", result: expect.stringContaining(home) });
		} finally {
			vi.unstubAllEnvs();
		}
	});

	test("gives the model its own reasoning and a tool's picture of an earlier turn", async () => {
		let seen = "";
		const { engine, faux } = await coding(
			[
				({ messages }) => {
					seen = JSON.stringify(messages);
					return fauxAssistantMessage("Done.");
				},
			],
			{ config: { filesRoot: root, thinking: "low" } },
		);
		const { api, provider, id: model } = faux.getModel();
		const signature = JSON.stringify({
			api,
			provider,
			model,
			account: accountOf("faux-secret-key"),
			signature: "signed by faux",
		});
		const content = [{ type: "image" as const, contentType: "image/png", data: "UElDVFVSRQ==" }];
		const call = { callId: "c", name: "read", args: {}, status: "completed" as const, result: "[image]", content };
		const messages = [
			{ role: "user" as const, text: "look" },
			{
				role: "assistant" as const,
				text: "",
				toolCalls: [call],
				reasoning: [{ text: "I look.", signature, after: 0, callsBefore: 0 }],
			},
			{ role: "user" as const, text: "and now?" },
		];
		await ranWell(engine, ask("", { messages }));
		expect(seen).toContain("signed by faux");
		expect(seen).toContain("UElDVFVSRQ==");
	});

	test("keeps nothing outside the files root", async () => {
		const { engine } = await coding([call("bash", { command: "true" }), fauxAssistantMessage("Done.")]);
		await run(engine, ask("go"));
		expect(readdirSync(home)).toEqual([]);
		expect(readdirSync(root)).toEqual(["AGENTS.md"]);
	});

	test("the model sees the history, the folder's rules and the picture", async () => {
		let seen = "";
		const { engine } = await coding([
			(context) => {
				seen = JSON.stringify(context.messages);
				return fauxAssistantMessage("ok");
			},
		]);
		const toolCalls = [
			{ callId: "x", name: "bash", args: { command: "ls" }, status: "completed" as const, result: "a.ts" },
		];
		const data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
		const messages = [
			{ role: "user" as const, text: "list them" },
			{ role: "assistant" as const, text: "Here.", toolCalls },
			{ role: "user" as const, text: "and /this one?" },
		];
		const attachments = [{ name: "dot.png", contentType: "image/png", data }];
		await ranWell(engine, ask("", { messages, attachments }));
		expect(seen).toMatch(/House rule: tabs\./);
		expect(seen).toMatch(/list them.*Here\..*a\.ts.*and \/this one\?.*"type":"image"/);
	});
});

describe("compaction", () => {
	const SMALL = { models: [{ id: "small", contextWindow: 6_000, maxTokens: 500 }] };
	const compaction = { enabled: true, reserveTokens: 1_000, keepRecentTokens: 500 };
	const summaries = ["A summary of what happened.", "A summary of the turn so far."].map((text) =>
		fauxAssistantMessage(text),
	);
	const old = "old words ".repeat(400);
	const messages = [
		{ role: "user" as const, text: old },
		{ role: "assistant" as const, text: old },
		{ role: "user" as const, text: "go on" },
	];

	test("between two rounds is shown, and the run continues", async () => {
		const script = [call("bash", { command: "seq 1 3000" }), ...summaries, fauxAssistantMessage("Done.")];
		const { engine } = await coding(script, { compaction, provider: SMALL });
		const { events } = await ranWell(engine, ask("", { messages }));
		const phases = events.filter((event) => event.type === "compaction").map(({ phase }) => phase);
		expect(phases).toEqual(["start", "end"]);
		expect(shape(events)).toMatch(/bash:completed compaction message text usage$/);
		expect(textOf(events)).toBe("Working.Done.");
		expectPaired(events);
	});

	test("behind the answer is still part of the run: it ends when the agent has settled, not at agent_end", async () => {
		const script = [fauxAssistantMessage("answer ".repeat(2_500)), ...summaries];
		const { engine } = await coding(script, { compaction, provider: SMALL });
		const { events } = await ranWell(engine, ask("", { messages }));
		expect(shape(events)).toBe("message text compaction usage");
	});

	test("I12: a stop while a summary is written that never comes ends it promptly", async () => {
		const script = [call("bash", { command: "seq 1 3000" }), () => deaf()];
		const { engine } = await coding(script, { compaction, provider: SMALL });
		const ran = await ranWell(engine, ask("", { messages }), { abortOn: (event) => event.type === "compaction" });
		expect(ran.events.filter((event) => event.type === "compaction").map(({ phase }) => phase)).toEqual([
			"start",
			"end",
		]);
		expectPaired(ran.events);
	});
});

describe("abort", () => {
	test("a command that runs is killed", async () => {
		const { engine } = await coding([call("bash", { command: "echo $$; sleep 600" })]);
		const { events } = await run(engine, ask("go"), {
			abortOn: (event) => event.type === "tool" && event.status === "progress",
		});
		expect(shape(events)).toBe("message text bash:started bash:progress bash:failed usage");
		const pid = Number(toolsOf(events)[1]?.summary);
		await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow("ESRCH"), { timeout: 15_000 });
	});
});

test("talks to an OpenAI-compatible endpoint", async () => {
	const mock = await LLMock.create({ port: 0, host: "127.0.0.1" });
	try {
		mock.onMessage("hello", { content: "Hello from the wire." });
		const config = { provider: "vllm", model: "qwen", baseUrl: `${mock.url}/v1`, filesRoot: root };
		const engine = await createPiCodingAgentEngine(config, {}, NO_RETRY);
		const { events } = await ranWell(engine, ask("hello"));
		expect(textOf(events)).toBe("Hello from the wire.");
		mock.onMessage("busy", { error: { message: "Rate limit" }, status: 429 });
		expect((await run(engine, ask("busy"))).error).toMatchObject({ message: expect.stringMatching(/limits the rate/) });
	} finally {
		await stopMock(mock);
	}
});
