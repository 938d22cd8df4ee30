/** Any character of Unicode, for `fc.string({ unit: character })`. */

import fc from "fast-check";

const SURROGATES = { first: 0xd800, count: 0x800 };

/** As fast-check's unit "binary", which takes a second to build its tables. */
export const character = fc
	.integer({ min: 0, max: 0x10ffff - SURROGATES.count })
	.map((code) => String.fromCodePoint(code < SURROGATES.first ? code : code + SURROGATES.count));
