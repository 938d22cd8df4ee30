/** Memory that texts are encoded in, one after the other: what a commit writes is bytes, needed until it is written. */

const KEPT_BYTES = 256 * 1024;
const UTF8_BYTES_PER_UNIT_MAX = 3;

export class Scratch {
	readonly #kept = Buffer.allocUnsafeSlow(KEPT_BYTES);

	/** UTF-8; good until the next call. */
	encode(text: string): Uint8Array {
		if (text.length * UTF8_BYTES_PER_UNIT_MAX > KEPT_BYTES) return Buffer.from(text);
		return this.#kept.subarray(0, this.#kept.write(text));
	}
}
