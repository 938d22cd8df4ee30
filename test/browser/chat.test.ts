/** Chat in a real browser: send, wait, stop, and everything an answer can carry. */

import { expect, it } from "vitest";
import { TOKEN } from "./daemon.ts";
import {
	describeInBrowser,
	freshSignInUrl,
	lastWords,
	openAt,
	openSession,
	openTab,
	say,
	upTo,
	waitForEnd,
	wordsFrom,
} from "./kit.ts";
import { createWorld } from "./world.ts";

describeInBrowser("the chat", () => {
	const world = createWorld();

	it("signs in when a new printed address is opened in a tab that already shows the page", async () => {
		const { page } = await openTab(world.context, world.daemon.url);
		await page.goto(world.daemon.url);
		await page.waitForSelector(".sign-in");
		await page.goto(await freshSignInUrl(world.daemon));
		await page.waitForSelector(".composer");
		expect(page.url()).not.toContain("code=");
	});

	it("asks for the token, says when it is wrong, and then opens the address", async () => {
		const { page } = await openTab(world.context, world.daemon.url);
		await page.goto(`${world.daemon.url}/#/s/pointed`);
		await page.fill("#token", "wrong");
		await page.click(".sign-in .primary");
		await expect.poll(() => page.textContent(".sign-in-error")).toContain("not the right one");
		await page.fill("#token", TOKEN);
		await page.click(".sign-in .primary");
		await page.waitForSelector(".composer");
		expect(page.url()).toContain("#/s/pointed");
	});

	it("takes part again when another tab has signed in", async () => {
		const { page } = await openSession(world.context, world.daemon, "again");
		await world.context.clearCookies();
		const look = () => page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
		await look();
		await page.waitForSelector(".sign-in");
		await openSession(world.context, world.daemon, "elsewhere");
		await look();
		await page.waitForSelector(".composer");
		await say(page, "count 5 0");
		await waitForEnd(page);
		expect(await lastWords(page)).toEqual(upTo(5));
	});

	it("shows the message before the daemon has it, streams the answer, and verifies it", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "send");
		let release = () => {};
		const held = new Promise<void>((resolve) => {
			release = resolve;
		});
		await page.route("**/messages", async (route) => {
			await held;
			await route.continue();
		});
		await say(page, "count 300 0 20 send");
		await page.waitForSelector(".bubble");
		expect(await page.textContent(".bubble")).toBe("count 300 0 20 send");
		release();
		// It streams: what is written is shown while the rest is not written yet.
		expect(await wordsFrom(page, 20)).toEqual(upTo(20));
		world.daemon.release("send");
		await waitForEnd(page);
		expect(await lastWords(page)).toEqual(upTo(300));
		expect(await page.getAttribute(".verified", "data-ok")).toBe("true");
		await expect.poll(() => page.textContent(".sessions [aria-current] .row-title")).toBe("send");
		expect(faults).toEqual([]);
	});

	it("offers Retry after a failure, which answers the same message again and shows it once", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "retried");
		await say(page, "fail");
		await page.click(".turn:last-of-type .retry");
		await page.locator(".turn:nth-of-type(2) .outcome", { hasText: "Failed" }).waitFor();
		expect(await page.locator(".bubble").allTextContents()).toEqual(["fail"]);
		expect(await page.textContent(".turn:nth-of-type(2) .continues")).toBe("Tried again");
		// Only what is newest can be gone on with.
		await page.waitForSelector(".turn:nth-of-type(2) .retry");
		expect(await page.locator(".retry, .continue").count()).toBe(1);
		await page.reload();
		await page.waitForSelector(".turn:nth-of-type(2) .retry");
		expect(await page.locator(".bubble").allTextContents()).toEqual(["fail"]);
		expect(faults).toEqual([]);
	});

	it("offers the demo agent's directives only where the demo agent answers", async () => {
		const { page } = await openAt(world.context, world.daemon, "#/s/not-demo");
		await page.waitForSelector(".empty button");
		expect(await page.innerText(".empty")).not.toContain("/demo");
		await page.goto(`${world.daemon.url}/#/lab`);
		await page.waitForSelector(".lab-presets button");
		expect(await page.inputValue(".lab-form textarea")).not.toContain("/demo");
	});

	it("shows an answer once that began while the session was still being loaded", async () => {
		const { page } = await openAt(world.context, world.daemon, "#/s/early");
		await page.waitForSelector(".empty");
		let release = () => {};
		const held = new Promise<void>((resolve) => {
			release = resolve;
		});
		await page.route(
			"**/turns?*",
			async (route) => {
				await held;
				await route.continue();
			},
			{ times: 1 },
		);
		await page.reload();
		await say(page, "count 300 0 20 early");
		await wordsFrom(page, 20);
		// Only now the first answer about the session comes, with the same run.
		const loaded = page.waitForResponse("**/turns?*");
		release();
		await loaded;
		world.daemon.release("early");
		await waitForEnd(page);
		expect(await lastWords(page)).toEqual(upTo(300));
		expect(await page.getAttribute(".verified", "data-ok")).toBe("true");
	});

	it("shows a long answer that comes in one piece whole, and again after a reload", async () => {
		const { page } = await openSession(world.context, world.daemon, "flood");
		await say(page, "count 6000 0");
		const whole = () => expect.poll(async () => (await lastWords(page)).length, { timeout: 30_000 }).toBe(6000);
		await whole();
		await page.reload();
		await waitForEnd(page);
		await whole();
		expect(await lastWords(page)).toEqual(upTo(6000));
		expect(await page.getAttribute(".verified", "data-ok")).toBe("true");
	});

	it("Shift+Enter makes a line; Enter sends", async () => {
		const { page } = await openSession(world.context, world.daemon, "lines");
		await page.fill("textarea", "one");
		await page.press("textarea", "Shift+Enter");
		await page.keyboard.type("two");
		expect(await page.inputValue("textarea")).toBe("one\ntwo");
		await page.press("textarea", "Enter");
		await waitForEnd(page);
		expect(await page.textContent(".bubble")).toBe("one\ntwo");
	});

	it.each(["button", "Escape"])("stops with the %s, and what was written stays", async (how) => {
		const { page } = await openSession(world.context, world.daemon, `stop-${how}`);
		await say(page, `count 5000 0 5 stop-${how}`);
		await wordsFrom(page, 5);
		if (how === "button") await page.click(".stop");
		else await page.press("textarea", "Escape");
		await expect.poll(() => page.textContent(".outcome")).toContain("Stopped");
		const words = await lastWords(page);
		expect(words).toEqual(upTo(words.length));
		expect(await page.locator(".stop").count()).toBe(0);
		await page.reload();
		await page.waitForSelector(".outcome");
		expect(await lastWords(page)).toEqual(words);
	});

	it("I10: a message for a busy session waits visibly, then gets its answer", async () => {
		const { page } = await openSession(world.context, world.daemon, "queue");
		await say(page, "count 5000 0 5 queue");
		await wordsFrom(page, 5);
		await say(page, "count 5 0");
		await expect.poll(() => page.textContent(".delivery")).toContain("Waiting");
		await page.click(".stop");
		await page.waitForSelector('.turn:nth-of-type(2) .verified[data-ok="true"]');
		expect(await lastWords(page)).toEqual(upTo(5));
		// The messages that it answers are read separately, and may arrive after its words.
		await expect.poll(() => page.locator(".delivery").count()).toBe(0);
		expect(await page.locator(".bubble").allTextContents()).toEqual(["count 5000 0 5 queue", "count 5 0"]);
	});

	it("A27: a message that waits can be taken back, stays where it was said, and is never answered", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "cancel");
		await say(page, "count 300 0 20 cancel");
		await wordsFrom(page, 20);
		await say(page, "count 5 0");
		await page.getByRole("button", { name: "Cancel" }).click();
		await expect.poll(() => page.locator(".delivery").allTextContents()).toEqual(["Cancelled"]);
		world.daemon.release("cancel");
		await page.waitForSelector('.verified[data-ok="true"]');
		await say(page, "count 7 0");
		await expect.poll(() => page.locator('.verified[data-ok="true"]').count()).toBe(2);
		const bubbles = ["count 300 0 20 cancel", "count 5 0", "count 7 0"];
		for (const isAnew of [false, true]) {
			if (isAnew) await page.reload();
			await expect.poll(() => page.locator(".bubble").allTextContents()).toEqual(bubbles);
			await expect.poll(() => page.locator(".delivery").allTextContents()).toEqual(["Cancelled"]);
			expect(await page.locator("[data-run]").count()).toBe(2);
			expect(await lastWords(page)).toEqual(upTo(7));
		}
		expect(faults).toEqual([]);
	});

	it("puts reasoning, tools, cards and pictures where they belong, live and after a reload", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "parts");
		await say(page, "everything parts");
		await page.waitForSelector('.tool[data-state="running"]');
		world.daemon.release("parts");
		await waitForEnd(page);
		const order = () =>
			page.$$eval(".answer .prose > *", (nodes) =>
				nodes.map((node) => node.className.split(" ").at(-1) || node.textContent),
			);
		const expected = [
			"reasoning",
			"Before the tool.",
			"tool",
			"Before the card.",
			"card",
			"Before the picture.",
			"part-image",
			"The end.",
			"code",
		];
		expect(await order()).toEqual(expected);
		// It slept for 400 ms at least, and timers may be a little early.
		const [, figure, unit] = /^([\d.]+) (ms|s)$/.exec((await page.textContent(".tool .elapsed")) ?? "") ?? [];
		expect(Number(figure) * (unit === "s" ? 1000 : 1)).toBeGreaterThan(380);
		await page.reload();
		await page.waitForSelector(".card");
		expect(await order()).toEqual(expected);
		expect(await page.getAttribute(".reasoning", "open")).toBeNull();
		// A card's picture from elsewhere is not loaded.
		expect(faults).toEqual([]);
	});

	it("words a failure for people", async () => {
		const { page } = await openSession(world.context, world.daemon, "fail");
		await say(page, "fail");
		await expect
			.poll(() => page.textContent('.outcome[data-tone="bad"]'))
			.toContain("asked the scripted engine to fail");
	});

	it("shows what another tab does in the same session", async () => {
		const first = await openSession(world.context, world.daemon, "tabs");
		const second = await openSession(world.context, world.daemon, "tabs");
		await say(first.page, "count 30 0 10 tabs");
		await expect.poll(() => second.page.locator(".bubble").allTextContents()).toEqual(["count 30 0 10 tabs"]);
		world.daemon.release("tabs");
		await Promise.all([waitForEnd(first.page), waitForEnd(second.page)]);
		expect(await lastWords(second.page)).toEqual(upTo(30));
	});
});
