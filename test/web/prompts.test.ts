/** The messages that the page suggests. */

import { describe, expect, it } from "vitest";
import { chatPrompts, labPrompts } from "../../packages/web/src/chat/words.ts";

describe("messages to try", () => {
	it("are directives where the demo agent answers, and words where anything else does", () => {
		for (const promptsOf of [chatPrompts, labPrompts]) {
			expect(promptsOf("demo").some(({ text }) => text.startsWith("/demo"))).toBe(true);
			expect(promptsOf("pi").length).toBeGreaterThan(0);
			expect(promptsOf("pi").some(({ text }) => text.includes("/demo"))).toBe(false);
		}
	});

	it("are not offered before it is known what answers", () => {
		expect(chatPrompts(undefined)).toEqual([]);
	});
});
