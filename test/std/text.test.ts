/** Shortened text, sizes of base64 and content types. */

import { expect, it } from "vitest";
import { clip, clipBytes, clipCharacters, clipGraphemes } from "../../packages/daemon/src/std/clip.ts";
import { base64Bytes, contentTypeOf, extensionOf } from "../../packages/daemon/src/std/content-type.ts";

it("a text that fits stays as it is, and a longer one ends with an ellipsis within the limit", () => {
	for (const shorten of [clip, clipCharacters, clipGraphemes, clipBytes]) {
		expect(shorten("abcdef", 6)).toBe("abcdef");
		expect(shorten("abcdefgh", 6)).toMatch(/^abc(?:de)?…$/);
	}
});

it("no character is cut in half", () => {
	expect(clip("ab👋cd", 4)).toBe("ab…");
	expect(clipCharacters("👋👋👋", 2)).toBe("👋…");
	expect(clipGraphemes("👨‍👩‍👧👨‍👩‍👧👨‍👩‍👧", 2)).toBe("👨‍👩‍👧…");
	expect(clipBytes("aüüü", 6)).toBe("aü…");
});

it("the size of base64 text is that of its bytes", () => {
	for (const size of [0, 1, 2, 3, 100]) expect(base64Bytes(Buffer.alloc(size).toString("base64"))).toBe(size);
});

it("a content type and the extension of a file lead to one another", () => {
	expect(["a/b.PNG", "x.jpeg", "README", "a.constructor"].map(contentTypeOf)).toEqual([
		"image/png",
		"image/jpeg",
		"application/octet-stream",
		"application/octet-stream",
	]);
	const types = ["image/jpeg", "Text/Plain; charset=utf-8", "audio/x-aiff", "application/vnd.ms-excel", "odd"];
	expect(types.map(extensionOf)).toEqual(["jpg", "txt", "aiff", "bin", "bin"]);
});
