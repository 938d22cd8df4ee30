/** Records a message that decides an approval, and replies to its sender (A12). */

import type { Bus } from "../../bus/bus.ts";
import { type InboundEvent, inboxWrites } from "../../ledger/inbox/port.ts";
import type { Destination, InboxMessage } from "../inbox/message.ts";
import type { ChatApprovals } from "./approvals.ts";

export interface DecisionDeps {
	approvals: Pick<ChatApprovals, "takeMessage">;
	bus: Pick<Bus, "write">;
	tell(to: Destination, text: string): void;
}

/** Undefined: the message is for the agent. */
export async function takeDecision(
	{ approvals, bus, tell }: DecisionDeps,
	message: InboxMessage,
	writeMsMax: number,
): Promise<InboundEvent | undefined> {
	const { origin, facts } = message;
	const { channel, account, sender, senderName } = origin;
	const person = { channel, account, sender, senderName, chat: facts.chat };
	const outcome = await approvals.takeMessage(person, message.text);
	if (!outcome) return undefined;
	const { because, reply } = outcome;
	const event: InboundEvent = { ...message, attachments: [], disposition: { state: "answered", because } };
	await bus.write([inboxWrites.accept(event)], writeMsMax);
	if (reply !== undefined && facts.target) tell({ channel, account, target: facts.target }, reply);
	return event;
}
