/** A run of the inbox: the messages that it answers, the destinations of the answer, and the trace of both. */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { ExecuteRequest, PassedOn } from "../../broker/broker.ts";
import type { Requester } from "../../ledger/approvals/port.ts";
import { type StageTiming, type Turn, turnWrites } from "../../ledger/turns/port.ts";
import type { Write } from "../../std/write.ts";
import type { HistoryRights } from "../access/history.ts";
import type { DeliveryPort, PlannedDelivery } from "../port.ts";
import { destinationsOf, hasOthers, type InboxMessage, isFromGroup, rightsTogether } from "./message.ts";

export interface PreparedRun {
	runId: string;
	/** Oldest first. */
	messages: readonly InboxMessage[];
	/** The newest message, with the plugins' results for all of them. */
	message: InboxMessage;
	/** Ids of the planned deliveries. */
	deliveries: string[];
}

/** Plans the deliveries that commit with the run's begin, so that neither exists without the other after a crash (I7). */
export function plannedDeliveriesOf(
	answer: PreparedRun,
	outbound: Pick<DeliveryPort, "planDelivery">,
	log: Log,
): PlannedDelivery[] {
	const { runId, messages, message } = answer;
	const options = { disableStreaming: message.facts.hooks.context.disable_streaming === true };
	const planned: PlannedDelivery[] = [];
	for (const { channel, account, target } of destinationsOf(messages)) {
		try {
			planned.push(outbound.planDelivery({ account: { channel, id: account }, target, runId, options }));
		} catch (cause) {
			// The run still answers when one of its destinations is not available.
			if (!(cause instanceof NexusError)) throw cause;
			log.error({ runId, channel, account, err: cause }, "the answer cannot be delivered");
		}
	}
	answer.deliveries = planned.map(({ delivery }) => delivery.id);
	return planned;
}

/** The broker's request for a run. The newest message defines its sender and target. */
export function requestOf(
	{ runId, messages, message }: PreparedRun,
	approval: ExecuteRequest["approval"],
	history: HistoryRights,
): Omit<ExecuteRequest, "begin" | "settle"> {
	const { origin, facts, session } = message;
	const { channel, account } = origin;
	const { id, name } = facts.sender;
	const { context, attached } = facts.hooks;
	// The newest message that is part of a trace defines the trace.
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
			const { hasOthers: isAmongOthers, ...limits } = await history.reads(messages, events);
			return isAmongOthers ? { ...limits, sender: { ...sender, amongOthers: true } } : limits;
		},
		agent: facts.agent,
		...permissionsOf(messages),
		approval,
		requester: requesterOf(messages, message),
		target: facts.target && { ...facts.target, channel, account },
		traceId,
		context: attached.length > 0 ? attached : undefined,
		disableStreaming: context.disable_streaming === true,
	};
}

function permissionsOf(messages: readonly InboxMessage[]): PassedOn {
	const { owner, tools, denied, agents } = rightsTogether(messages);
	return { owner, allowedTools: tools, deniedTools: denied, allowedAgents: agents };
}

/** The person whose request an approver decides on. */
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

/** The stages of a settled run. `isComplete`: no stage follows the turn. */
export function stagesOf({ startedAt: at, endedAt }: Turn, isComplete: boolean): StageTiming[] {
	const skipped = ["deliver", "complete"] as const;
	const last = isComplete ? skipped.map((stage) => ({ stage, at: endedAt, ms: 0 })) : [];
	return [{ stage: "execute", at, ms: endedAt - at }, ...last];
}

/** Records the trace of a message, with the stages after `prepare`. */
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

/** Runs the work and adds its duration to the timings, also when it fails. */
export function timed<T>(timings: StageTiming[], stage: StageTiming["stage"], clock: Clock, work: () => T): T {
	const at = clock.now();
	const add = () => void timings.push({ stage, at, ms: clock.now() - at });
	let result: T;
	try {
		result = work();
	} catch (cause) {
		add();
		throw cause;
	}
	if (result instanceof Promise) return result.finally(add) as T;
	add();
	return result;
}
