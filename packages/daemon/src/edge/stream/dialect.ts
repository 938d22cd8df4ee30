/** A dialect: how one wire format writes the records of a log in the body of an HTTP answer. */

import type { Encoder } from "./pump.ts";

export interface StreamFormat {
	/** Headers of the answer, including the content type. */
	readonly headers: Readonly<Record<string, string>>;
	/**
	 * Its encoders keep no state and add nothing but ASCII to the records: a batch is encoded once for all readers. Without it every reader
	 * has its own encoder.
	 */
	readonly shared?: true;
	open(): Encoder<string>;
}
