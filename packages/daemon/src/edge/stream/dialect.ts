/** What a dialect is: how one wire spells the records of a log in the body of an HTTP answer. */

import type { Encoder } from "./pump.ts";

export interface StreamFormat {
	/** Of the answer, the content type among them. */
	readonly headers: Readonly<Record<string, string>>;
	/**
	 * Its encoders keep no state and add nothing but ASCII to the records: a batch is encoded once for all readers. Without it every reader
	 * has an encoder of its own.
	 */
	readonly shared?: true;
	open(): Encoder<string>;
}
