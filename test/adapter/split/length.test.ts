import { describe, expect, it } from "vitest";
import { lengthOf } from "../../../packages/adapter/src/markdown/length.ts";

describe("length in a platform's unit", () => {
	it("counts a family emoji in five ways", () => {
		const family = "👨‍👩‍👧‍👦";
		expect(lengthOf(family, "utf16")).toBe(11);
		expect(lengthOf(family, "codepoint")).toBe(7);
		expect(lengthOf(family, "grapheme")).toBe(1);
		expect(lengthOf(family, "utf8")).toBe(25);
		expect(lengthOf(family, "sms")).toBe(11);
	});

	it("counts a line end of two characters as one grapheme", () => {
		expect(lengthOf("a\r\nb", "grapheme")).toBe(3);
	});

	it("counts septets: the extension table twice, one foreign letter makes all UCS-2", () => {
		expect(lengthOf("Grüße @ 5", "sms")).toBe(9);
		expect(lengthOf("{€}", "sms")).toBe(6);
		expect(lengthOf("{ł}", "sms")).toBe(3);
	});
});
