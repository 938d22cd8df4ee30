/** A real daemon with a real shell, files, an MCP server and Telegram: buttons decide, and no text reaches the token or the data directory. */

import { existsSync, linkSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTelegramFake, type TelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { everything } from "../engine/mcp/rig.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { AUTHORIZATION, call, type DaemonProcess, daemonIn, TOKEN } from "./daemon.ts";

const GROUP = "-100500";
const OWNER = "1001";
const ANN = "1002";
const STRANGER = "1003";
const SECRET = "sk-the-model-key-of-the-daemon";

const folder = mkdtempSync(join(tmpdir(), "nexus-hostile-"));
const work = join(folder, "work");
const data = join(folder, "data");
let telegram: TelegramFake;
let daemon: DaemonProcess;

interface RunView {
	run_id: string;
	status: string;
	messages: { role: string; text: string }[];
	tool_calls: { name: string; status: string; summary?: string; result?: string }[];
}

const config = () => `
engine: reason-act
reasonAct: { provider: scripted, systemPrompt: "The key is ${SECRET}." }
log: { level: warn }
tools: { root: work, bash: { enabled: true } }
approvals: { to: { channel: telegram, account: main, to: "${OWNER}" }, policy: { time: non-owner } }
mcp: { servers: { all: { command: ${JSON.stringify(everything.command)}, args: ${JSON.stringify(everything.args)} } } }
channels:
  telegram:
    acl: { owner: ["${OWNER}"], allow: ["${ANN}"], groups: always }
    accounts: { main: { settings: { token: "${telegram.token}", api_url: "${telegram.url}" } } }
`;

/** A message that brings its own script. */
const script = (...steps: object[]): string =>
	`/script\n${JSON.stringify(steps.map((step) => ({ tokensPerSecond: 0, ...step })))}`;

const viewOf = (run: string) => call<RunView>(`${daemon.url}/v1/runs/${run}`);

/** Runs a message as the owner, by the API, in its own session to its end. */
async function settled(session: string, text: string): Promise<RunView> {
	const { run_id: run } = await call<{ run_id: string }>(`${daemon.url}/v1/sessions/${session}/messages`, { text });
	await until(`${run} ends`, async () => !["running", "stopping"].includes((await viewOf(run)).status));
	return viewOf(run);
}

const pending = async () =>
	(
		await call<{ approvals: { id: string; run_id: string; tool: string }[] }>(
			`${daemon.url}/v1/approvals?state=pending`,
		)
	).approvals;

beforeAll(async () => {
	telegram = await createTelegramFake({ privateRate: [100, 10], groupRate: [100, 10], accountRate: [100, 10] });
	mkdirSync(work);
	daemon = await daemonIn(folder, config());
	await daemon.start();
	symlinkSync(data, join(work, "data-link"));
	symlinkSync(join(folder, "nexus.yaml"), join(work, "config-link"));
	linkSync(join(folder, "nexus.yaml"), join(work, "config-hard"));
	symlinkSync("/proc/self", join(work, "proc"));
	writeFileSync(join(work, "note.txt"), "a note");
});

afterAll(async () => {
	await daemon?.stop();
	await telegram?.close();
	removeFolder(folder);
});

describe("A9, A14: buttons on Telegram decide what a guest's run waits for", () => {
	it("asks the owner in the owner's chat; a stranger's press is refused, the owner's runs the tool, the answer arrives", async () => {
		const text = script({ text: "I look.", calls: [{ name: "time" }] }, { text: "That is the time." });
		await telegram.inject({ text, from: ANN, to: GROUP });
		await until("the owner is asked", () => telegram.buttons(OWNER).some((labels) => labels.length > 0));
		await until("Ann knows", () =>
			telegram.visible(GROUP).some((said) => said.includes("Waiting for the operator to approve")),
		);
		const nth = telegram.buttons(OWNER).findIndex((labels) => labels.length > 0);
		expect(telegram.visible(OWNER)[nth]).toContain(`(${ANN}) on telegram`);
		const [row] = await pending();
		expect(row).toMatchObject({ tool: "time" });
		for (const other of [STRANGER, ANN]) {
			expect(await telegram.press(OWNER, nth, "Approve", other)).toBe(`You may not decide ${row!.id}.`);
			expect(await pending()).toHaveLength(1);
		}
		expect((await viewOf(row!.run_id)).status).toBe("running");
		await telegram.press(OWNER, nth, "Approve", OWNER);
		await until("the answer", () => telegram.visible(GROUP).some((said) => said.includes("That is the time.")));
		expect((await viewOf(row!.run_id)).tool_calls).toMatchObject([{ name: "time", status: "completed" }]);
		await until("the buttons are gone", () => telegram.buttons(OWNER)[nth]!.length === 0);
		expect(telegram.visible(OWNER)[nth]).toContain("approved by");
	});

	it("a guest's bash and MCP are neither offered nor asked about", async () => {
		const asked = telegram.visible(OWNER).length;
		const calls = [
			{ name: "bash", args: { command: "touch owned" } },
			{ name: "mcp__all__echo", args: { message: "x" } },
		];
		await telegram.inject({ text: script({ calls }, { text: "I could not." }), from: ANN, to: GROUP });
		await until("the answer", () => telegram.visible(GROUP).some((said) => said.includes("I could not.")));
		expect(existsSync(join(work, "owned"))).toBe(false);
		expect(telegram.visible(OWNER)).toHaveLength(asked);
		expect(await pending()).toEqual([]);
	});
});

describe("A15: files", () => {
	const PATHS = [
		"../data/nexus.db",
		"data-link/nexus.db",
		"data-link/token",
		join(data, "nexus.db"),
		"../nexus.yaml",
		"config-link",
		"config-hard",
		join(folder, "nexus.yaml"),
		"/proc/self/environ",
		"/proc/self/cmdline",
		"proc/environ",
		"proc/cwd/nexus.yaml",
		"./note.txt/../../nexus.yaml",
	];

	it.each(["read", "write", "edit"])(
		"%s reaches neither the data directory, nor the configuration, nor the process",
		async (name) => {
			const before = readFileSync(join(folder, "nexus.yaml"), "utf8");
			const args = (path: string) =>
				({ read: { path }, write: { path, content: "x" }, edit: { path, old_text: "engine", new_text: "x" } })[name]!;
			const calls = PATHS.map((path) => ({ name, args: args(path) }));
			const { tool_calls: done, status } = await settled(`files-${name}`, script({ calls }, { text: "Tried." }));
			expect(status).toBe("completed");
			expect(done.map((one) => [one.name, one.status])).toEqual(PATHS.map(() => [name, "failed"]));
			const said = JSON.stringify(done);
			for (const secret of [telegram.token, TOKEN, "SQLite format", "PATH="]) expect(said).not.toContain(secret);
			expect(readFileSync(join(folder, "nexus.yaml"), "utf8")).toBe(before);
		},
	);

	it("the folder itself is there to be read", async () => {
		const { tool_calls: done } = await settled(
			"files-own",
			script({ calls: [{ name: "read", args: { path: "note.txt" } }] }, {}),
		);
		expect(done).toMatchObject([{ name: "read", status: "completed" }]);
	});

	it("an approved command has neither keys nor tokens in its environment", async () => {
		const { run_id: run } = await call<{ run_id: string }>(`${daemon.url}/v1/sessions/shell/messages`, {
			text: script({ calls: [{ name: "bash", args: { command: "env > env.txt" } }] }, { text: "Done." }),
		});
		await until("it is asked", async () => (await pending()).length === 1);
		expect(existsSync(join(work, "env.txt"))).toBe(false);
		await call(`${daemon.url}/v1/runs/${run}/approvals/${(await pending())[0]!.id}`, { decision: "approve" });
		await until("it ends", async () => (await viewOf(run)).status === "completed");
		const env = readFileSync(join(work, "env.txt"), "utf8");
		expect(env).toContain("PATH=");
		expect(env).not.toMatch(/NEXUS|_KEY=|TOKEN=/);
		expect(env).not.toContain(TOKEN);
	});
});

describe("R2-30: an MCP server that is killed during a call", () => {
	it("the daemon's run continues, the model reads of it, and the next call has another server", async () => {
		const slow = "mcp__all__trigger-long-running-operation";
		// Its second call would wait for an approval: what the first one answered is text from outside.
		const settings = `${daemon.url}/v1/sessions/mcp/settings`;
		const headers = { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" };
		expect((await fetch(settings, { method: "PUT", headers, body: '{"trust_history":true}' })).status).toBe(200);
		const { run_id: run } = await call<{ run_id: string }>(`${daemon.url}/v1/sessions/mcp/messages`, {
			text: script(
				{ calls: [{ name: slow, args: { duration: 300, steps: 3000 } }] },
				{ calls: [{ name: "mcp__all__echo", args: { message: "still here" } }] },
				{ text: "It was lost, and then it was there." },
			),
		});
		const serverPid = async () => (await call<{ servers: { pid?: number }[] }>(`${daemon.url}/v1/mcp`)).servers[0]?.pid;
		await until("the call is under way", async () => (await viewOf(run)).tool_calls[0]?.status === "started");
		process.kill((await serverPid())!, "SIGKILL");
		await until("the run ends", async () => (await viewOf(run)).status !== "running");
		const { status, tool_calls: done, messages } = await viewOf(run);
		expect(status).toBe("completed");
		expect(done).toMatchObject([
			{ name: slow, status: "failed", summary: expect.stringMatching(/lost during the call|SIGKILL/) },
			{ name: "mcp__all__echo", status: "completed" },
		]);
		expect(messages.at(-1)?.text).toContain("then it was there");
	});
});

it("what the API shows without the token is nothing", async () => {
	const ways = ["/v1/approvals", "/v1/mcp", "/v1/memory", "/v1/sessions"];
	const codes = await Promise.all(ways.map(async (way) => (await fetch(`${daemon.url}${way}`)).status));
	expect(codes).toEqual(ways.map(() => 401));
	expect((await fetch(`${daemon.url}/v1/approvals`, { headers: AUTHORIZATION })).status).toBe(200);
});
