/** I7: no answer fails for its content, on any platform: it is cut with work in proportion to its length, and every letter is said. */

import { describe, expect, it } from "vitest";
import { splitAll } from "../../../packages/adapter/src/markdown/split.ts";
import { createRenderer } from "../../../packages/adapter/src/serve/context.ts";
import { CHANNELS } from "../../../packages/platforms/src/channels.ts";
import { HOSTILE_TEXTS } from "../../markdown/texts.ts";
import { loadPlatform } from "../platform.ts";

const CHARS = 5000;
/** Where all of it is parsed. */
const PARSED_CHARS = 2000;
/** How often a character is rendered while messages are cut: a few tries for each end. */
const TRIES_MAX = 150;

describe.each(CHANNELS)("hostile answers on %s", (channel) => {
	it.each(HOSTILE_TEXTS)("I7: $name: cut and rendered, with bounded work", async ({ text, slow }) => {
		const platform = await loadPlatform(channel);
		let rendered = 0;
		const counted = {
			...platform,
			render(markdown: string) {
				rendered += markdown.length;
				return platform.render(markdown);
			},
		};
		const { fits, share } = createRenderer(counted);
		const source = text(slow ? CHARS : PARSED_CHARS);
		const pieces = splitAll(source, { fits, share, guess: platform.info.limits.textMax });
		expect(pieces.at(-1)?.to).toBe(source.length);
		for (const [n, piece] of pieces.entries()) {
			expect(piece.from).toBe(n === 0 ? 0 : pieces[n - 1]?.to);
			expect(fits(piece.text)).toBe(true);
		}
		expect(rendered).toBeLessThan(TRIES_MAX * source.length);
	});
});
