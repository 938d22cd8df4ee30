/** Pages, places and reasons in requests. */

import { isIdOf, NexusError } from "@nexus-stream/protocol";

const PAGE_SIZE_DEFAULT = 50;

/** 0 is "not said". */
export function pageSizeOf(size: number, most: number, field = "page_size"): number {
	if (size < 0) throw new NexusError("invalid", `${field}: a page has one item or more`);
	return Math.min(size === 0 ? PAGE_SIZE_DEFAULT : size, most);
}

/** What `next_page_token` said, which is the id of the last item; empty begins at the newest. */
export function pageTokenOf(token: string, prefix: string): { before?: string } {
	if (token === "") return {};
	if (isIdOf(prefix, token)) return { before: token };
	throw new NexusError("invalid", "page_token: take next_page_token as the page before gave it");
}

/** A sequence that a stream or a list has told. */
export function sequenceNumberOf(sequence: bigint): number {
	if (sequence <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(sequence);
	throw new NexusError("invalid", `${sequence} is larger than any sequence`);
}

/** As over HTTP: it is kept with what was cancelled. */
const REASON_CHARS_MAX = 1000;

export function checkedReason(reason: string): string {
	if (reason.length <= REASON_CHARS_MAX) return reason;
	throw new NexusError("invalid", `reason: at most ${REASON_CHARS_MAX} characters`);
}

/** Where a reader begins; undefined: where the stream begins for one that does not say (Z3). */
export const afterOf = (after: bigint | undefined): number | undefined =>
	after === undefined ? undefined : sequenceNumberOf(after);
