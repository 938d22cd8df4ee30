/** The records of a live log that are not in a segment yet. Bytes outside of V8's heap: a thousand growing texts would keep the garbage collector busy. */

import type { NewSegment } from "../storage.ts";
import { Batch } from "./batch.ts";

/** Neighbouring records, joined by line feeds. No record is in two blocks. */
interface RecordBlock {
	readonly bytes: Buffer;
	used: number;
	/** Offset of its first record. */
	readonly first: number;
	count: number;
}

export class Tail {
	/** In order; the last one takes what comes. */
	readonly #blocks: RecordBlock[] = [];
	#size = 0;

	/** Bytes of the records, with a line feed each. */
	get size(): number {
		return this.#size;
	}

	push({ first, count, text }: Batch): void {
		let block = this.#blocks.at(-1);
		if (!block || block.used + 1 + text.length * UTF8_BYTES_PER_UNIT_MAX > block.bytes.length) {
			const bytes = Buffer.byteLength(text);
			if (!block || block.used + 1 + bytes > block.bytes.length) block = this.#begin(first, bytes);
		}
		if (block.count > 0) block.bytes[block.used++] = LINE_FEED;
		const written = block.bytes.write(text, block.used);
		block.used += written;
		block.count += count;
		this.#size += written + 1;
	}

	#begin(first: number, bytes: number): RecordBlock {
		const block = { bytes: takeBlock(bytes), used: 0, first, count: 0 };
		this.#blocks.push(block);
		return block;
	}

	clear(): void {
		for (const { bytes } of this.#blocks) giveBlock(bytes);
		this.#blocks.length = 0;
		this.#size = 0;
	}

	/** All of it together with records that follow it, as bytes. */
	bytesWith(batch: Batch | undefined): NewSegment | undefined {
		const [oldest] = this.#blocks;
		if (!oldest) return batch && { first: batch.first, count: batch.count, bytes: Buffer.from(batch.text) };
		const room = this.#size + (batch ? batch.text.length * UTF8_BYTES_PER_UNIT_MAX : 0);
		const bytes = Buffer.allocUnsafe(room);
		let used = 0;
		let count = batch?.count ?? 0;
		for (const block of this.#blocks) {
			if (block !== oldest) bytes[used++] = LINE_FEED;
			used += block.bytes.copy(bytes, used, 0, block.used);
			count += block.count;
		}
		if (batch) {
			bytes[used++] = LINE_FEED;
			used += bytes.write(batch.text, used);
		}
		return { first: oldest.first, count, bytes: bytes.subarray(0, used) };
	}

	/** The records strictly after an offset; undefined when that is before the tail. Only these are decoded. */
	after(offset: number): Batch | undefined {
		const [oldest] = this.#blocks;
		const newest = this.#blocks.at(-1);
		if (!oldest || !newest || offset + 1 < oldest.first) return undefined;
		let text: string | undefined;
		for (let at = this.#blocks.length - 1; at >= 0; at--) {
			const block = this.#blocks[at]!;
			const later = text;
			text = block.bytes.toString("utf8", startOf(block, offset + 1), block.used);
			if (later !== undefined) text = `${text}\n${later}`;
			if (block.first <= offset + 1) break;
		}
		return new Batch(offset + 1, newest.first + newest.count - 1 - offset, text!);
	}
}

/** The same of a tail that was cut. */
export function afterInCut(
	{ first, count, bytes: { buffer, byteOffset, length } }: NewSegment,
	offset: number,
): Batch | undefined {
	if (offset + 1 < first) return undefined;
	const bytes = Buffer.from(buffer, byteOffset, length);
	const start = startOf({ bytes, used: length, first, count }, offset + 1);
	return new Batch(offset + 1, first + count - 1 - offset, bytes.toString("utf8", start));
}

/** Where the record with the offset begins, or the block does. Counted from the end: who asks is mostly only a little behind. */
function startOf({ bytes, used, first, count }: RecordBlock, offset: number): number {
	if (offset <= first) return 0;
	let at = used;
	for (let left = first + count - offset; left > 0; left--) at = bytes.lastIndexOf(LINE_FEED, at - 1);
	return at + 1;
}

const LINE_FEED = 0x0a;
const UTF8_BYTES_PER_UNIT_MAX = 3;

const BLOCK_BYTES = 4096;
/** As many as all tails together may hold; more are left to the garbage collector. Each is separate memory: one that is kept holds no others. */
const KEPT_MAX = 4096;

const kept: Buffer[] = [];

/** With room for so many bytes; its content is undefined. Blocks are used again: allocating one costs more than filling it. */
function takeBlock(bytes: number): Buffer {
	if (bytes > BLOCK_BYTES) return Buffer.allocUnsafeSlow(bytes);
	return kept.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
}

function giveBlock(block: Buffer): void {
	if (block.length === BLOCK_BYTES && kept.length < KEPT_MAX) kept.push(block);
}
