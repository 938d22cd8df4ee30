/** A chat platform from end to end: the command, a daemon, the real adapter processes, and a fake Bot API. */

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Daemon, loadConfig, startDaemon, storeAccount } from "../../packages/daemon/src/runtime/runtime.ts";
import type { TelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import type { DeliveryJson, RunJson, SessionJson } from "../../packages/protocol/src/gen/api.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { freshFolder } from "../runtime/folder.ts";
import { telegramForTest } from "../serving.ts";
import { until } from "../until.ts";
import { daemonHere, jsonLines, nexus, run } from "./in-process.ts";
import { type Child, up } from "./nexus.ts";

const NEXUS = fileURLToPath(new URL("../../packages/daemon/src/cli/main.ts", import.meta.url));

interface Place {
	folder: string;
	data: string;
	fake: TelegramFake;
	env: NodeJS.ProcessEnv;
	cli(...args: string[]): ReturnType<typeof run>;
	up(): Promise<Daemon>;
	/** A daemon that can be killed. */
	upProcess(): Promise<Child>;
}

/** A fake to have an account on, and a folder; `yaml` is the rest of the configuration. */
async function place(yaml = ""): Promise<Place> {
	const folder = freshFolder();
	const data = join(folder, "data");
	const fake = await telegramForTest();
	writeFileSync(join(folder, "nexus.yaml"), `engine: demo\n${yaml}`);
	const env = { NEXUS_DATA: data, BOT_TOKEN: fake.token };
	const cli = (...args: string[]) => run(args, { cwd: folder, env });
	return {
		folder,
		data,
		fake,
		env,
		cli,
		async up() {
			const daemon = await daemonHere(data, { cwd: folder, env });
			onTestFinished(() => daemon.close());
			return daemon;
		},
		upProcess: () => up(data, [], { cwd: folder, env }),
	};
}

/** The account as `nexus adapter add` stores it, for tests of what comes after. */
const added = ({ data, fake }: Place, settings: Record<string, string> = {}): void => {
	storeAccount(data, {
		channel: "telegram",
		account: "main",
		settings: { token: fake.token, api_url: fake.url, ...settings },
	});
};

const add = ({ cli, fake }: Place) =>
	cli("adapter", "add", "telegram", "--secret-env", "token=BOT_TOKEN", "--set", `api_url=${fake.url}`);

const deliveriesOf = async ({ cli }: Place): Promise<DeliveryJson[]> =>
	jsonLines<DeliveryJson>((await cli("deliveries", "--json")).out);

/** The text of the run, from the API. */
const answerOf = async ({ cli }: Place, runId: string): Promise<string> => {
	const { out } = await cli("runs", runId, "--json");
	const { messages } = JSON.parse(out) as { messages: { role: string; text: string }[] };
	return messages.flatMap(({ role, text }) => (role === "assistant" ? [text] : [])).join("");
};

/** The fake shows plain text; the markdown's own signs and the breaks between messages are not part of it. */
const words = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, "");

describe("a running daemon", () => {
	it("takes up an account that is added, hears it and answers; and lets it go when it is removed", async () => {
		const at = await place("channels: { telegram: { acl: { unknown: allow } } }\n");
		await at.up();
		expect((await at.cli("adapters", "--json")).out).toBe("");
		const result = await add(at);
		expect([result.code, result.err]).toEqual([0, expect.stringContaining("the daemon uses it now")]);
		await at.fake.inject({ text: "/demo tokens=5 rate=0", from: "42" });
		await until("answered", async () => (await deliveriesOf(at))[0]?.state === "complete");
		const [{ processes }] = jsonLines<{ processes: { monitor: { pid: number } } }>(
			(await at.cli("adapters", "--json")).out,
		) as [{ processes: { monitor: { pid: number } } }];
		const removed = await at.cli("adapter", "remove", "telegram");
		expect([removed.code, removed.err]).toEqual([0, expect.stringContaining("the daemon has let it go")]);
		expect((await at.cli("adapters", "--json")).out).toBe("");
		await until("its process has ended", () => !existsSync(`/proc/${processes.monitor.pid}/stat`));
		const secrets = spawnSync("grep", ["-rl", "--include=*.json", at.fake.token, at.data], { encoding: "utf8" }).stdout;
		expect(secrets).toBe("");
		expect((await at.cli("deliver", "x", "--channel", "telegram", "--to", "1")).code).toBe(4);
	});
});

