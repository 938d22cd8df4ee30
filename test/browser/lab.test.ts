/** The channel lab in a real browser: one run on every platform, through the real adapters, and what they do when a platform misbehaves. */

import type { Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { describeInBrowser, openAt, upTo } from "./kit.ts";
import { createWorld } from "./world.ts";

const PLATFORMS = ["telegram", "discord", "slack", "whatsapp", "imessage", "signal", "sms", "gmail", "nostr"];
const WITH_BUTTONS = ["telegram", "slack", "discord"];
/** Nine adapters start on a machine that has other things to do. */
const START_MS = 240_000;
const DELIVER_MS = 120_000;

const card = (page: Page, channel: string) => page.locator(`.lab-card[data-channel="${channel}"]`);

const numbersIn = (text: string): number[] => text.split(/\s+/).filter(Boolean).map(Number);

const saidOn = async (page: Page, channel: string): Promise<number[]> =>
	numbersIn((await card(page, channel).locator(".lab-bubble").allInnerTexts()).join(" "));

async function openReady(page: Page): Promise<void> {
	await expect
		.poll(() => page.locator('.lab-choice label[data-ready="true"]').count(), { timeout: START_MS, interval: 250 })
		.toBe(PLATFORMS.length);
}

/** Resolves once the cards show the new run. */
async function runIn(page: Page, text: string): Promise<void> {
	const shown = () => page.getAttribute(".lab", "data-run");
	const before = await shown();
	await page.fill(".lab-form textarea", text);
	await page.click(".lab-form .run");
	await expect.poll(shown, { timeout: DELIVER_MS }).not.toBe(before);
}

const states = (page: Page) =>
	page.$$eval(".lab-card[data-state]", (cards) => cards.map((each) => (each as HTMLElement).dataset.state));

interface Keeper {
	notices?: string[];
}

/** From here on the page itself keeps every notice: each is gone after a few seconds. */
const keepNotices = (page: Page) =>
	page.$eval(".lab", (box) => {
		const seen: string[] = [];
		(globalThis as Keeper).notices = seen;
		const note = () => {
			for (const shown of box.querySelectorAll<HTMLElement>(".lab-toast")) seen.push(shown.innerText);
		};
		new MutationObserver(note).observe(box, { childList: true, characterData: true, subtree: true });
	});

const notices = (page: Page): Promise<string[]> => page.evaluate(() => (globalThis as Keeper).notices ?? []);

interface LabState {
	now: number;
	channels: { channel: string; rate_limited_until?: number }[];
}

/** Has the page believe that a platform may not be called, until the route is taken away. */
const holdRateLimit = (page: Page, of: string) =>
	page.route("**/v1/lab/state", async (route) => {
		const response = await route.fetch();
		const state = (await response.json()) as LabState;
		for (const row of state.channels) if (row.channel === of) row.rate_limited_until = state.now + 9000;
		await route.fulfill({ response, json: state });
	});

describeInBrowser("the channel lab", () => {
	const world = createWorld();

	it(
		"I7: shows one answer whole on every platform, and says how it got there",
		async () => {
			const { page, faults } = await openAt(world.context, world.daemon, "#/lab");
			await openReady(page);
			await runIn(page, "count 150 0 20 lab");
			await page.waitForSelector('.lab-message[data-open="true"]', { timeout: DELIVER_MS });
			world.daemon.release("lab");
			await expect
				.poll(() => states(page), { timeout: DELIVER_MS, interval: 250 })
				.toEqual(PLATFORMS.map(() => "complete"));
			expect(numbersIn(await card(page, "web").locator(".answer").innerText())).toEqual(upTo(150));
			for (const channel of PLATFORMS) {
				expect(await saidOn(page, channel), channel).toEqual(upTo(150));
				expect(await card(page, channel).locator(".lab-asked").innerText()).toContain("count 150 0 20 lab");
				await card(page, channel).locator("summary").click();
				expect(await card(page, channel).locator(".lab-calls tbody tr").count()).toBeGreaterThan(0);
			}
			const cursor = await card(page, "sms").locator(".lab-cursor .lab-facts").innerText();
			expect(cursor).toMatch(/492\/492 confirmed\s+[3-9] messages/);
			expect(await card(page, "telegram").locator(".lab-stamp").first().innerText()).toMatch(/ \d+ edits?$/);
			// A reload shows the same run; the way to its frames leads to it.
			await page.reload();
			await expect.poll(() => saidOn(page, "gmail")).toEqual(upTo(150));
			await page.click(".lab-web-foot .inspect");
			await page.waitForSelector('.inspector .verified[data-ok="true"]');
			await expect.poll(() => page.locator(".trace .deliveries tbody tr").count()).toBe(PLATFORMS.length);
			expect(await page.locator(".stages li").allInnerTexts()).toHaveLength(8);
			expect(faults).toEqual([]);
		},
		START_MS + DELIVER_MS + 30_000,
	);

	it(
		"I7: a refused call is a pause that everybody sees, and nothing is lost; who is left out gets nothing",
		async () => {
			const { page, faults } = await openAt(world.context, world.daemon, "#/lab");
			await openReady(page);
			for (const channel of PLATFORMS.filter((each) => each !== "discord" && each !== "telegram"))
				await page.locator(".lab-choice label", { hasText: new RegExp(`^\\W*\\w*\\W*${channel}$`, "i") }).click();
			await expect.poll(() => page.locator(".lab-choice :checked").count()).toBe(2);
			await keepNotices(page);
			await holdRateLimit(page, "discord");
			await card(page, "discord").locator('[data-fault="429"]').click();
			await expect.poll(() => notices(page)).toContainEqual(expect.stringContaining("Discord refuses the next call"));
			await expect
				.poll(() => card(page, "discord").locator(".countdown").allInnerTexts())
				.toEqual([expect.stringMatching(/Rate limited, resumes in\s+\d\.\d s/)]);
			await page.unrouteAll({ behavior: "wait" });
			await runIn(page, "count 60 5");
			await expect.poll(() => states(page), { timeout: DELIVER_MS, interval: 250 }).toEqual(["complete", "complete"]);
			expect(await saidOn(page, "discord")).toEqual(upTo(60));
			expect(await saidOn(page, "telegram")).toEqual(upTo(60));
			await card(page, "discord").locator("summary").click();
			expect(await card(page, "discord").locator('tr[data-bad="true"]').innerText()).toContain("429");
			expect(faults).toEqual([]);
		},
		START_MS + DELIVER_MS + 30_000,
	);

	it(
		"A14: a question has its buttons on the cards of platforms that have them; pressing one shows the decision",
		async () => {
			const { page, faults } = await openAt(world.context, world.daemon, "#/lab");
			await openReady(page);
			await page.fill(".lab-form textarea", "Deploy to production?");
			await page.click(".lab-ask");
			const buttons = (channel: string) => card(page, channel).locator(".lab-buttons button");
			for (const channel of WITH_BUTTONS)
				await expect
					.poll(() => buttons(channel).allInnerTexts(), { message: channel, timeout: DELIVER_MS })
					.toEqual(["Approve", "Deny"]);
			const last = async (channel: string) => (await card(page, channel).locator(".lab-bubble").allInnerTexts()).at(-1);
			await expect.poll(() => last("sms"), { timeout: DELIVER_MS }).toContain("Deploy to production?");
			const blank = page.locator(".lab-card:not([data-channel=web]) .lab-blank");
			await expect.poll(() => blank.count(), { timeout: DELIVER_MS }).toBe(0);
			await buttons("slack").first().click();
			for (const channel of [...WITH_BUTTONS, "sms"])
				await expect
					.poll(() => last(channel), { message: channel, timeout: DELIVER_MS })
					.toMatch(/^Approved by .+ on slack\.$/);
			await expect.poll(() => page.locator(".lab-buttons").count(), { timeout: DELIVER_MS }).toBe(0);
			expect(faults).toEqual([]);
		},
		START_MS + DELIVER_MS + 30_000,
	);

	it(
		"makes only known elements of a hostile answer, on every platform",
		async () => {
			const { page, faults } = await openAt(world.context, world.daemon, "#/lab");
			await openReady(page);
			await runIn(page, "hostile");
			await expect
				.poll(() => states(page), { timeout: DELIVER_MS, interval: 250 })
				.toEqual(PLATFORMS.map(() => expect.not.stringMatching("active")));
			const found = await page.$$eval(".lab-bubble *", (nodes) =>
				nodes.map((node) => ({
					name: node.tagName.toUpperCase(),
					attributes: node.getAttributeNames(),
					href: node.getAttribute("href"),
				})),
			);
			expect(found.length).toBeGreaterThan(50);
			for (const { name, attributes, href } of found) {
				expect(["SCRIPT", "STYLE", "IFRAME", "OBJECT", "EMBED", "FORM", "BASE", "LINK"]).not.toContain(name);
				for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^formaction$/);
				if (href !== null) expect(href).toMatch(/^(https?|mailto):/);
			}
			expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
			expect(faults).toEqual([]);
		},
		START_MS + DELIVER_MS + 30_000,
	);

	it(
		"says clearly that the lab is not available, and tries again when asked",
		async () => {
			const { page } = await openAt(world.context, world.daemon, "#/s/elsewhere");
			await page.waitForSelector(".composer");
			const failure = { error: { code: "unavailable", message: "the channel lab did not start: no room" } };
			await page.route("**/v1/lab/state", (route) => route.fulfill({ status: 503, json: failure }));
			await page.click('.pages a:has-text("Lab")');
			await expect.poll(() => page.textContent(".lab .outcome")).toContain("did not start: no room");
			expect(await page.isDisabled(".lab-form .run")).toBe(true);
			await page.unroute("**/v1/lab/state");
			await page.click('.lab .outcome button:has-text("Try again")');
			await expect.poll(() => page.locator(".lab-card").count(), { timeout: START_MS }).toBe(PLATFORMS.length + 1);
			expect(await page.locator(".lab .outcome").count()).toBe(0);
		},
		START_MS + 10_000,
	);

	it("is reached from everywhere, by pointer and by keyboard, and fits a phone", async () => {
		const context = await world.browser.newContext({ viewport: { width: 320, height: 640 }, hasTouch: true });
		onTestFinished(() => context.close());
		const { page } = await openAt(context, world.daemon, "#/adapters");
		const tooWide = () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
		await page.click(".open-drawer");
		await page.locator('.pages a:has-text("Lab")').focus();
		await page.keyboard.press("Enter");
		await page.waitForSelector(".lab-card");
		await expect.poll(() => page.isVisible(".sessions")).toBe(false);
		expect(await page.title()).toBe("Channel lab · Nexus");
		expect(await tooWide()).toBe(0);
		await page.click(".open-drawer");
		expect(await page.getAttribute('.pages a:has-text("Lab")', "aria-current")).toBe("page");
		await page.click('.pages a:has-text("Chat")');
		await page.waitForSelector(".composer");
		expect(page.url()).toContain("#/s/");
		await page.goBack();
		await page.waitForSelector(".lab-card");
	});
});
