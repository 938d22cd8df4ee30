import { describe, expect, it } from "vitest";
import { lengthOf, smsSegments } from "../../../src/adapter/kit/length.ts";

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

describe("segments of a text message", () => {
	it.each([
		["", { encoding: "gsm7", segments: 0, units: 0 }],
		["a".repeat(160), { encoding: "gsm7", segments: 1, units: 160 }],
		["a".repeat(161), { encoding: "gsm7", segments: 2, units: 161 }],
		["a".repeat(306), { encoding: "gsm7", segments: 2, units: 306 }],
		["ж".repeat(70), { encoding: "ucs2", segments: 1, units: 70 }],
		["ж".repeat(71), { encoding: "ucs2", segments: 2, units: 71 }],
	])("%#", (text, expected) => {
		expect(smsSegments(text)).toEqual(expected);
	});

	it("does not divide a two-unit character between segments", () => {
		expect(smsSegments(`${"a".repeat(152)}€${"a".repeat(152)}`).segments).toBe(3);
		expect(smsSegments(`${"ж".repeat(66)}😀${"ж".repeat(66)}`).segments).toBe(3);
	});
});
