/** A daemon that is started, killed and started again in front of the page: its printed address, a crash, other data. */

import { expect, it } from "vitest";
import { startDaemon, TOKEN } from "./daemon.ts";
import {
	describeInBrowser,
	lastWords,
	openSession,
	openTab,
	say,
	upTo,
	waitForEnd,
	waitForLink,
	wordsFrom,
} from "./kit.ts";
import { createOwnWorld } from "./world.ts";

describeInBrowser("a daemon that comes and goes", () => {
	const world = createOwnWorld(startDaemon);

	it("signs in with the printed address once, and leaves no code behind", async () => {
		const { page, faults } = await openTab(world.context, world.daemon.url);
		await page.goto(world.daemon.signInUrl);
		await page.waitForSelector(".composer");
		expect(page.url()).not.toContain("code=");
		expect(
			await page.evaluate(() =>
				JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie]),
			),
		).not.toContain(new URL(world.daemon.signInUrl).hash.slice("#code=".length));
		await page.goBack();
		expect(page.url()).not.toContain("code=");
		expect(faults).toEqual([]);
		const stranger = await world.browser.newContext();
		const second = await openTab(stranger, world.daemon.url);
		await second.page.goto(world.daemon.signInUrl);
		await second.page.waitForSelector(".sign-in");
		expect(second.page.url()).not.toContain("code=");
		await stranger.close();
	});

	it("I3 I4: kill -9 and a restart: the answer is shown as cut, whole up to there, and the session continues", async () => {
		const { page } = await openSession(world.context, world.daemon, "killed");
		await say(page, "count 20000 0 30 killed");
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
		// Neither damage nor a green mark is shown for an answer that was cut.
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
		await say(page, "count 20000 0 5 down");
		await wordsFrom(page, 5);
		await world.daemon.kill();
		await waitForLink(page, "reconnecting");
		await page.click(".stop");
		await expect.poll(() => page.textContent(".stop-failed")).toContain("Not stopped");
		await page.click('.sessions a[title^="other"]');
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
		// The sign-ins are stored with the other data.
		await page.fill("#token", TOKEN);
		await page.click(".sign-in .primary");
		await waitForLink(page, "live");
		await expect.poll(() => page.locator(".turn").count()).toBe(0);
		await say(page, "count 6 0");
		await waitForEnd(page);
		expect(await lastWords(page)).toEqual(upTo(6));
	});
});
