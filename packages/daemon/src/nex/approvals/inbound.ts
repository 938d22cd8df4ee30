/** A message that decides what a run waits for: on record as such, and its sender is told what became of it (A12). */

import type { Bus } from "../../bus/bus.ts";
import { type InboundEvent, inboxWrites } from "../../ledger/ledger.ts";
import type { Destination, InboxMessage } from "../inbox/message.ts";
import type { ChatApprovals } from "./approvals.ts";

export interface DecisionDeps {
	approvals: Pick<ChatApprovals, "takeMessage">;
	bus: Pick<Bus, "write">;
	tell(place: Destination, text: string): void;
}

/** Undefined: the message is for the agent. */
export async function takeDecision(
	{ approvals, bus, tell }: DecisionDeps,
	message: InboxMessage,
	writeMsMax: number,
): Promise<InboundEvent | undefined> {
	const { origin, facts } = message;
	const { channel, account, sender, senderName } = origin;
	const named = senderName === undefined ? {} : { senderName };
	const heard = await approvals.takeMessage({ channel, account, sender, ...named, chat: facts.chat }, message.text);
	if (!heard) return undefined;
	const { because, said } = heard;
	const event: InboundEvent = { ...message, attachments: [], disposition: { state: "answered", because } };
	await bus.write([inboxWrites.accept(event)], writeMsMax);
	if (said !== undefined && facts.target) tell({ channel, account, target: facts.target }, said);
	return event;
}
