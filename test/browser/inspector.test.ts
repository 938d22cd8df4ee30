/** The run inspector in a real browser: numbers, frames, and the replay that shows what was shown. */

import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { describeInBrowser, openSession, say, upTo, waitForEnd, wordsFrom } from "./kit.ts";
import { createWorld } from "./world.ts";

const numbersIn = (text: string): number[] => text.split(/\s+/).filter(Boolean).map(Number);

const replayed = async (page: Page): Promise<number[]> => {
	const prose = page.locator(".replayed .prose");
	return numbersIn((await prose.count()) === 0 ? "" : await prose.first().innerText());
};

interface Keeper {
	shown?: string[];
}

/** From here on the page itself notes every state of the replay: asking from outside might miss all of them. */
const keepWhatIsShown = (page: Page) =>
	page.$eval(".replayed", (box) => {
		const shown: string[] = [];
		(globalThis as Keeper).shown = shown;
		const note = () => shown.push(box.querySelector(".prose")?.textContent ?? "");
		new MutationObserver(note).observe(box, { childList: true, characterData: true, subtree: true });
	});

const whatWasShown = async (page: Page): Promise<number[][]> =>
	(await page.evaluate(() => (globalThis as Keeper).shown ?? [])).map(numbersIn);

/** The number of words that the run had written up to a time, by its frames. */
async function wordsBy(page: Page, atMs: number): Promise<number> {
	const { hash } = new URL(page.url());
	// By the page itself: a browser asks again when the connection that it kept is closed at that moment, Playwright's own client does not.
	const read = async (path: string) => (await fetch(path)).text();
	const frames = (await page.evaluate(read, `/v1/runs/${hash.split("/").at(-1)}/frames`))
		.trim()
		.split("\n")
		.map((line) => JSON.parse(line) as { type: string; ts: number });
	const from = frames[0]?.ts ?? 0;
	return frames.filter(({ type, ts }) => type === "stream.chunk" && ts - from <= atMs).length;
}

const position = async (page: Page): Promise<number> => Number(await page.inputValue('.player input[type="range"]'));

/** A position is shown to the millisecond; the player's own time is finer. */
async function expectWordsAt(page: Page, atMs: number): Promise<void> {
	const words = await replayed(page);
	expect(words).toEqual(upTo(words.length));
	expect(words.length).toBeGreaterThanOrEqual(await wordsBy(page, atMs - 1));
	expect(words.length).toBeLessThanOrEqual(await wordsBy(page, atMs));
}

const HOUR_MS = 3_600_000;

/** From here on the page's clock moves only when the test moves it. */
async function holdTime(page: Page): Promise<void> {
	const time = Date.now();
	await page.clock.install({ time });
	// It plays until it is paused.
	await page.clock.pauseAt(time + HOUR_MS);
}

/** Gives the time it went to. */
const seek = (page: Page, share: number): Promise<number> =>
	page.$eval(
		'.player input[type="range"]',
		(slider, part) => {
			const input = slider as HTMLInputElement;
			input.value = String(Math.round(Number(input.max) * part));
			input.dispatchEvent(new Event("input", { bubbles: true }));
			return Number(input.value);
		},
		share,
	);

