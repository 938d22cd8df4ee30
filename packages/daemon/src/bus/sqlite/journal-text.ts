/** The text of a journal row while it is put together: bytes in memory that is used again, because nothing of it is needed after the commit. */

import type { LogWrite } from "../storage.ts";

const KEPT_BYTES = 256 * 1024;
const UTF8_BYTES_PER_UNIT_MAX = 3;
/** Three numbers of sixteen digits, two spaces and two line feeds. */
const FRAMING_BYTES_MAX = 52;

export class JournalText {
	#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
	#used = 0;

	/** A row as large as this is rare: its memory is not kept. */
	begin(): void {
		this.#used = 0;
		if (this.#bytes.length > KEPT_BYTES) this.#bytes = Buffer.allocUnsafeSlow(KEPT_BYTES);
	}

	/** The entry of one log in a commit, as `entriesOf` reads it. */
	add({ id, batch }: LogWrite): void {
		if (!batch) return;
		const { text } = batch;
		this.#reserve(text.length * UTF8_BYTES_PER_UNIT_MAX + FRAMING_BYTES_MAX);
		this.#number(id, SPACE);
		this.#number(batch.first, SPACE);
		this.#number(batch.count, LINE_FEED);
		this.#used += this.#bytes.write(text, this.#used);
		this.#bytes[this.#used++] = LINE_FEED;
	}

	/** UTF-8; good until the next row is begun. */
	get bytes(): Uint8Array {
		return this.#bytes.subarray(0, this.#used);
	}

	#number(value: number, behind: number): void {
		let end = this.#used + 1;
		for (let power = 10; power <= value; power *= 10) end++;
		let rest = value;
		for (let at = end - 1; at >= this.#used; at--) {
			const digit = rest % 10;
			this.#bytes[at] = ZERO + digit;
			rest = (rest - digit) / 10;
		}
		this.#used = end;
		this.#bytes[this.#used++] = behind;
	}

	#reserve(more: number): void {
		const size = this.#used + more;
		if (size <= this.#bytes.length) return;
		const larger = Buffer.allocUnsafeSlow(Math.max(size, 2 * this.#bytes.length));
		this.#bytes.copy(larger, 0, 0, this.#used);
		this.#bytes = larger;
	}
}

const SPACE = 0x20;
const LINE_FEED = 0x0a;
const ZERO = 0x30;
