/** The adapters page in a real browser, before a real daemon with a real adapter on a fake Telegram; and what becomes of messages in the chat. */

import { afterAll, expect, it, onTestFinished } from "vitest";
import { createTelegramFake, type TelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { startDaemon } from "./daemon.ts";
import { describeInBrowser, openAt, openSession, say, wordsFrom } from "./kit.ts";
import { createOwnWorld } from "./world.ts";

/** Adapters start on a machine that has other things to do. */
const WAIT = { timeout: 40_000 };

describeInBrowser("the adapters page", () => {
	let telegram: TelegramFake;
	afterAll(() => telegram?.close());
	const world = createOwnWorld(async () => {
		telegram = await createTelegramFake();
		const settings = { token: telegram.token, api_url: telegram.url };
		return startDaemon({
			channels: {
				telegram: { acl: { owner: ["42"], unknown: "pair" }, accounts: { main: { settings } } },
				web: { queue: { mode: "interrupt" } },
			},
			sessions: { capped: { queue: { mode: "followup", messagesMax: 1, atCap: "drop_oldest" } } },
		});
	});

	it("I10: shows accounts with their processes, deliveries with their cursors, and what became of each message", async () => {
		const { page, faults } = await openAt(world.context, world.daemon, "#/adapters");
		const account = page.locator('[data-account="telegram/main"]');
		await expect
			.poll(() => account.locator(".process").first().innerText(), WAIT)
			.toMatch(/Listening\s+Running\s+pid \d+/);
		await account.locator("button").focus();
		await page.keyboard.press("Enter");
		await expect.poll(() => account.locator(".health").innerText(), WAIT).toContain("@nexus_bot");
		expect(await page.evaluate(() => document.activeElement?.getAttribute("aria-label"))).toBe("Check Telegram main");
		await telegram.inject({ text: "count 30 10", from: "42" });
		const delivery = page.locator(".deliveries tbody tr");
		await expect.poll(() => delivery.getAttribute("data-state"), WAIT).toBe("complete");
		await delivery.locator("summary").click();
		expect(await delivery.innerText()).toMatch(
			/Telegram\s+main · 42[\s\S]*Complete[\s\S]*Live\s+81\s+1 message\s+\d+\s+0–81 · sent/,
		);
		await expect.poll(() => account.locator(".account-facts").innerText(), WAIT).toBe("1 complete");
		await expect
			.poll(() => page.locator(".inbound tbody tr").innerText(), WAIT)
			.toMatch(/Ann\s+main\s+count 30 10\s+Answered by a run/);
		await page.selectOption('select[aria-label="State"]', "failed");
		await expect.poll(() => page.locator(".deliveries").count(), WAIT).toBe(0);
		await page.selectOption('select[aria-label="State"]', "");
		await expect.poll(() => page.locator(".deliveries tbody tr").count(), WAIT).toBe(1);
		await page.click(".deliveries .inspect");
		await page.waitForSelector(".trace .stages");
		expect(await page.locator(".trace .note").innerText()).toBe("Telegram · main · 42");
		expect(await page.locator(".stage-name").allInnerTexts()).toEqual(
			"receive acl hooks queue prepare execute deliver complete".split(" "),
		);
		expect(faults).toEqual([]);
	}, 150_000);

	it("approves a stranger by the pairing code", async () => {
		const { page, faults } = await openAt(world.context, world.daemon, "#/adapters");
		await telegram.inject({ text: "let me in", from: "77" });
		await page.waitForSelector(".pairings", WAIT);
		const code = await page.innerText(".pairing-code");
		await expect.poll(() => telegram.visible("77").join(), WAIT).toContain(code);
		await expect
			.poll(() => page.locator('.inbound tr[data-disposition="rejected"]').innerText(), WAIT)
			.toContain("Not accepted: unknown sender");
		await page.click(".pairings .primary");
		await expect.poll(() => page.locator(".pairings").count(), WAIT).toBe(0);
		expect(await page.innerText(".outcome")).toContain("Ann was approved.");
		await telegram.inject({ text: "count 3 0", from: "77" });
		await expect.poll(() => telegram.visible("77").at(-1), WAIT).toBe("1 2 3");
		await expect
			.poll(() => page.locator('.inbound tr[data-disposition="started"]').first().innerText(), WAIT)
			.toContain("count 3 0");
		expect(faults).toEqual([]);
	}, 150_000);

	it("I10: the chat says that an answer was stopped for a newer message, and that a message had to make room", async () => {
		const { page } = await openSession(world.context, world.daemon, "interrupted");
		await say(page, "count 5000 0 5 interrupted");
		await wordsFrom(page, 5);
		await say(page, "count 5 0");
		await expect.poll(() => page.locator(".delivery").allInnerTexts(), WAIT).toEqual(["Stopped for a newer message"]);
		await page.reload();
		await expect.poll(() => page.locator(".delivery").allInnerTexts(), WAIT).toEqual(["Stopped for a newer message"]);

		const capped = await openSession(world.context, world.daemon, "capped");
		await say(capped.page, "count 5000 0 5 capped");
		await wordsFrom(capped.page, 5);
		await say(capped.page, "the first that waits");
		await expect
			.poll(() => capped.page.locator(".delivery").allInnerTexts(), WAIT)
			.toEqual(["Waiting for its turn\nCancel"]);
		await say(capped.page, "the second that waits");
		await expect
			.poll(() => capped.page.locator(".delivery").allInnerTexts(), WAIT)
			.toEqual([
				expect.stringContaining("Dropped at the queue's cap: 1 message waited already"),
				"Waiting for its turn\nCancel",
			]);
		// It stands in the thread like any other message.
		const dropped = capped.page.locator('[aria-label="Message without an answer"]');
		expect(await dropped.evaluate((turn) => getComputedStyle(turn).borderTopWidth)).toBe("0px");
		await capped.page.click(".stop");
		await expect
			.poll(() => capped.page.locator(".bubble").allInnerTexts(), WAIT)
			.toEqual(["count 5000 0 5 capped", "the first that waits", "the second that waits"]);
	}, 150_000);

	it("fits a phone, and is come back to", async () => {
		const context = await world.browser.newContext({ viewport: { width: 320, height: 640 }, hasTouch: true });
		onTestFinished(() => context.close());
		const { page } = await openAt(context, world.daemon, "#/adapters");
		await page.waitForSelector(".accounts");
		const tooWide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		expect(await tooWide()).toBe(0);
		await page.click(".open-drawer");
		expect(await page.getAttribute('.pages a:has-text("Adapters")', "aria-current")).toBe("page");
		await page.click('.pages a:has-text("Chat")');
		await page.waitForSelector(".composer");
		expect(page.url()).toContain("#/s/");
		await page.goBack();
		await page.waitForSelector(".accounts");
	}, 150_000);
});
