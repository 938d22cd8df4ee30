/** Neighbouring records as one text. Shared by all readers and never changed, so an edge may cache what it encodes from it. */

export class Batch {
	/** Offset of the first record. */
	readonly first: number;
	readonly count: number;
	/** The records joined by line feeds: one string instead of one per record is what keeps a flood out of the garbage collector. */
	readonly text: string;
	private lines: readonly string[] | undefined;
	/** With the offsets of its log's chain. */
	private moved: Batch | undefined;

	constructor(first: number, count: number, text: string) {
		this.first = first;
		this.count = count;
		this.text = text;
		this.lines = undefined;
		this.moved = undefined;
	}

	static of(first: number, records: readonly string[]): Batch {
		return new Batch(first, records.length, records.length === 1 ? records[0]! : records.join("\n"));
	}

	/** Offset of the last record. */
	get last(): number {
		return this.first + this.count - 1;
	}

	/** Each a line of text without a line feed. */
	get records(): readonly string[] {
		this.lines ??= this.text.split("\n");
		return this.lines;
	}

	/** The same records at the offsets of a chain in which their log begins at `base`; the same object for all who ask. */
	movedBy(base: number): Batch {
		if (base === 0) return this;
		this.moved ??= new Batch(base + this.first, this.count, this.text);
		return this.moved;
	}

	/** The records strictly after an offset; this very batch when that is all of them. */
	after(offset: number): Batch {
		if (offset < this.first) return this;
		const skip = offset + 1 - this.first;
		return new Batch(offset + 1, this.count - skip, this.text.slice(lineStart(this.text, skip)));
	}

	/** The records up to and including an offset. */
	upTo(offset: number): Batch {
		if (offset >= this.last) return this;
		const count = offset + 1 - this.first;
		return new Batch(this.first, count, this.text.slice(0, lineStart(this.text, count) - 1));
	}
}

/** Where line `n` (from 0) begins. */
function lineStart(text: string, n: number): number {
	let at = 0;
	for (let line = 0; line < n; line++) at = text.indexOf("\n", at) + 1;
	return at;
}
