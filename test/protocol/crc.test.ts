import zlib from "node:zlib";
import fc from "fast-check";
import { expect, test } from "vitest";
import { checksumOf, crc32 } from "../../packages/protocol/src/protocol.ts";
import { atEffort } from "../effort.ts";
import { anyText } from "./arbitrary.ts";

test("P1.10: the checksum is zlib's CRC-32 over the UTF-8 bytes of any text", () => {
	fc.assert(
		fc.property(anyText, (text) => {
			expect(crc32(text)).toBe(zlib.crc32(Buffer.from(text)));
		}),
		{ numRuns: atEffort(2000, 100) },
	);
});

test("P1.10: it is computed piece by piece, each payload encoded by itself", () => {
	fc.assert(
		fc.property(fc.array(anyText), (payloads) => {
			let crc = 0;
			for (const payload of payloads) crc = crc32(payload, crc);
			expect(crc).toBe(zlib.crc32(Buffer.concat(payloads.map((payload) => Buffer.from(payload)))));
		}),
	);
});

test("P1.10: it is spelled with eight hex digits", () => {
	expect(checksumOf(crc32(""))).toBe("crc32:00000000");
	expect(checksumOf(crc32("123456789"))).toBe("crc32:cbf43926");
});