/** The command with its own terminal, and the screen of that. */
function inTerminal(at: Awaited<ReturnType<typeof place>>, ...args: string[]) {
	const quoted = [process.execPath, "--conditions=nexus-source", NEXUS, ...args].map((word) => `'${word}'`).join(" ");
	const child = spawn("script", ["-qefc", quoted, "/dev/null"], {
		cwd: at.folder,
		env: { ...process.env, NEXUS_DATA: at.data },
		stdio: ["pipe", "pipe", "pipe"],
	});
	onTestFinished(() => void child.kill("SIGKILL"));
	let screen = "";
	child.stdout.setEncoding("utf8").on("data", (text: string) => (screen += text));
	return { child, screen: () => screen, exit: once(child, "close") as Promise<[number | null]> };
}

describe("nexus adapter add", () => {
	const script = spawnSync("script", ["--version"]).status === 0;
	it("asks a person for what is missing, and does not show what is secret", {
		timeout: 120_000,
		skip: !script,
	}, async () => {
		const at = await place();
		const { child, screen, exit } = inTerminal(at, "adapter", "add", "telegram", "--set", `api_url=${at.fake.url}`);
		/** Waits for the prompt that comes after all that was answered. */
		let seen = 0;
		const answer = async (prompt: string, words: string) => {
			await until(`it asks: ${prompt}`, () => screen().indexOf(prompt, seen) >= 0);
			seen = screen().indexOf(prompt, seen) + prompt.length;
			child.stdin.write(`${words}\r`);
		};
		await answer("Bot token", "");
		await answer("Bot token", at.fake.token);
		await answer("Public webhook address", "nowhere");
		await answer("Public webhook address", "");
		const [code] = await exit;
		expect([code, screen()]).toEqual([0, expect.stringContaining("works: ")]);
		expect(screen()).not.toContain(at.fake.token);
		// A value that is not secret is shown behind its prompt.
		expect(stripVTControlCharacters(screen())).toMatch(/Public webhook address[^\n]*: nowhere/);
		const stored = JSON.parse(readFileSync(join(at.data, "accounts", "telegram.main.json"), "utf8"));
		expect(stored.settings).toMatchObject({ token: at.fake.token, api_url: at.fake.url });
	});

	it.each([
		["Ctrl-C", "\x03"],
		["Ctrl-D", "\x04"],
	])("%s ends the questions and stores nothing", async (_, key) => {
		const at = await place();
		const adding = nexus(["adapter", "add", "telegram"], { cwd: at.folder, env: at.env, tty: true });
		await adding.until(({ err }) => err.includes("Bot token"));
		adding.type(key);
		const { code, err } = await adding.end();
		expect(code).toBe(130);
		expect(err).toMatch(/\nnexus: stopped: nothing was stored\n/);
		expect(existsSync(join(at.data, "accounts"))).toBe(false);
	});

	it("tests the connection, stores the account for its owner only, and never shows the secret", async () => {
		const at = await place();
		const { code, out, err } = await add(at);
		expect([code, err]).toEqual([0, expect.stringContaining("works: ")]);
		const file = join(at.data, "accounts", "telegram.main.json");
		expect(statSync(file).mode & 0o777).toBe(0o600);
		expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({
			channel: "telegram",
			account: "main",
			settings: { token: at.fake.token, api_url: at.fake.url },
		});
		expect(out + err).not.toContain(at.fake.token);
		expect((await at.cli("adapter", "remove", "telegram")).code).toBe(0);
		expect((await at.cli("adapter", "remove", "telegram")).code).toBe(4);
	});

	it("stores nothing that does not work, and says what is missing or misspelt", async () => {
		const at = await place();
		for (const [args, expected, message] of [
			[["telegram", "--set", "token=1:wrong", "--set", `api_url=${at.fake.url}`], 7, "nothing was stored"],
			[["telegram"], 2, "missing: token"],
			[["telegram", "--set", "tokn=1"], 2, "allowed names: token"],
			[["telegram", "--set", "token"], 2, "--set takes name=value"],
			[["telegram", "--account", "my bot"], 2, '"my bot" is not a name'],
			[["telegraph"], 4, "known: "],
		] as const) {
			const { code, err } = await at.cli("adapter", "add", ...args);
			expect([code, err]).toEqual([expected, expect.stringContaining(message)]);
		}
	});
});

