/** CRC-32 (the one of zlib and PNG) over the UTF-8 bytes of strings, computed piece by piece and without encoding them first. */

const TABLE = new Int32Array(256);
for (let byte = 0; byte < 256; byte++) {
	let value = byte;
	for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
	TABLE[byte] = value;
}

const step = (crc: number, byte: number): number => TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);

/**
 * The checksum of `text`, going on from `seed` (the checksum of what came before): crc32(b, crc32(a)) covers a then b.
 * Each text is encoded by itself, as TextEncoder does: half of a surrogate pair counts as U+FFFD.
 */
export function crc32(text: string, seed = 0): number {
	let crc = ~seed;
	for (let index = 0; index < text.length; index++) {
		const unit = text.charCodeAt(index);
		if (unit < 0x80) {
			crc = TABLE[(crc ^ unit) & 0xff]! ^ (crc >>> 8);
		} else if (unit < 0x800) {
			crc = step(step(crc, 0xc0 | (unit >> 6)), 0x80 | (unit & 0x3f));
		} else {
			const point = text.codePointAt(index)!;
			if (point > 0xffff) {
				index++;
				crc = step(step(crc, 0xf0 | (point >> 18)), 0x80 | ((point >> 12) & 0x3f));
			} else {
				const whole = (point & 0xf800) === 0xd800 ? 0xfffd : point;
				crc = step(crc, 0xe0 | (whole >> 12));
				crc = step(step(crc, 0x80 | ((whole >> 6) & 0x3f)), 0x80 | (whole & 0x3f));
				continue;
			}
			crc = step(step(crc, 0x80 | ((point >> 6) & 0x3f)), 0x80 | (point & 0x3f));
		}
	}
	return ~crc >>> 0;
}

/** How a checksum is spelled in `stream.end`. */
export const checksumOf = (crc: number): string => `crc32:${(crc >>> 0).toString(16).padStart(8, "0")}`;
