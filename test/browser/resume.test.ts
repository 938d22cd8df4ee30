/** I4 as a person sees it: whatever breaks between the daemon and the page, no word is lost and none comes twice. */

import { expect, it } from "vitest";
import { cuttable } from "./cuttable.ts";
import { describeInBrowser, lastWords, openSession, say, upTo, waitForEnd, waitForLink, wordsFrom } from "./kit.ts";
import { createWorld } from "./world.ts";

describeInBrowser("an interrupted stream", () => {
	const world = createWorld();

	it("I4: a reload in the middle resumes where it was", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "reload");
		await say(page, "count 200 0 20 reload");
		await wordsFrom(page, 20);
		await page.reload();
		const afterReload = await wordsFrom(page, 20);
		expect(afterReload).toEqual(upTo(20));
		await page.reload();
		world.daemon.release("reload");
		await waitForEnd(page);
		expect(await lastWords(page)).toEqual(upTo(200));
		expect(await page.locator(".bubble").allTextContents()).toEqual(["count 200 0 20 reload"]);
		expect(await page.getAttribute(".verified", "data-ok")).toBe("true");
		expect(faults).toEqual([]);
	});

	it("I4: a cut connection is shown, resumed, and leaves no trace in the text", async () => {
		const line = await cuttable(Number(new URL(world.daemon.url).port));
		try {
			const through = { ...world.daemon, url: line.url };
			const { page } = await openSession(world.context, through, "cut");
			await say(page, "count 300 2 20 cut");
			await wordsFrom(page, 20);
			line.cut();
			await waitForLink(page, "reconnecting");
			// The words that are written meanwhile are not missing afterwards.
			world.daemon.release("cut");
			line.mend();
			await waitForLink(page, "live");
			await wordsFrom(page, 60);
			line.cut();
			await waitForLink(page, "reconnecting");
			line.mend();
			await waitForEnd(page);
			expect(await lastWords(page)).toEqual(upTo(300));
			expect(await page.getAttribute(".verified", "data-ok")).toBe("true");
		} finally {
			await line.close();
		}
	});

	it("a message that could not be sent can be sent again, and is sent once", async () => {
		const line = await cuttable(Number(new URL(world.daemon.url).port));
		try {
			const { page } = await openSession(world.context, { ...world.daemon, url: line.url }, "unsent");
			line.cut();
			await waitForLink(page, "reconnecting");
			await say(page, "count 7 0");
			await expect.poll(() => page.textContent(".delivery")).toContain("Not sent");
			line.mend();
			await waitForLink(page, "live");
			// It is still there after another session was opened, or after a reload.
			await page.click(".new-session");
			await page.waitForSelector(".empty");
			await page.goBack();
			await expect.poll(() => page.textContent(".delivery")).toContain("Not sent");
			await page.reload();
			await expect.poll(() => page.textContent(".delivery")).toContain("Not sent");
			await page.click("text=Try again");
			await waitForEnd(page);
			await expect.poll(() => page.locator(".bubble").allTextContents()).toEqual(["count 7 0"]);
			expect(await lastWords(page)).toEqual(upTo(7));
			await page.reload();
			await waitForEnd(page);
			expect(await page.locator(".bubble").allTextContents()).toEqual(["count 7 0"]);
		} finally {
			await line.close();
		}
	});

	it("reads what was saved of a turn once the connection is back", async () => {
		const line = await cuttable(Number(new URL(world.daemon.url).port));
		try {
			const { page } = await openSession(world.context, { ...world.daemon, url: line.url }, "unread");
			await page.route("**/v1/runs/*", (route) => route.abort());
			// Not from this tab: only the ledger knows the question.
			await world.daemon.send("unread", "who asked this?");
			await waitForEnd(page);
			expect(await page.locator(".bubble").count()).toBe(0);
			line.cut();
			await waitForLink(page, "reconnecting");
			await page.unroute("**/v1/runs/*");
			line.mend();
			await expect.poll(() => page.locator(".bubble").allTextContents()).toEqual(["who asked this?"]);
		} finally {
			await line.close();
		}
	});

	it("reads older turns page by page, in order, and leaves the reader where they were", async () => {
		for (let turn = 1; turn <= 40; turn += 1) await world.daemon.send("long", `turn ${turn}`);
		const { page } = await openSession(world.context, world.daemon, "long");
		const texts = () => page.locator(".bubble").allTextContents();
		await expect.poll(async () => (await texts()).length).toBe(30);
		await page.$eval(".scroll", (box) => box.scrollTo(0, 0));
		const place = () =>
			page
				.getByText("turn 11", { exact: true })
				.first()
				.evaluate((node) => node.getBoundingClientRect().top);
		const before = await place();
		await page.click(".older");
		await expect.poll(async () => (await texts()).length).toBe(40);
		expect(await texts()).toEqual(upTo(40).map((turn) => `turn ${turn}`));
		await expect.poll(async () => Math.abs((await place()) - before)).toBeLessThan(120);
		expect(await page.locator(".older").count()).toBe(0);
	});
});
