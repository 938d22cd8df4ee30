/** What is still sent to a chat whose adapter knows only the basic fields and stopped half-way: nothing that it may have shown is said again (ADR 17). */

import { speaks } from "../../accounts/account.ts";
import { isAttachmentNonce } from "../attachments/attachment-nonce.ts";
import type { DeliveryContext, DeliveryOutcome } from "../delivery-context.ts";
import type { LiveDelivery } from "../live-delivery.ts";
import { isEnd, readSource } from "../source.ts";

/** Adapters that report neither intents nor positions leave nothing to go on from. */
export const isResumable = ({ info }: DeliveryContext): boolean => speaks(info, "intent") && speaks(info, "offset");

const textsOf = ({ row }: LiveDelivery) => row.messages.filter(({ nonce }) => !isAttachmentNonce(nonce));

/** Certainly none of its text is on the platform. */
export const isUnshown = (live: LiveDelivery): boolean => live.given === 0 && textsOf(live).length === 0;

/** How far the platform shows the text, by what the adapter counted of each message; undefined when it left one out. */
export function countedTo(live: LiveDelivery): number | undefined {
	const texts = textsOf(live);
	const counted = texts.every(({ shown }) => shown !== undefined) ? texts.at(-1)?.shown : undefined;
	return counted !== undefined && counted <= (live.given ?? counted) ? counted : undefined;
}

/** The process or the daemon died: all that it was given may be shown. */
export async function leaveHalfShown(context: DeliveryContext): Promise<DeliveryOutcome> {
	const { live, info } = context;
	if (!info.supports.includes("send")) return inDoubt(live);
	const given = live.given ?? (await heldInLog(context));
	if (context.signal.aborted) return { state: "left" };
	live.given = given;
	markReach(live, countedTo(live), given);
	return { state: "degraded", error: CANNOT_TELL };
}

/** The adapter gave up by itself: what it reported, it reported in order, so it tells what is shown. Undefined: nothing is. */
export function leaveRefused({ live, info }: DeliveryContext, error: string): DeliveryOutcome | undefined {
	if (textsOf(live).length === 0) return undefined;
	if (!info.supports.includes("send")) return { ...inDoubt(live), error };
	const counted = countedTo(live);
	markReach(live, counted, counted ?? live.given ?? 0);
	return { state: "degraded", error };
}

/** Its open message stays as it is. What lies between what is known to be shown and what may be is a message in doubt. */
function markReach(live: LiveDelivery, shown: number | undefined, reach: number): void {
	// With what follows: a crash in between would take all of the log for shown.
	live.change("setMode", "blocks");
	const open = live.unfinished;
	if (open?.state === "open") live.abandon(shown === undefined ? { ...open, shown: open.from } : open);
	else if (open) live.change("doubt", open.nonce);
	const { cursor } = live.row;
	if (reach <= cursor || shown === reach) return;
	const { ordinal, nonce } = live.next();
	live.intend({ ordinal, nonce, from: cursor, to: reach });
	live.change("doubt", nonce);
}

const CANNOT_TELL =
	"The adapter ended while it was writing, and cannot tell what the platform shows. " +
	"Adapters with the fields intent and offset can be resumed.";

function inDoubt(live: LiveDelivery): { state: "unknown"; error: string } {
	for (const { state, nonce } of live.row.messages)
		if (state === "intended" || state === "open") live.change("doubt", nonce);
	return { state: "unknown", error: CANNOT_TELL };
}

/** What an earlier daemon can have handed out: no record is handed out before it is in the log (I1). */
async function heldInLog({ live, bus, signal, log }: DeliveryContext): Promise<number> {
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

/** Some of its text may or may not be on the platform. */
export const doubtOf = ({ row }: LiveDelivery): string | undefined =>
	row.messages.some(({ state, nonce }) => state === "unknown" && !isAttachmentNonce(nonce)) ? CANNOT_TELL : undefined;

/** The text that is sent next goes on behind a message that was left half-way, without positions: where that one ends is not known for certain. */
export function goesOnBlindly({ live, info }: DeliveryContext): boolean {
	const last = textsOf(live).at(-1);
	return !speaks(info, "offset") && (last?.state === "unknown" || last?.abandoned === true);
}

/** At its beginning markdown has a meaning that it would lose behind a sign. */
const BLOCK_MARK = /^(?:`{3}|~{3}|[#>|]|[-*+]\s|\d+[.)]\s)/;

/** A text that goes on in a new message. */
export function continuedText(text: string): string {
	const rest = text.trimStart();
	return `…${BLOCK_MARK.test(rest) ? "\n\n" : " "}${rest}`;
}
