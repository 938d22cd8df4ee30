/** A real Chromium in front of a real daemon. */

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { describe, expect } from "vitest";
import { removeFolder } from "../runtime/folder.ts";

const MAIN = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const ENGINE = fileURLToPath(new URL("./scripted-engine.ts", import.meta.url));
const BUILT_PAGE = fileURLToPath(new URL("../../dist/web/index.html", import.meta.url));
const TOKEN = "test-token-0123456789abcdef";
/** Only what hangs takes this long. */
const ACTION_MS = 60_000;
const ARGS = [
	"--headless",
	"--no-sandbox",
	"--disable-gpu",
	"--disable-quic",
	"--no-first-run",
	"--disable-background-networking",
	"--disable-component-update",
	"--disable-sync",
];

function findChromium(): string | undefined {
	for (const folder of (process.env.PATH ?? "").split(delimiter)) {
		for (const name of ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]) {
			const file = join(folder, name);
			try {
				accessSync(file, constants.X_OK);
				return file;
			} catch {
				// Not here: the next name.
			}
		}
	}
	return undefined;
}

const executablePath = findChromium();
const required = process.env.CI === "true";
if (!executablePath && !required) console.log("SKIPPED: no chromium on PATH, so the page is not tested in a browser");

/** Skipped where there is no browser, except in CI: there it fails. */
export const describeInBrowser = describe.skipIf(!executablePath && !required);

export interface Daemon {
	readonly url: string;
	readonly signInUrl: string;
	readonly data: string;
	/** As a crash would: no handler runs. */
	kill(): Promise<void>;
	/** A new process on the same port and the same data. */
	restart(): Promise<void>;
	/** A new process on the same port, with none of the data. */
	forget(): Promise<void>;
	/** Sends a message without a browser and waits for the end of its run. */
	send(session: string, text: string): Promise<void>;
	/** Ends it and removes its data. */
	close(): Promise<void>;
}

interface Ready {
	url: string;
	sign_in_url: string;
}

/** `more` is added to its configuration. */
export async function startDaemon(more: object = {}): Promise<Daemon> {
	if (!existsSync(BUILT_PAGE)) throw new Error("the page is not built: run `npm run build:web` first");
	const data = mkdtempSync(join(tmpdir(), "nexus-browser-"));
	const config = join(data, "nexus.yaml");
	// JSON is YAML, too.
	writeFileSync(config, JSON.stringify({ engine: { module: ENGINE }, ...more }));
	let { child, ready } = await launch(data, config, 0);
	const { url } = ready;
	const kill = async () => {
		if (child.exitCode !== null || child.signalCode !== null) return;
		child.kill("SIGKILL");
		await once(child, "exit");
	};
	return {
		url,
		get signInUrl() {
			return ready.sign_in_url;
		},
		data,
		kill,
		async restart() {
			await kill();
			({ child, ready } = await launch(data, config, Number(new URL(url).port)));
		},
		async forget() {
			await kill();
			for (const name of readdirSync(data)) if (name.startsWith("nexus.db")) rmSync(join(data, name));
			({ child, ready } = await launch(data, config, Number(new URL(url).port)));
		},
		send: (session, text) => sendMessage(url, session, text),
		async close() {
			await kill();
			removeFolder(data);
		},
	};
}

async function launch(data: string, config: string, port: number): Promise<{ child: ChildProcess; ready: Ready }> {
	const args = ["up", "--port", String(port), "--data", data, "--token", TOKEN, "--config", config];
	const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
	let errors = "";
	child.stderr.setEncoding("utf8").on("data", (text: string) => {
		errors += text;
	});
	for await (const line of createInterface({ input: child.stdout })) {
		const ready = JSON.parse(line) as Partial<Ready>;
		if (ready.url && ready.sign_in_url) return { child, ready: { url: ready.url, sign_in_url: ready.sign_in_url } };
	}
	throw new Error(`the daemon did not start:\n${errors}`);
}

