/** Small screens, keyboards, screen readers and colours. */

import type { BrowserContextOptions, Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { describeInBrowser, openSession, openTab, say, waitForEnd, wordsFrom } from "./kit.ts";
import { createWorld } from "./world.ts";

const phone = { viewport: { width: 320, height: 640 }, hasTouch: true, isMobile: true };

/** Elements that stick out to the right although nothing around them scrolls. */
const sticksOut = (page: Page) =>
	page.evaluate(() => {
		const scrolls = (node: Element | null): boolean => {
			for (let at = node; at; at = at.parentElement) {
				if (["auto", "scroll", "hidden"].includes(getComputedStyle(at).overflowX) && at !== document.body) {
					if (at.getBoundingClientRect().right <= innerWidth + 1) return true;
				}
			}
			return false;
		};
		const wide = [...document.querySelectorAll("main *")].filter(
			(node) => node.getBoundingClientRect().right > innerWidth + 1 && !scrolls(node.parentElement),
		);
		return { page: document.documentElement.scrollWidth - innerWidth, wide: wide.map((node) => node.className) };
	});

describeInBrowser("the layout", () => {
	const world = createWorld();
	const newContext = async (options: BrowserContextOptions) => {
		const context = await world.browser.newContext(options);
		onTestFinished(() => context.close());
		return context;
	};

	it("has no horizontal scroll at 320 px: sign-in, empty session, answers, inspector", async () => {
		const context = await newContext(phone);
		const outside = await openTab(context, world.daemon.url);
		await outside.page.goto(world.daemon.url);
		await outside.page.waitForSelector(".sign-in");
		expect((await sticksOut(outside.page)).page).toBe(0);
		const { page } = await openSession(context, world.daemon, "phone");
		expect(await sticksOut(page)).toEqual({ page: 0, wide: [] });
		await say(page, "hostile");
		await waitForEnd(page);
		await say(page, "everything");
		await expect.poll(() => page.locator(".verified").count()).toBe(2);
		expect(await sticksOut(page)).toEqual({ page: 0, wide: [] });
		await page.locator(".inspect").last().click();
		await page.waitForSelector('.inspector .verified[data-ok="true"]');
		expect(await sticksOut(page)).toEqual({ page: 0, wide: [] });
	});

	it("keeps a tool's time in sight on a phone, however long its name is", async () => {
		const context = await newContext(phone);
		const { page } = await openSession(context, world.daemon, "long-tool");
		await say(page, `tool ${"a_tool_with_a_long_name_".repeat(6)} ${"and-a-long-summary-".repeat(6)}`);
		await waitForEnd(page);
		expect(await page.$eval(".scroll", (box) => box.scrollWidth - box.clientWidth)).toBe(0);
		const right = await page.$eval(".tool .elapsed", (time) => time.getBoundingClientRect().right);
		expect(right).toBeLessThan(phone.viewport.width);
	});

	it("names the lanes of the time line on a phone, too", async () => {
		const context = await newContext(phone);
		const { page } = await openSession(context, world.daemon, "lanes");
		await say(page, "everything");
		await waitForEnd(page);
		await page.click(".inspect");
		await page.waitForSelector('.inspector .verified[data-ok="true"]');
		const names = page.locator(".timeline-names li:visible");
		expect(await names.allInnerTexts()).toEqual(expect.arrayContaining(["text 1", "reasoning 2"]));
		expect(await sticksOut(page)).toEqual({ page: 0, wide: [] });
	});

	it("opens the sessions as a drawer on a phone and closes it with Escape", async () => {
		const context = await newContext(phone);
		const { page } = await openSession(context, world.daemon, "drawer");
		expect(await page.isVisible(".sessions")).toBe(false);
		await page.click(".open-drawer");
		await expect.poll(() => page.isVisible(".new-session")).toBe(true);
		await expect.poll(() => page.evaluate(() => document.activeElement?.className)).toContain("close-drawer");
		// The content behind it cannot be reached.
		for (let presses = 0; presses < 8; presses += 1) {
			await page.keyboard.press("Shift+Tab");
			expect(await page.evaluate(() => document.activeElement?.closest("main, .skip"))).toBeNull();
		}
		await page.keyboard.press("Escape");
		await expect.poll(() => page.isVisible(".sessions")).toBe(false);
		await expect.poll(() => page.evaluate(() => document.activeElement?.className)).toContain("open-drawer");
	});

	it("writes every block in its own direction", async () => {
		const { page } = await openSession(world.context, world.daemon, "directions");
		await say(page, "مرحبا");
		await waitForEnd(page);
		const direction = (selector: string) => page.$eval(selector, (node) => getComputedStyle(node).direction);
		expect(await direction(".bubble")).toBe("rtl");
		// "You said: …"
		expect(await direction(".answer p")).toBe("ltr");
		await page.fill("textarea", "שלום");
		expect(await direction("textarea")).toBe("rtl");
	});

	it("announces the beginning and the end of an answer, not its words", async () => {
		const { page } = await openSession(world.context, world.daemon, "announce");
		await page.evaluate(() => {
			const said: string[] = [];
			Object.assign(window, { said });
			const region = document.querySelector('[role="status"]');
			if (region)
				new MutationObserver(() => said.push(region.textContent ?? "")).observe(region, {
					childList: true,
					characterData: true,
					subtree: true,
				});
		});
		const heard = () => page.evaluate(() => (window as unknown as { said: string[] }).said);
		await say(page, "count 800 0 400 announce");
		await wordsFrom(page, 400);
		await expect.poll(heard).toEqual(["The answer is being written."]);
		world.daemon.release("announce");
		await waitForEnd(page);
		await expect.poll(async () => (await heard()).length).toBe(2);
		const said = await heard();
		expect(said[1]).toMatch(/^Answer finished\. 1 2 3/);
	});

	it("can be used with the keyboard alone, with a visible focus", async () => {
		const { page } = await openSession(world.context, world.daemon, "keys");
		await page.keyboard.type("everything");
		await page.keyboard.press("Enter");
		await waitForEnd(page);
		const isWriting = () => page.evaluate(() => document.activeElement?.tagName === "TEXTAREA");
		await page.keyboard.type("count 5000 0 5 keys");
		await page.keyboard.press("Enter");
		await page.focus(".stop");
		await page.keyboard.press("Enter");
		// The button is gone, the focus is not.
		await expect.poll(() => page.locator(".stop").count()).toBe(0);
		await expect.poll(isWriting).toBe(true);
		await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
		const reached: string[] = [];
		for (let presses = 0; presses < 200 && reached.at(-1) !== "TEXTAREA"; presses += 1) {
			await page.keyboard.press("Tab");
			reached.push(
				await page.evaluate(() => {
					const node = document.activeElement;
					const style = node && getComputedStyle(node);
					const visible = style && (style.outlineStyle !== "none" || node.tagName === "TEXTAREA");
					return visible
						? node.className.split(" ").at(-1) || node.tagName
						: `invisible ${node?.tagName} ${node?.className}`;
				}),
			);
		}
		// Between its last and its first element a page hands the focus to the browser.
		expect(reached.filter((name) => name.startsWith("invisible") && !name.includes("BODY"))).toEqual([]);
		expect(reached).toEqual(expect.arrayContaining(["skip", "new-session", "SUMMARY", "inspect", "TEXTAREA"]));
	});

	it("keeps the focus when a view or a button changes, and names the run in the title", async () => {
		for (let turn = 0; turn < 61; turn += 1) await world.daemon.send("focus", `number ${turn}`);
		const { page } = await openSession(world.context, world.daemon, "focus");
		const focused = () => page.evaluate(() => document.activeElement?.id || document.activeElement?.className);
		await page.focus(".older");
		await page.keyboard.press("Enter");
		await expect.poll(() => page.locator(".turn").count()).toBe(60);
		await expect.poll(() => page.locator(".older").innerText()).toBe("Show older messages");
		expect(await focused()).toContain("older");
		const run = await page.locator(".turn").last().getAttribute("data-run");
		await page.locator(".inspect").last().focus();
		await page.keyboard.press("Enter");
		await page.waitForSelector(".inspector");
		await expect.poll(focused).toBe("main");
		expect(await page.title()).toBe(`Run ${run} · Nexus`);
	});

	it("leaves the reader alone who has scrolled up, and offers the way back", async () => {
		const context = await newContext({ viewport: { width: 900, height: 400 } });
		const { page } = await openSession(context, world.daemon, "scroll");
		await say(page, "hostile");
		await waitForEnd(page);
		// It is not over before the reader is, and nothing comes before the reader has scrolled up.
		await say(page, "count 50000 2 400 scroll");
		await wordsFrom(page, 400);
		const atEnd = () => page.$eval(".scroll", (box) => box.scrollHeight - box.scrollTop - box.clientHeight < 60);
		await expect.poll(atEnd).toBe(true);
		await page.$eval(".scroll", (box) => box.scrollTo(0, 10));
		await page.waitForSelector(".jump");
		world.daemon.release("scroll");
		await wordsFrom(page, 450);
		expect(await page.$eval(".scroll", (box) => box.scrollTop)).toBe(10);
		await page.click(".jump");
		await expect.poll(atEnd).toBe(true);
		// A finger's breadth is enough.
		await page.mouse.move(450, 150);
		await page.mouse.wheel(0, -6);
		await page.waitForSelector(".jump");
		await page.press("textarea", "Escape");
		await expect.poll(() => page.locator(".stop").count()).toBe(0);
	});

	it("follows the system's colours until a person chooses, and remembers the choice", async () => {
		const context = await newContext({ colorScheme: "dark" });
		const { page } = await openSession(context, world.daemon, "colours");
		const background = () => page.$eval("body", (body) => getComputedStyle(body).backgroundColor);
		const dark = await background();
		await page.click(".theme");
		await expect.poll(background).not.toBe(dark);
		await page.reload();
		await page.waitForSelector(".composer");
		expect(await background()).not.toBe(dark);
		await page.emulateMedia({ reducedMotion: "reduce" });
		await say(page, "count 20 0 10 colours");
		await page.waitForSelector(".live-mark i");
		expect(
			await page.$eval(".live-mark i", (dot) => Number.parseFloat(getComputedStyle(dot).animationDuration)),
		).toBeLessThan(0.01);
		world.daemon.release("colours");
	});

	it("lists fifty sessions and the older ones on demand, and knows the title of one that is not listed", async () => {
		// As the page makes them: a session that a person named would be called by its label.
		const labelOf = (session: number) => `chat-${String(session).padStart(26, "0")}`;
		for (let session = 0; session < 52; session += 1) {
			await world.daemon.send(labelOf(session), `number ${session}`);
			await world.daemon.send(labelOf(session), "a later message");
		}
		const { page } = await openSession(world.context, world.daemon, labelOf(0));
		await expect.poll(() => page.textContent("h1")).toBe("number 0");
		await expect.poll(() => page.textContent(".sessions [aria-current] .row-title")).toBe("number 0");
		const titles = () => page.locator(".sessions .row-title").allTextContents();
		expect(await titles()).not.toContain("number 1");
		await page.click(".older-sessions");
		await expect.poll(titles).toContain("number 1");
		expect((await titles()).filter((title) => title === "number 0")).toHaveLength(1);
	});
});
