/** A message on its way: the event that is on record, with what the inbox knows of it. All stages work on this one shape. */

import { createHash } from "node:crypto";
import type { InboundMessage, Target } from "@nexus-stream/adapter/host";
import { isSameChat } from "@nexus-stream/platforms";
import { newEventId } from "@nexus-stream/protocol";
import type { Disposition, HookCall, InboundEvent, Origin, StageTiming, StoredAttachment } from "../../ledger/ledger.ts";
import { commonRights, GUEST_RIGHTS, OWNER_RIGHTS, type Rights } from "../access/rights.ts";
import type { HookContext, HookRequest } from "../plugins/port.ts";
import { agentOf, type InboundConfig, interruptingOf, queueOf, rulesOf, WEB } from "./config.ts";
import type { InboxLimits } from "./limits.ts";
import { type RunOutcome, responseOf } from "./response.ts";
import { sessionOf } from "./session.ts";

/** What comes in. */
export type Inbound = ChannelMessage | ClientMessage;

/** From a platform. */
export interface ChannelMessage {
	channel: string;
	account: string;
	message: InboundMessage;
	/** Made when it arrived; left out, it arrives now. */
	id?: string;
	/** Anybody can write on this platform. Default: true. */
	public?: boolean;
}

/** From a client of the daemon itself: the page, the CLI, a program. Its caller has proven to be the owner, or an application. */
export interface ClientMessage {
	session: string;
	text: string;
	/** The application that speaks, and not the owner: its words reach what a guest's do. */
	app?: string;
	/** Stops the session's run and is answered in its place, whatever the session's queue is. */
	interrupt?: boolean;
	attachments?: readonly StoredAttachment[];
	idempotencyKey?: string;
	/** The caller's trace, 32 hex digits: its run is a part of it. */
	traceId?: string;
	/** The answer is to come in one piece. */
	disableStreaming?: boolean;
}

export const isClients = (inbound: Inbound): inbound is ClientMessage => !("message" in inbound);

/** What has to survive a restart and has no column of its own. */
export type MessageFacts = {
	sender: { id: string; name?: string; owner: boolean };
	chat: { id: string; type: "direct" | "group"; name?: string };
	/** What the sender's words may reach; left out by a version that did not know of it, and for clients of the daemon. */
	rights?: Rights;
	/** The name of the agent that answers. */
	agent: string;
	/** Where the answer is pushed to; undefined: clients pull it. */
	target?: Target;
	hooks: {
		context: HookContext;
		/** What the agent is told beside the message. */
		attached: string[];
		calls: HookCall[];
	};
	timings: StageTiming[];
	/** When it was handed to the queue. */
	queuedAt: number;
	/** Of a summary: what the messages in it have beside the newest one. */
	summed?: Summed;
	/** With an idempotency key: the digest of what the client sent, before plugins changed it. */
	digest?: string;
};

type Summed = {
	/** They are not all by the newest one's sender. */
	others: boolean;
	/** One of them came from a group. */
	group: boolean;
	/** Every chat that they came from. */
	chats: Destination[];
};

export interface InboxMessage extends InboundEvent {
	origin: Origin;
	facts: MessageFacts;
}

/** How messages are taken in now. */
interface Manner {
	config: InboundConfig;
	limits: Pick<InboxLimits, "queueMessagesMax">;
	now: number;
}

/** The message that came in, as it is to be recorded. */
export const messageOf = (inbound: Inbound, manner: Manner): InboxMessage =>
	isClients(inbound) ? ofClient(inbound, manner) : ofChannel(inbound, manner);

function ofChannel({ channel, account, message, id }: ChannelMessage, manner: Manner): InboxMessage {
	const { config, now } = manner;
	const { from, chat, target } = message;
	const { thread_id: thread } = target;
	const rules = rulesOf(config, channel, account);
	const place = { channel, account, chat: chat.id, sender: from.id, thread };
	const session = sessionOf(rules.session, place);
	const sender = { ...from, owner: false };
	return {
		...begun({ channel, account, session }, message, manner),
		...(id !== undefined && { eventId: id }),
		origin: { channel, account, sender: from.id, senderName: from.name, sourceId: message.eventId },
		facts: { sender, chat, agent: rules.agent, target, hooks: noHooks(), timings: [], queuedAt: now },
	};
}

function ofClient(message: ClientMessage, manner: Manner): InboxMessage {
	const { config, limits, now } = manner;
	const { session, idempotencyKey, traceId, app } = message;
	const sender = app === undefined ? OWNER : { id: `app:${app}`, owner: false };
	return {
		...begun({ channel: WEB, account: WEB, session }, message, manner),
		...(message.interrupt === true && { queue: interruptingOf(limits.queueMessagesMax) }),
		...(idempotencyKey !== undefined && { idempotencyKey }),
		...(traceId !== undefined && { traceId }),
		origin: { channel: WEB, account: WEB, sender: sender.id },
		facts: {
			sender,
			rights: app === undefined ? undefined : GUEST_RIGHTS,
			chat: { id: session, type: "direct" },
			agent: agentOf(config, WEB, WEB),
			hooks: noHooks(message.disableStreaming === true ? { disable_streaming: true } : {}),
			timings: [],
			queuedAt: now,
			digest: idempotencyKey === undefined ? undefined : digestOf(message),
		},
	};
}

const OWNER = { id: "owner", owner: true };

const noHooks = (context: HookContext = {}): MessageFacts["hooks"] => ({ context, attached: [], calls: [] });

