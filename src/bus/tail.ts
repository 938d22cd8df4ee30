/** The records of a live log that are not in a segment yet. Bytes outside of V8's heap: a thousand growing texts would keep the garbage collector busy. */

import { Batch } from "./batch.ts";

const BYTES_AT_FIRST = 1024;

export class Tail {
	/** Offset of the first record. */
	private first = 1;
	private count = 0;
	private bytes = Buffer.alloc(0);
	private used = 0;

	/** Bytes held. */
	get size(): number {
		return this.used;
	}

	push(batch: Batch): void {
		if (this.count === 0) this.first = batch.first;
		else this.bytes[this.used++] = LINE_FEED;
		const { text } = batch;
		// One byte more, for the line feed that the next record begins with.
		this.reserve(this.used + text.length * UTF8_BYTES_PER_UNIT_MAX + 1);
		this.used += this.bytes.write(text, this.used);
		this.count += batch.count;
	}

	clear(): void {
		this.count = 0;
		this.used = 0;
	}

	/** All of it, or undefined when it is empty. */
	batch(): Batch | undefined {
		if (this.count === 0) return undefined;
		return new Batch(this.first, this.count, this.bytes.toString("utf8", 0, this.used));
	}

	/** What comes strictly after an offset; undefined when that begins before the tail. */
	after(offset: number): Batch | undefined {
		return this.count > 0 && offset + 1 >= this.first ? this.batch()?.after(offset) : undefined;
	}

	private reserve(size: number): void {
		if (size <= this.bytes.length) return;
		const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.bytes.length, BYTES_AT_FIRST));
		this.bytes.copy(larger, 0, 0, this.used);
		this.bytes = larger;
	}
}

const LINE_FEED = 0x0a;
const UTF8_BYTES_PER_UNIT_MAX = 3;