async function sendMessage(url: string, session: string, text: string): Promise<void> {
	const authorization = `Bearer ${TOKEN}`;
	const response = await fetch(`${url}/v1/sessions/${session}/messages`, {
		method: "POST",
		headers: { authorization, "content-type": "application/json" },
		body: JSON.stringify({ text }),
	});
	const { run_id: run } = (await response.json()) as { run_id: string };
	// A run's stream closes after its final end.
	await fetch(`${url}/v1/runs/${run}/stream`, { headers: { authorization } }).then((stream) => stream.text());
}

export async function openBrowser(): Promise<Browser> {
	if (!executablePath) throw new Error("no chromium on PATH: install it, the page must be tested in CI");
	return chromium.launch({ executablePath, args: ARGS });
}

export const token = TOKEN;

/** What `nexus url` prints. */
export async function freshSignInUrl(daemon: Daemon): Promise<string> {
	const headers = { authorization: `Bearer ${TOKEN}` };
	const response = await fetch(`${daemon.url}/v1/sign-in-codes`, { method: "POST", headers });
	const { url } = (await response.json()) as { url: string };
	return url;
}

export interface Watched {
	readonly page: Page;
	/** What the page should never do: requests elsewhere, scripts that failed, a policy that was broken. */
	readonly faults: string[];
}

/** A tab that reports everything suspicious. */
export async function openTab(context: BrowserContext, origin: string): Promise<Watched> {
	const page = await context.newPage();
	page.setDefaultTimeout(ACTION_MS);
	const faults: string[] = [];
	page.on("request", (request) => {
		const url = new URL(request.url());
		if (url.origin !== origin && url.protocol !== "data:" && url.protocol !== "blob:")
			faults.push(`request ${url.href}`);
	});
	page.on("pageerror", (error) => faults.push(`error ${error.message}`));
	page.on("console", (message) => {
		const text = message.text();
		if (message.type() === "error" && !text.startsWith("Failed to load resource")) faults.push(`console ${text}`);
	});
	page.on("dialog", (dialog) => {
		faults.push(`dialog ${dialog.message()}`);
		void dialog.dismiss();
	});
	return { page, faults };
}

/** A signed-in tab on a session. */
export async function openSession(context: BrowserContext, daemon: Daemon, session: string): Promise<Watched> {
	const watched = await openAt(context, daemon, `#/s/${session}`);
	await watched.page.waitForSelector(".composer");
	await waitForLink(watched.page, "live");
	return watched;
}

/** A signed-in tab on an address of the page. */
export async function openAt(context: BrowserContext, daemon: Daemon, hash: string): Promise<Watched> {
	const watched = await openTab(context, daemon.url);
	const signedIn = await context.request.post(`${daemon.url}/v1/sign-in`, {
		data: { token: TOKEN },
		headers: { origin: daemon.url },
	});
	expect(signedIn.ok()).toBe(true);
	await watched.page.goto(`${daemon.url}/${hash}`);
	return watched;
}

export async function say(page: Page, text: string): Promise<void> {
	await page.fill("textarea", text);
	await page.press("textarea", "Enter");
}

export const waitForLink = (page: Page, state: string) =>
	page.waitForSelector(`.link-state[data-state="${state}"]`, { timeout: 30_000 });

/** Waits until the last turn is over. */
export const waitForEnd = (page: Page) =>
	page.waitForSelector(".turn:last-of-type .facts .inspect", { timeout: 60_000 });

/** The words of the last answer, as a person sees them. */
export async function lastWords(page: Page): Promise<number[]> {
	const text = await page.locator(".turn .answer .prose").last().innerText();
	return text.split(/\s+/).filter(Boolean).map(Number);
}

/** Waits until the last answer shows at least so many words, and gives them. */
export async function wordsFrom(page: Page, atLeast: number): Promise<number[]> {
	await expect
		.poll(async () => (await lastWords(page)).length, { timeout: 30_000, interval: 50 })
		.toBeGreaterThanOrEqual(atLeast);
	return lastWords(page);
}

/** 1, 2, 3 … n: what a counting answer shows when nothing is lost and nothing comes twice. */
export const upTo = (n: number): number[] => Array.from({ length: n }, (_, index) => index + 1);