describe("a Telegram account", () => {
	it("I7: a message becomes a run whose answer is visible there once, with its trace, delivery and inbox entry", async () => {
		const at = await place("channels: { telegram: { acl: { unknown: allow } } }\n");
		added(at);
		await at.up();
		await at.fake.inject({ text: "/demo tokens=60 rate=0", from: "42" });
		await until("delivered", async () => (await deliveriesOf(at))[0]?.state === "complete");
		const [delivery] = await deliveriesOf(at);
		const answer = await answerOf(at, delivery!.run_id);
		expect(words(at.fake.visible("42").join(""))).toBe(words(answer));
		expect(delivery!.position).toBe(answer.length);
		const [event] = jsonLines<Record<string, unknown>>((await at.cli("inbox", "--json")).out);
		expect(event).toMatchObject({
			channel: "telegram",
			sender: "42",
			disposition: "started",
			run_id: delivery!.run_id,
		});
		const runs = jsonLines<RunJson>((await at.cli("runs", "--json")).out);
		expect(runs[0]!.messages[0]).toMatchObject({ role: "user", channel: "telegram", account: "main", sender: "42" });
		const sessions = jsonLines<SessionJson>((await at.cli("sessions", "--json")).out);
		expect(sessions).toMatchObject([{ channel: "telegram", sender: "42", title: "/demo tokens=60 rate=0" }]);
		await at.cli("send", "/demo tokens=5 rate=0", "--session", "mine");
		const [own] = jsonLines<RunJson>((await at.cli("runs", "--session", "mine", "--json")).out);
		expect(own!.messages[0]).not.toHaveProperty("channel");
		await until("traced", async () => (await at.cli("runs", delivery!.run_id)).out.includes(delivery!.delivery_id));
		expect((await at.cli("runs", delivery!.run_id)).out).toMatch(/^from +42 on telegram\/main$/m);
		expect((await at.cli("adapters")).out).toMatch(/^telegram\/main\t.*monitor running.*\t1 complete/m);
	});

	it("approves a stranger with the code that they received", async () => {
		const at = await place();
		added(at);
		await at.up();
		await at.fake.inject({ text: "hello", from: "42" });
		await until("told", () => at.fake.visible("42").length === 1);
		const code = /nexus pair (\w+)/.exec(at.fake.visible("42")[0]!)![1]!;
		expect((await at.cli("pair")).out).toMatch(new RegExp(`^${code}\ttelegram/main/42\t`));
		const approved = await at.cli("pair", code);
		expect([approved.code, approved.out]).toEqual([0, expect.stringContaining(" on telegram/main")]);
		await at.fake.inject({ text: "/demo tokens=5 rate=0", from: "42" });
		await until("answered", () => at.fake.visible("42").length === 3);
		expect((await at.cli("pair", "--remove", "telegram/main/42")).code).toBe(0);
		expect((await at.cli("pair")).out).toBe("");
	});

	it("gets a text, and a run that another client started", async () => {
		const at = await place();
		added(at);
		await at.up();
		const sent = await at.cli("deliver", "Backup done", "--channel", "telegram", "--to", "77");
		expect([sent.code, sent.out]).toEqual([0, expect.stringMatching(/^dlv_\S+ complete \(1 message\)\n$/)]);
		expect(at.fake.visible("77")).toEqual(["Backup done"]);
		await at.cli("send", "/demo tokens=5 rate=0");
		const [asked] = jsonLines<{ run_id: string }>((await at.cli("runs", "--json")).out);
		expect((await at.cli("deliver", "--run", asked!.run_id, "--channel", "telegram", "--to", "78")).code).toBe(0);
		const chosen = ["--channel", "telegram", "--to", "79", "--tools", "--no-reasoning", "--json"];
		const shown = await at.cli("deliver", "--run", asked!.run_id, ...chosen);
		expect([shown.code, JSON.parse(shown.out)]).toEqual([0, expect.objectContaining({ state: "complete" })]);
		expect(words(at.fake.visible("78").join(""))).toBe(words(await answerOf(at, asked!.run_id)));
		expect((await at.cli("deliver", "x", "--channel", "telegram", "--account", "no", "--to", "1")).code).toBe(4);
	});

	it("I7: a daemon that is killed while it delivers finishes after the restart, visible once and whole, and the waiting command reports it", async () => {
		const at = await place("channels: { telegram: { acl: { unknown: allow } } }\n");
		added(at);
		const first = await at.upProcess();
		// Far more than is said until the kill, however late the adapter comes to its first edit.
		await at.fake.inject({ text: "/demo tokens=5000 rate=50", from: "42" });
		await until("under way", () => (at.fake.raw("42")[0]?.edits ?? 0) >= 1);
		const [asked] = jsonLines<{ run_id: string }>((await at.cli("runs", "--json")).out);
		const deliver = ["deliver", "--run", asked!.run_id, "--channel", "telegram", "--to", "77"];
		const sending = nexus(deliver, { cwd: at.folder, env: at.env });
		await until("sent on", () => (at.fake.raw("77")[0]?.edits ?? 0) >= 1);
		await first.end("SIGKILL");
		await sending.until(({ err }) => err.includes("reconnecting"));
		await at.up();
		expect(await sending.end()).toMatchObject({ code: 0, out: expect.stringMatching(/^dlv_\S+ complete /) });
		await until("finished", async () => (await deliveriesOf(at)).every(({ state }) => state === "complete"));
		expect(await deliveriesOf(at)).toHaveLength(2);
		const answer = await answerOf(at, asked!.run_id);
		for (const chat of ["42", "77"])
			expect(words(at.fake.visible(chat).join(""))).toBe(words(`${answer} Sorry, I encountered an error.`));
	});
});

