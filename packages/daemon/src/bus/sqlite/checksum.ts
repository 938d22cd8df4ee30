/** Checksums of what is stored: a flipped byte on disk is found when it is read, and never served. */

import type { SQLOutputValue } from "node:sqlite";
import { crc32 } from "node:zlib";

type ChecksumRow = Record<string, SQLOutputValue>;

/** Over the place, too: a segment that answers for another log or offset is as wrong as a flipped byte. */
export const segmentCrc = (log: number, first: number, count: number, records: string | Uint8Array): number =>
	crc32(records, crc32(`${log} ${first} ${count}\n`));

/** Segments from before there were checksums have none. */
export const isWholeSegment = (log: number, { first, count, records, crc }: ChecksumRow): boolean =>
	typeof crc !== "number" || crc === segmentCrc(log, Number(first), Number(count), records as string);

/** Every row has one: a row that lost it proves nothing. A file of the first version has no such column. */
export const isWholeJournal = ({ entries, crc }: ChecksumRow): boolean =>
	crc === undefined || crc === crc32(entries as string);
