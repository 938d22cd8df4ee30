/** The text of a model stays text: nothing runs, nothing is loaded, nothing leaves its place. */

import { expect, it } from "vitest";
import { describeInBrowser, openSession, say, waitForEnd } from "./kit.ts";
import { createWorld } from "./world.ts";

const ELEMENTS = new Set(
	"A BLOCKQUOTE BR BUTTON CODE DEL DIV EM FIGCAPTION FIGURE H3 H4 H5 H6 HR IMG INPUT LI OL P PATH PRE SPAN STRONG SUP SVG TABLE TBODY TD TH THEAD TR UL".split(
		" ",
	),
);

describeInBrowser("hostile markdown", () => {
	const world = createWorld();

	it("runs nothing, loads nothing, and makes only known elements", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "hostile");
		await say(page, "hostile");
		await waitForEnd(page);
		expect(await page.textContent(".answer")).toContain("The hostile text ends here.");
		const found = await page.$$eval(".answer *", (nodes) =>
			nodes.map((node) => ({
				name: node.tagName.toUpperCase(),
				attributes: node.getAttributeNames(),
				href: node.getAttribute("href"),
				src: node.getAttribute("src"),
				rel: node.getAttribute("rel"),
			})),
		);
		expect(found.length).toBeGreaterThan(30);
		for (const { name, attributes, href, src, rel } of found) {
			expect(ELEMENTS).toContain(name);
			for (const attribute of attributes) expect(attribute).not.toMatch(/^on|^style$|^srcdoc$|^formaction$/);
			if (href !== null) expect(href).toMatch(/^(https?|mailto):/);
			if (href !== null) expect(rel).toBe("noopener noreferrer nofollow");
			if (src !== null) expect(src).toMatch(/^data:image\//);
		}
		// Everything a person could do to set something off.
		for (const link of await page.locator(".answer span, .answer em, .answer p").all())
			await link.hover({ force: true });
		expect(await page.evaluate(() => (window as unknown as { hacked?: number }).hacked)).toBeUndefined();
		expect(faults).toEqual([]);
	});

	it.each([
		["closing brackets", "repeat 50000 ]", 50_000],
		["crossing emphasis", "repeat 13000 *a_", 39_000],
		["a megabyte without a space", "repeat 1000000 a", 1_000_000],
	])("shows what is too costly to format as plain text, says so, and keeps working: %s", async (name, text, length) => {
		const { page, faults } = await openSession(world.context, world.daemon, `costly-${name.replaceAll(" ", "-")}`);
		await say(page, text);
		await waitForEnd(page);
		await page.waitForSelector(".answer .note");
		expect(await page.textContent(".answer .note")).toBe("Shown as plain text: formatting this would take too long.");
		const shown = () =>
			page.$$eval(".answer .prose > p:not(.note)", (nodes) =>
				nodes.reduce((sum, node) => sum + (node.textContent ?? "").length, 0),
			);
		await expect.poll(shown).toBe(length);
		await say(page, "and now");
		await expect.poll(() => page.locator(".turn:last-of-type .answer").innerText()).toContain("You said: and now");
		expect(faults).toEqual([]);
	});

	it.each([
		["accents", `a${"\u0301".repeat(100_000)}`],
		["skin tones", `\u{1f44b}${"\u{1f3fd}".repeat(50_000)}`],
	])("draws a bounded number of marks on one character, and keeps working: %s", async (name, text) => {
		const session = `marks-${name.replaceAll(" ", "-")}`;
		const { page, faults } = await openSession(world.context, world.daemon, session);
		// Not typed: what a person types is their own, and drawn as it is.
		for (const said of [text, `tool ${text.slice(0, 20_001)} ${text.slice(0, 20_001)}`])
			await world.context.request.post(`${world.daemon.url}/v1/sessions/${session}/messages`, {
				data: { text: said },
				headers: { origin: world.daemon.url },
			});
		await expect.poll(() => page.locator(".turn .facts .verified").count()).toBe(2);
		const runs = await page.evaluate(() => {
			const attributes = [...document.querySelectorAll("*")].flatMap((node) =>
				node.getAttributeNames().map((attribute) => node.getAttribute(attribute) ?? ""),
			);
			const nodes = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
			const texts = [document.title, ...attributes];
			while (nodes.nextNode()) texts.push(nodes.currentNode.nodeValue ?? "");
			return texts
				.flatMap((one) => one.match(/[\p{M}\p{Emoji_Modifier}]+/gu) ?? [])
				.map((run) => Array.from(run).length);
		});
		expect([runs.length > 3, Math.max(...runs)]).toEqual([true, 30]);
		const kept = await world.context.request.get(`${world.daemon.url}/v1/runs?session=${session}`);
		expect(await kept.text()).toContain(text);
		expect(faults).toEqual([]);
	});

	it("is served under a policy that would stop it anyway", async () => {
		const response = await fetch(world.daemon.url);
		const policy = response.headers.get("content-security-policy") ?? "";
		expect(policy).toContain("script-src 'self'");
		expect(policy).toContain("style-src 'self'");
		expect(policy).not.toMatch(/unsafe/);
		expect(await response.text()).not.toMatch(/<script(?![^>]*src=)|<style|style=/);
	});
});