describeInBrowser("the run inspector", () => {
	const world = createWorld();
	/** The inspector of a run that has ended. */
	const inspected = async (session: string, text: string) => {
		const tab = await openSession(world.context, world.daemon, session);
		await say(tab.page, text);
		await waitForEnd(tab.page);
		await tab.page.click(".inspect");
		await tab.page.waitForSelector('.inspector .verified[data-ok="true"]');
		return tab;
	};

	it("shows the numbers, and replays with the original timing, faster, and from any point", async () => {
		const { page, faults } = await inspected("replay", "count 60 30");
		expect(await page.textContent(".stats")).toContain("1 / 60");
		await expect.poll(() => replayed(page)).toEqual(upTo(60));

		await page.click('[aria-label="Back to the beginning"]');
		// A word may be as old as the run, to the millisecond.
		const atFirst = await wordsBy(page, 0);
		await expect.poll(() => replayed(page)).toEqual(upTo(atFirst));
		await page.selectOption(".player select", "2");
		await keepWhatIsShown(page);
		await holdTime(page);
		const whole = Number(await page.getAttribute('.player input[type="range"]', "max"));
		await page.click('[aria-label="Play the replay"]');
		await page.clock.runFor(whole / 4);
		// Twice as fast, but for the last few frames.
		const played = await position(page);
		expect(played).toBeGreaterThan(whole * 0.4);
		expect(played).toBeLessThanOrEqual(whole / 2 + 1);
		await expectWordsAt(page, played);
		await page.clock.runFor(whole / 2);
		await expect.poll(async () => (await replayed(page)).length).toBe(60);
		await page.clock.resume();
		const between = (await whatWasShown(page)).filter((words) => words.length > atFirst && words.length < 60);
		expect(between.length).toBeGreaterThan(0);
		for (const words of between) expect(words).toEqual(upTo(words.length));

		await page.waitForSelector('[aria-label="Play the replay"]');
		const half = await seek(page, 0.5);
		const written = upTo(await wordsBy(page, half));
		await expect.poll(() => replayed(page)).toEqual(written);
		await page.focus('.player input[type="range"]');
		await page.keyboard.press("ArrowRight");
		await page.keyboard.press("ArrowRight");
		// Two steps of a fiftieth each.
		await expect.poll(() => position(page)).toBeGreaterThan(half + whole * 0.039);
		await expectWordsAt(page, await position(page));
		expect(faults).toEqual([]);
	});

	it("shows the replayed answer exactly as the live one was shown", async () => {
		const { page } = await openSession(world.context, world.daemon, "same");
		await say(page, "everything");
		await waitForEnd(page);
		const live = await page.locator(".turn .answer").last().innerHTML();
		await page.click(".inspect");
		await page.waitForSelector('.inspector .verified[data-ok="true"]');
		await seek(page, 0);
		await seek(page, 1);
		await expect.poll(() => page.locator(".replayed .answer").innerHTML()).toBe(live);
	});

	it("keeps the newest words of a replay in sight, unless the reader looks elsewhere", async () => {
		const { page } = await inspected("long-replay", "count 1500 2 1400");
		const place = () => page.$eval(".replayed", (box) => box.scrollTop);
		// A whole answer is read from its beginning.
		expect(await place()).toBe(0);
		await seek(page, 0.9);
		await expect.poll(place).toBeGreaterThan(100);
		await page.$eval(".replayed", (box) => box.scrollTo(0, 20));
		await page.click('[aria-label="Play the replay"]');
		await page.waitForSelector('[aria-label="Play the replay"]');
		expect(await place()).toBe(20);
	});

	it("lists frames, filters them, and keeps only the visible ones in the document", async () => {
		const { page } = await inspected("frames", "count 3000 0");
		expect(await page.textContent(".frames-tools .note")).toBe("3,002 frames");
		expect(await page.locator(".frame-row").count()).toBeLessThan(60);
		await page.fill('[aria-label="Filter frames"]', "stream.end");
		await expect.poll(() => page.textContent(".frames-tools .note")).toBe("1 of 3,002 frames");
		await page.click(".frame-row");
		await expect.poll(() => page.textContent(".frame-json")).toContain('"final": true');
	});

	it("has one stop of the Tab key for all frames, and arrow keys from there", async () => {
		const { page } = await inspected("frame-keys", "count 3000 0");
		const offset = () => page.evaluate(() => document.activeElement?.querySelector(".frame-offset")?.textContent);
		await page.focus('[aria-label="Filter frames"]');
		await page.keyboard.press("Tab");
		await expect.poll(offset).toBe("1");
		await page.keyboard.press("ArrowDown");
		await expect.poll(offset).toBe("2");
		await page.keyboard.press("End");
		await expect.poll(offset).toBe("3002");
		await page.keyboard.press("ArrowUp");
		await expect.poll(offset).toBe("3001");
		await page.keyboard.press("Enter");
		await expect.poll(() => page.textContent(".frame-json")).toContain('"offset": 3001');
		await page.keyboard.press("Tab");
		await expect.poll(() => page.evaluate(() => document.activeElement?.className)).toContain("frame-json");
		await page.keyboard.press("Shift+Tab");
		await expect.poll(offset).toBe("3001");
	});

	it("follows a run that is still being written", async () => {
		const { page } = await openSession(world.context, world.daemon, "live");
		await say(page, "count 400 0 20 live");
		await wordsFrom(page, 20);
		const run = await page.getAttribute(".turn", "data-run");
		await page.goto(`${world.daemon.url}/#/run/${run}`);
		await page.waitForSelector('.status[data-tone="live"]');
		await expect.poll(() => replayed(page)).toEqual(upTo(20));
		world.daemon.release("live");
		await page.waitForSelector('.inspector .verified[data-ok="true"]');
		await expect.poll(() => replayed(page)).toEqual(upTo(400));
		await page.click(".back");
		await page.waitForSelector(".composer");
	});

	it("draws every kind of stream in its own colour, also where motion is reduced", async () => {
		const { page } = await openSession(world.context, world.daemon, "coloured");
		await say(page, "everything");
		await waitForEnd(page);
		await page.click(".inspect");
		await page.waitForSelector(".frame-row");
		const colours = () =>
			page.$$eval(".timeline-lane .bar", (bars) => bars.slice(0, 5).map((bar) => getComputedStyle(bar).fill));
		await expect.poll(async () => new Set(await colours()).size).toBe(5);
	});

	it("says when there is no such run", async () => {
		const { page } = await openSession(world.context, world.daemon, "nothing");
		await page.goto(`${world.daemon.url}/#/run/run_00000000000000000000000000`);
		await expect.poll(() => page.textContent(".inspector .outcome")).toContain("There is no such run");
		expect(await page.textContent(".inspector .status")).toBe("Not there");
		expect(await page.locator(".player, .timeline, .frames").count()).toBe(0);
	});
});