describe("a webhook", () => {
	it("reaches the adapter with its raw body: a good secret starts a run, a bad one is refused, an unknown account is not there", async () => {
		const at = await place("channels: { telegram: { acl: { unknown: allow } } }\n");
		added(at, { webhook_url: "https://nexus.example/hook", webhook_secret: "s3cret" });
		const { url } = await at.up();
		const post = (secret: string, account = "main") =>
			fetch(`${url}/v1/webhooks/telegram/${account}`, {
				method: "POST",
				headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": secret },
				body: JSON.stringify({
					update_id: 1,
					message: {
						message_id: 5,
						date: Math.floor(Date.now() / 1000),
						text: "/demo tokens=5 rate=0",
						chat: { id: 42, type: "private" },
						from: { id: 42, is_bot: false, first_name: "Ann" },
					},
				}),
			});
		await until("listened to", async () => (await post("wrong")).status !== 503);
		expect((await post("wrong")).status).toBeGreaterThanOrEqual(400);
		expect((await post("s3cret", "other")).status).toBe(404);
		expect((await post("s3cret")).status).toBe(200);
		expect((await post("s3cret")).status).toBe(200);
		await until("answered", async () => (await deliveriesOf(at))[0]?.state === "complete");
		expect(await deliveriesOf(at)).toHaveLength(1);
		expect(at.fake.visible("42")).toHaveLength(1);
	});
});

describe("an adapter of one's own without an account", () => {
	it("is named by `up`, `doctor` and `adapters`, each with the next step", async () => {
		const adapter = fileURLToPath(new URL("../../examples/adapter.py", import.meta.url));
		const at = await place(`channels: { filechat: { command: [python3, ${JSON.stringify(adapter)}] } }\n`);
		const logged: string[] = [];
		const logger = { ...silentLog, warn: (_: unknown, text: string) => void logged.push(text) };
		const config = await loadConfig({ data: at.data, port: "0" }, { cwd: at.folder, env: at.env });
		const daemon = await startDaemon({ ...config, logger });
		onTestFinished(() => daemon.close());
		const step = "`nexus adapter add filechat`";
		expect(logged).toEqual([`the adapter of filechat has no account, so it is not started; add one with ${step}`]);
		const { err, out } = await at.cli("adapters");
		expect(err).toContain(`filechat has an adapter and no account, so it is not started: ${step} adds one`);
		expect(err + out).not.toContain("telegram");
		const doctor = await at.cli("doctor");
		expect(doctor.out).toMatch(/^warn +account +filechat has an adapter and no account, so it is not started\n/m);
		expect(doctor.out).toContain(`→ add one with ${step}`);
	});
});
