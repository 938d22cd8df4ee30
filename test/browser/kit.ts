/** A real Chromium in front of a real daemon: what tests do and see there. */

import type { BrowserContext, Page } from "playwright-core";
import { describe, expect } from "vitest";
import { hasChromium } from "./chromium.ts";
import { type Daemon, TOKEN } from "./daemon.ts";

/** Only what hangs takes this long. */
const ACTION_MS = 60_000;

const required = process.env.CI === "true";
if (!hasChromium && !required) console.log("SKIPPED: no chromium on PATH, so the page is not tested in a browser");

/** Skipped where there is no browser, except in CI: there it fails. */
export const describeInBrowser = describe.skipIf(!hasChromium && !required);

/** The address that `nexus url` prints. */
export async function freshSignInUrl(daemon: Daemon): Promise<string> {
	const headers = { authorization: `Bearer ${TOKEN}` };
	const response = await fetch(`${daemon.url}/v1/sign-in-codes`, { method: "POST", headers });
	const { url } = (await response.json()) as { url: string };
	return url;
}

export interface Watched {
	readonly page: Page;
	/** Faults of the page: requests to other servers, failed scripts, violations of the policy. */
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

/** Waits until the last turn is over and all of it is there: verified, or with the words for an answer that was cut. */
export const waitForEnd = (page: Page) =>
	page.waitForSelector(".turn:last-of-type .facts .verified, .turn:last-of-type .outcome", { timeout: 60_000 });

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
