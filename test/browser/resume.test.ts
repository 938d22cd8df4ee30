/** I4 as a person sees it: whatever breaks between the daemon and the page, no word is lost and none comes twice. */

import { expect, it } from "vitest";
import { cuttable } from "./cuttable.ts";
import { describeInBrowser, lastWords, openSession, say, upTo, waitForEnd, waitForLink, wordsFrom } from "./kit.ts";
import { createWorld } from "./world.ts";

describeInBrowser("an interrupted stream", () => {
	const world = createWorld();

	it("I4: a reload in the middle goes on where it was", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "reload");
		await say(page, "count 200 10");
		await wordsFrom(page, 20);
		await page.reload();
		const afterReload = await wordsFrom(page, 20);
		expect(afterReload).toEqual(upTo(afterReload.length));
		await page.reload();
		await waitForEnd(page);
		expect(await lastWords(page)).toEqual(upTo(200));
		expect(await page.locator(".bubble").allTextContents()).toEqual(["count 200 10"]);
		expect(await page.getAttribute(".verified", "data-ok")).toBe("true");
		expect(faults).toEqual([]);
	});

	it("I4: a cut connection is shown, resumed, and leaves no trace in the text", async () => {
		const line = await cuttable(Number(new URL(world.daemon.url).port));
		try {
			const through = { ...world.daemon, url: line.url };
			const { page } = await openSession(world.context, through, "cut");
			await say(page, "count 300 10");
			await wordsFrom(page, 20);
			line.cut();
			await waitForLink(page, "reconnecting");
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
			// It is still there for whoever looks elsewhere first, or reloads.
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

	it("I3 I4: kill -9 and a restart: the answer is shown as cut, whole up to there, and the session goes on", async () => {
		const { page } = await openSession(world.context, world.daemon, "killed");
		await say(page, "count 20000 5");
		const before = await wordsFrom(page, 30);
		await world.daemon.kill();
		await waitForLink(page, "reconnecting");
		const held = await lastWords(page);
		expect(held.length).toBeGreaterThanOrEqual(before.length);
		await world.daemon.restart();
		await waitForLink(page, "live");
		await expect.poll(() => page.textContent(".outcome")).toContain("daemon restarted");
		const after = await lastWords(page);
		expect(after).toEqual(upTo(after.length));
		expect(after.length).toBeGreaterThanOrEqual(held.length);
		// Neither damaged nor a green mark beside an answer that was cut.
		expect(await page.locator(".verified").count()).toBe(0);
		await say(page, "count 9 0");
		await page.waitForSelector('.turn:last-of-type .verified[data-ok="true"]');
		expect(await lastWords(page)).toEqual(upTo(9));
		await page.reload();
		await page.waitForSelector(".outcome");
		expect(await page.locator(".turn .answer .prose").first().innerText()).toBe(after.join(" "));
	});

	it("says that an answer could not be stopped, and loads a session by itself once the daemon is back", async () => {
		await world.daemon.send("other", "the other one");
		const { page } = await openSession(world.context, world.daemon, "down");
		await say(page, "count 20000 5");
		await wordsFrom(page, 5);
		await world.daemon.kill();
		await waitForLink(page, "reconnecting");
		await page.click(".stop");
		await expect.poll(() => page.textContent(".stop-failed")).toContain("Not stopped");
		await page.click('.sessions a[title="other"]');
		await page.waitForSelector(".thread .outcome");
		await world.daemon.restart();
		await expect.poll(() => page.locator(".bubble").allTextContents()).toEqual(["the other one"]);
		expect(await page.locator(".thread .outcome").count()).toBe(0);
	});

	it("starts over with what there is when the daemon comes back with other data", async () => {
		const { page } = await openSession(world.context, world.daemon, "other-data");
		// As when the daemon dies before it could say what it has saved.
		await page.route("**/v1/runs/*", (route) => route.abort());
		await say(page, "count 20 0");
		await waitForEnd(page);
		await world.daemon.forget();
		await page.unroute("**/v1/runs/*");
		await waitForLink(page, "live");
		await expect.poll(() => page.locator(".turn").count()).toBe(0);
		await say(page, "count 6 0");
		await waitForEnd(page);
		expect(await lastWords(page)).toEqual(upTo(6));
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
