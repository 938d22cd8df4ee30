/** What a model writes stays text: nothing runs, nothing is loaded, nothing leaves its place. */

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

	it("is served under a policy that would stop it anyway", async () => {
		const response = await fetch(world.daemon.url);
		const policy = response.headers.get("content-security-policy") ?? "";
		expect(policy).toContain("script-src 'self'");
		expect(policy).toContain("style-src 'self'");
		expect(policy).not.toMatch(/unsafe/);
		expect(await response.text()).not.toMatch(/<script(?![^>]*src=)|<style|style=/);
	});
});
