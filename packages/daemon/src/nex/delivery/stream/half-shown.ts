/** Continues after an adapter with only the basic fields stopped halfway: text that it may have shown is never sent again (ADR 17). */

import { speaks } from "../../accounts/account.ts";
import { isAttachmentNonce } from "../attachments/attachment-nonce.ts";
import type { DeliveryContext, DeliveryOutcome } from "../delivery-context.ts";
import type { LiveDelivery } from "../live-delivery.ts";
import { isEnd, readSource } from "../source.ts";

/** A delivery can be resumed only when its adapter reports intents and positions. */
export const isResumable = ({ info }: DeliveryContext): boolean => speaks(info, "intent") && speaks(info, "offset");

const textsOf = ({ row }: LiveDelivery) => row.messages.filter(({ nonce }) => !isAttachmentNonce(nonce));

/** The platform certainly shows none of the text. */
export const isUnshown = (live: LiveDelivery): boolean => live.given === 0 && textsOf(live).length === 0;

/** How far the platform shows the text, by the adapter's character counts; undefined when one count is missing. */
export function countedTo(live: LiveDelivery): number | undefined {
	const texts = textsOf(live);
	const counted = texts.every(({ shown }) => shown !== undefined) ? texts.at(-1)?.shown : undefined;
	return counted !== undefined && counted <= (live.given ?? counted) ? counted : undefined;
}

/** The process or the daemon died: the platform may show everything that the process was given. */
export async function leaveHalfShown(context: DeliveryContext): Promise<DeliveryOutcome> {
	const { live, info } = context;
	if (!info.supports.includes("send")) return inDoubt(live);
	const given = live.given ?? (await loggedLength(context));
	if (context.signal.aborted) return { state: "left" };
	live.given = given;
	markReach(live, countedTo(live), given);
	return { state: "degraded", error: CANNOT_TELL };
}

/** The adapter gave up by itself, so its reports show what the platform shows. Undefined: nothing is shown. */
export function leaveRefused({ live, info }: DeliveryContext, error: string): DeliveryOutcome | undefined {
	if (textsOf(live).length === 0) return undefined;
	if (!info.supports.includes("send")) return { ...inDoubt(live), error };
	const counted = countedTo(live);
	markReach(live, counted, counted ?? live.given ?? 0);
	return { state: "degraded", error };
}

/** Abandons the open message. The text between what is certainly shown and what may be shown becomes a message in doubt. */
function markReach(live: LiveDelivery, shown: number | undefined, reach: number): void {
	// Recorded with the changes below: after a crash in between, the whole log would count as shown.
	live.setMode("blocks");
	const open = live.unfinished;
	if (open?.state === "open") live.abandon(shown === undefined ? { ...open, shown: open.from } : open);
	else if (open) live.doubt(open.nonce);
	const { cursor } = live.row;
	if (reach <= cursor || shown === reach) return;
	const { ordinal, nonce } = live.next();
	live.intend({ ordinal, nonce, from: cursor, to: reach });
	live.doubt(nonce);
}

const CANNOT_TELL =
	"The adapter ended while it was writing, and cannot tell what the platform shows. " +
	"Adapters with the fields intent and offset can be resumed.";

function inDoubt(live: LiveDelivery): { state: "unknown"; error: string } {
	for (const { state, nonce } of live.row.messages) if (state === "intended" || state === "open") live.doubt(nonce);
	return { state: "unknown", error: CANNOT_TELL };
}

/** The most that an earlier daemon can have written to its process: no record is written before it is in the log (I1). */
async function loggedLength({ live, bus, signal, log }: DeliveryContext): Promise<number> {
	const { runId } = live.row;
	const head = (await bus.describe(runId))?.head ?? 0;
	let reach = 0;
	for await (const events of readSource(bus, runId, { position: 0, signal, log })) {
		for (const { event, offset, position } of events) {
			if (event.type === "token" && offset <= head) reach = position + event.text.length;
			if (isEnd(event) || offset >= head) return reach;
		}
	}
	return reach;
}

/** Why it is unknown whether the platform shows a part of the text. */
export const doubtOf = ({ row }: LiveDelivery): string | undefined =>
	row.messages.some(({ state, nonce }) => state === "unknown" && !isAttachmentNonce(nonce)) ? CANNOT_TELL : undefined;

/** The next text follows a message that was abandoned halfway by an adapter without positions, so its exact end is unknown. */
export function continuesBlindly({ live, info }: DeliveryContext): boolean {
	const last = textsOf(live).at(-1);
	return !speaks(info, "offset") && (last?.state === "unknown" || last?.abandoned === true);
}

/** Markdown that has its meaning only at the beginning of a line. */
const BLOCK_MARK = /^(?:`{3}|~{3}|[#>|]|[-*+]\s|\d+[.)]\s)/;

/** Marks a text that continues in a new message. */
export function continuedText(text: string): string {
	const rest = text.trimStart();
	return `…${BLOCK_MARK.test(rest) ? "\n\n" : " "}${rest}`;
}
