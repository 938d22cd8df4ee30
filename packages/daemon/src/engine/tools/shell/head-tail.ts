/** The beginning and the end of an output, whatever its length: memory is bounded, and what is left out is counted. */

export class HeadTail {
	readonly #headMax: number;
	readonly #tailMax: number;
	readonly #head: Buffer[] = [];
	#headBytes = 0;
	#tail: Buffer[] = [];
	#tailBytes = 0;
	#total = 0;

	constructor(bytesMax: number) {
		this.#headMax = Math.ceil(bytesMax / 2);
		this.#tailMax = bytesMax - this.#headMax;
	}

	add(chunk: Buffer): void {
		this.#total += chunk.length;
		const fits = Math.min(chunk.length, this.#headMax - this.#headBytes);
		if (fits > 0) {
			this.#head.push(chunk.subarray(0, fits));
			this.#headBytes += fits;
		}
		if (fits === chunk.length) return;
		this.#tail.push(chunk.subarray(fits));
		this.#tailBytes += chunk.length - fits;
		// Pieces share memory with what they were cut from: copied together once there is twice as much as is kept.
		if (this.#tailBytes > 2 * this.#tailMax + TAIL_SLACK) this.#cutTail();
	}

	#cutTail(): void {
		const all = Buffer.concat(this.#tail);
		this.#tail = [Buffer.from(all.subarray(Math.max(0, all.length - this.#tailMax)))];
		this.#tailBytes = this.#tail[0]!.length;
	}

	text(): string {
		this.#cutTail();
		const head = Buffer.concat(this.#head);
		const tail = this.#tail[0]!;
		if (head.includes(0) || tail.includes(0)) return `(binary output of ${this.#total} bytes, not shown)`;
		const left = this.#total - head.length - tail.length;
		if (left === 0) return Buffer.concat([head, tail]).toString("utf8");
		const shown = [wholeCharacters(head), tail.subarray(firstCharacter(tail))];
		return shown.map((part) => part.toString("utf8")).join(`\n… ${left} bytes left out …\n`);
	}
}

const TAIL_SLACK = 64 * 1024;

const isInsideCharacter = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Where the first whole character begins. */
function firstCharacter(bytes: Buffer): number {
	let at = 0;
	while (at < 3 && isInsideCharacter(bytes[at])) at += 1;
	return at;
}

/** Without a character that was cut at the end. */
function wholeCharacters(bytes: Buffer): Buffer {
	for (let back = 1; back <= Math.min(4, bytes.length); back++) {
		const byte = bytes[bytes.length - back]!;
		if (isInsideCharacter(byte)) continue;
		const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
		return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
	}
	return bytes;
}