function begun(
	place: { channel: string; account: string; session: string },
	{ text, attachments = [] }: { text: string; attachments?: readonly StoredAttachment[] },
	{ config, limits, now }: Manner,
): InboundEvent {
	const queue = queueOf(config, place, limits.queueMessagesMax);
	return {
		eventId: newEventId(now),
		session: place.session,
		text,
		attachments: [...attachments],
		receivedAt: now,
		disposition: { state: "queued" },
		queue,
	};
}

/** An event that is on record. One of a version that kept less of it counts as the owner's. */
export function recorded(event: InboundEvent): InboxMessage {
	const { facts, origin = { channel: WEB, account: WEB, sender: OWNER.id }, session, receivedAt } = event;
	const little: MessageFacts = {
		sender: OWNER,
		chat: { id: session, type: "direct" },
		agent: agentOf({}, WEB, WEB),
		hooks: noHooks(),
		timings: [],
		queuedAt: receivedAt,
	};
	return { ...event, origin, facts: { ...little, ...facts } };
}

const digestOf = ({ text, attachments = [] }: ClientMessage): string => {
	const files = attachments.map(({ name, contentType, data }) => [name, contentType, data]);
	return createHash("sha256")
		.update(JSON.stringify([text, files]))
		.digest("base64url");
};

/** What a run answers: the newest of its messages, with what plugins said to all of them. */
export function together(messages: readonly InboxMessage[], now: number): InboxMessage {
	const newest = messages.at(-1)!;
	const { timings, queuedAt } = newest.facts;
	const hooks = messages.map(({ facts }) => facts.hooks);
	return {
		...newest,
		facts: {
			...newest.facts,
			hooks: {
				context: Object.assign({}, ...hooks.map(({ context }) => context)) as HookContext,
				attached: hooks.flatMap(({ attached }) => attached),
				calls: hooks.flatMap(({ calls }) => calls),
			},
			timings: [...timings, { stage: "queue", at: queuedAt, ms: now - queuedAt }],
		},
	};
}

/** What a run that answers these messages may do: what every one of their senders may (A10). */
export const rightsTogether = (messages: readonly InboxMessage[]): Rights =>
	commonRights(messages.map(({ facts }) => recordedRights(facts)));

/** What is on record of one of a version that kept less counts as the owner's. */
export const recordedRights = ({ sender = OWNER, rights }: Partial<MessageFacts>): Rights =>
	rights ?? (sender.owner ? OWNER_RIGHTS : GUEST_RIGHTS);

export type Destination = {
	channel: string;
	account: string;
	target: Target;
};

export const isBySame = (one: InboxMessage, other: InboxMessage): boolean =>
	one.facts.sender.id === other.facts.sender.id &&
	one.origin.channel === other.origin.channel &&
	one.origin.account === other.origin.account;

/** Others have words in these messages than the sender of this one. */
export const hasOthers = (messages: readonly InboxMessage[], message: InboxMessage): boolean =>
	messages.some((one) => one.facts.summed?.others === true || !isBySame(one, message));

export const isFromGroup = ({ facts: { chat, summed } }: InboxMessage): boolean =>
	chat.type === "group" || summed?.group === true;

/** Where the answer to these messages goes: every chat once, as the newest message from it asks. */
export function destinationsOf(messages: readonly InboxMessage[]): Destination[] {
	const found: Destination[] = [];
	for (const { channel, account, target } of messages.flatMap(chatsOf)) {
		// Two addresses may name one chat, as the platform's adapter knows.
		const isSame = (one: Destination) =>
			one.channel === channel && one.account === account && isSameChat(channel, one.target, target);
		const known = found.findIndex(isSame);
		found.splice(known < 0 ? found.length : known, 1, { channel, account, target });
	}
	return found;
}

function chatsOf({ origin: { channel, account }, facts: { target, summed } }: InboxMessage): Destination[] {
	return [...(summed?.chats ?? []), ...(target ? [{ channel, account, target }] : [])];
}

/** What became of a message. */
export interface Accepted {
	eventId: string;
	disposition: Disposition;
	runId?: string;
}

export function acceptedOf({ eventId, disposition }: InboundEvent): Accepted {
	const accepted: Accepted = { eventId, disposition };
	if ("runId" in disposition) accepted.runId = disposition.runId;
	return accepted;
}

/** What the same message has again when it is sent again. */
export function keyOf({ session, idempotencyKey, origin }: InboxMessage): string | undefined {
	if (idempotencyKey !== undefined) return JSON.stringify([session, idempotencyKey]);
	return origin.sourceId === undefined ? undefined : JSON.stringify([origin.channel, origin.account, origin.sourceId]);
}

/** Of base64 text, without decoding it. */
const bytesOf = (data: string): number => Math.floor((data.replace(/=+$/, "").length * 3) / 4);

/** A message as plugins see it: on its own, as a run that is about to begin, or as one that has ended. */
export function hookRequestOf(
	{ facts, origin, ...event }: InboxMessage,
	run?: { runId: string; messages: readonly InboxMessage[]; outcome?: RunOutcome },
): HookRequest {
	const { eventId, text, receivedAt, session } = event;
	const { sender, chat, agent, hooks } = facts;
	const files = event.attachments.map(({ name, contentType, data }) => ({ name, contentType, bytes: bytesOf(data) }));
	const batch = run && run.messages.length > 1 && run.messages.map((one) => ({ eventId: one.eventId, text: one.text }));
	return {
		event: { eventId, text, receivedAt, attachments: files, batch: batch || undefined },
		channel: origin.channel,
		account: origin.account,
		sender,
		chat,
		session,
		agent,
		hooks: { context: hooks.context },
		runId: run?.runId,
		...(run?.outcome && {
			disposition: { state: "started", runId: run.runId } as const,
			response: responseOf(run.outcome),
		}),
	};
}
