/** Pages, places and reasons in requests. */

import { NexusError } from "../../protocol/protocol.ts";

const PAGE_SIZE_DEFAULT = 50;

/** 0 is "not said". */
export function pageSizeOf(size: number, most: number): number {
	if (size < 0) throw new NexusError("invalid", "page_size: a page has one item or more");
	return Math.min(size === 0 ? PAGE_SIZE_DEFAULT : size, most);
}

/** A sequence that a stream or a list has told. */
export function placeOf(sequence: bigint): number {
	if (sequence <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(sequence);
	throw new NexusError("invalid", `${sequence} is no sequence of this stream`);
}

/** As over HTTP: it is kept with what was cancelled. */
const REASON_CHARS_MAX = 1000;

export function checkedReason(reason: string): string {
	if (reason.length <= REASON_CHARS_MAX) return reason;
	throw new NexusError("invalid", `reason: at most ${REASON_CHARS_MAX} characters`);
}
