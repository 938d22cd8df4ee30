/** A run of the inbox: the messages that it answers, where the answer goes, and the trace of both. */

import { NexusError } from "@nexus-stream/protocol";
import type { Log } from "@nexus-stream/protocol/log";
import type { ExecuteRequest, PassedOn } from "../../broker/broker.ts";
import { type NewDelivery, type Requester, type StageTiming, type Turn, turnWrites } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import type { HistoryRights } from "../access/history.ts";
import type { Outbound } from "../port.ts";
import { destinationsOf, hasOthers, type InboxMessage, isFromGroup, rightsTogether } from "./message.ts";

export interface PreparedRun {
	runId: string;
	/** Oldest first. */
	messages: readonly InboxMessage[];
	/** The newest one, with what plugins said to all of them. */
	message: InboxMessage;
	/** Ids of the deliveries that the answer is owed to. */
	deliveries: string[];
}

/** A delivery, and what puts it on record. */
export interface PlannedDelivery {
	delivery: NewDelivery;
	write: Write;
}

/** The answer is owed from the moment that the run begins: no crash finds one without the other (I7). */
export function plannedDeliveriesOf(
	answer: PreparedRun,
	outbound: Pick<Outbound, "planDelivery">,
	log: Log,
): PlannedDelivery[] {
	const { runId, messages, message } = answer;
	const options = { disableStreaming: message.facts.hooks.context.disable_streaming === true };
	const planned: PlannedDelivery[] = [];
	for (const { channel, account, target } of destinationsOf(messages)) {
		try {
			planned.push(outbound.planDelivery({ account: { channel, id: account }, target, runId, options }));
		} catch (cause) {
			// An answer that has no place to go is no reason not to give it.
			if (!(cause instanceof NexusError)) throw cause;
			log.error({ runId, channel, account, err: cause }, "the answer cannot be delivered");
		}
	}
	answer.deliveries = planned.map(({ delivery }) => delivery.id);
	return planned;
}

/** What the run is told of its messages. The newest one's address is the run's. */
export function requestOf(
	{ runId, messages, message }: PreparedRun,
	approval: ExecuteRequest["approval"],
	history: HistoryRights,
): Omit<ExecuteRequest, "begin" | "settle"> {
	const { origin, facts, session } = message;
	const { channel, account } = origin;
	const { id, name } = facts.sender;
	const { context, attached } = facts.hooks;
	// Of several messages the newest one that is part of a trace names it.
	const traceId = messages.findLast((one) => one.traceId !== undefined)?.traceId;
	const sender = {
		id,
		name,
		channel,
		account,
		group: messages.some(isFromGroup) || undefined,
		amongOthers: hasOthers(messages, message) || undefined,
	};
	return {
		session,
		runId,
		events: [...messages.slice(0, -1), message],
		sender,
		async reads(events) {
			const { hasOthers: isAmongOthers, ...words } = await history.reads(messages, events);
			return { ...words, ...(isAmongOthers && { sender: { ...sender, amongOthers: true } }) };
		},
		agent: facts.agent,
		...permissionsOf(messages),
		...(approval && { approval }),
		requester: requesterOf(messages, message),
		target: facts.target && { ...facts.target, channel, account },
		traceId,
		context: attached.length > 0 ? attached : undefined,
		disableStreaming: context.disable_streaming === true,
	};
}

function permissionsOf(messages: readonly InboxMessage[]): PassedOn {
	const { owner, tools, denied, agents } = rightsTogether(messages);
	return {
		owner,
		...(tools && { allowedTools: tools }),
		...(denied && { deniedTools: denied }),
		...(agents && { allowedAgents: agents }),
	};
}

/** Whom a person would decide for. */
function requesterOf(messages: readonly InboxMessage[], message: InboxMessage): Requester {
	const { origin, facts } = message;
	const { channel, account, sender, senderName } = origin;
	return {
		channel,
		account,
		sender,
		only: !hasOthers(messages, message),
		senderName,
		chat: { id: facts.chat.id, type: facts.chat.type },
		target: facts.target,
	};
}

/** The stages of a settled run. `isWhole`: nothing is to come after the turn. */
export function stagesOf({ startedAt: at, endedAt }: Turn, isWhole: boolean): StageTiming[] {
	const none = ["deliver", "complete"] as const;
	const last = isWhole ? none.map((stage) => ({ stage, at: endedAt, ms: 0 })) : [];
	return [{ stage: "execute", at, ms: endedAt - at }, ...last];
}

/** Puts the way of the message on record, with the stages after `prepare`. */
export const traceWrite = (
	{ runId, message: { origin, facts }, deliveries }: Omit<PreparedRun, "messages">,
	later: readonly StageTiming[],
): Write =>
	turnWrites.retrace(runId, {
		channel: origin.channel,
		account: origin.account,
		sender: facts.sender.id,
		stages: [...facts.timings, ...later],
		hooks: facts.hooks.calls,
		deliveries,
	});
