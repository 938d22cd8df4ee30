/** A message in the inbox: the recorded event with its facts. All stages work on this one shape. */

import { createHash } from "node:crypto";
import type { InboundMessage, Target } from "@nexus-stream/adapter/port";
import { isSameChat } from "@nexus-stream/platforms";
import { newEventId } from "@nexus-stream/protocol";
import type { Disposition, InboundEvent, Origin, StoredAttachment } from "../../ledger/inbox/port.ts";
import type { HookCall, StageTiming } from "../../ledger/turns/port.ts";
import { base64Bytes } from "../../std/content-type.ts";
import { commonRights, GUEST_RIGHTS, OWNER_RIGHTS, type Rights } from "../access/acl.ts";
import type { HookContext, HookRequest } from "../plugins/port.ts";
import {
	agentOf,
	type InboundConfig,
	type InboxLimits,
	interruptingOf,
	queueOf,
	rulesOf,
	sessionOf,
	WEB,
} from "./config.ts";
import { type RunOutcome, responseOf } from "./response.ts";

export type Inbound = ChannelMessage | ClientMessage;

/** A message from a platform. */
export interface ChannelMessage {
	channel: string;
	account: string;
	message: InboundMessage;
	/** Created when the message arrived. Default: a new id. */
	id?: string;
	/** Anyone can write on this platform. Default: true. */
	public?: boolean;
}

/** A message from a client of the daemon's API: the page, the CLI, a program. The caller is authenticated as the owner or an application. */
export interface ClientMessage {
	session: string;
	text: string;
	/** The application that sends it instead of the owner; it has the rights of a guest. */
	app?: string;
	/** Stops the session's run and is answered in its place, whatever the queue mode. */
	interrupt?: boolean;
	attachments?: readonly StoredAttachment[];
	idempotencyKey?: string;
	/** The caller's trace, 32 hex digits; the run becomes a part of it. */
	traceId?: string;
	/** The answer is not streamed. */
	disableStreaming?: boolean;
}

export const isClients = (inbound: Inbound): inbound is ClientMessage => !("message" in inbound);

/** Facts that must survive a restart and have no separate column. */
export type MessageFacts = {
	sender: { id: string; name?: string; owner: boolean };
	chat: { id: string; type: "direct" | "group"; name?: string };
	/** The sender's rights; undefined for the owner's clients and in rows of older versions. */
	rights?: Rights;
	/** The name of the agent that answers. */
	agent: string;
	/** The destination of the answer; undefined when clients read it themselves. */
	target?: Target;
	hooks: {
		context: HookContext;
		/** Texts that plugins add for the agent. */
		attached: string[];
		calls: HookCall[];
	};
	timings: StageTiming[];
	/** When the message was queued. */
	queuedAt: number;
	/** In a summary: facts of the messages that it replaces. */
	summed?: Summed;
	/** With an idempotency key: the digest of the client's message, before plugins changed it. */
	digest?: string;
};

type Summed = {
	/** Not all messages are from the newest one's sender. */
	others: boolean;
	/** One of them came from a group. */
	group: boolean;
	/** The chats of all messages. */
	chats: Destination[];
};

export interface InboxMessage extends InboundEvent {
	origin: Origin;
	facts: MessageFacts;
}

/** The current configuration and time. */
interface Acceptance {
	config: InboundConfig;
	limits: Pick<InboxLimits, "queueMessagesMax">;
	now: number;
}

/** The inbound message in the shape that is recorded. */
export const messageOf = (inbound: Inbound, acceptance: Acceptance): InboxMessage =>
	isClients(inbound) ? ofClient(inbound, acceptance) : ofChannel(inbound, acceptance);

function ofChannel({ channel, account, message, id }: ChannelMessage, acceptance: Acceptance): InboxMessage {
	const { config, now } = acceptance;
	const { from, chat, target } = message;
	const { thread_id: thread } = target;
	const rules = rulesOf(config, channel, account);
	const session = sessionOf(rules.session, { channel, account, chat: chat.id, sender: from.id, thread });
	const sender = { ...from, owner: false };
	return {
		...eventOf({ channel, account, session }, message, acceptance, id),
		origin: { channel, account, sender: from.id, senderName: from.name, sourceId: message.eventId },
		facts: { sender, chat, agent: rules.agent, target, hooks: noHooks(), timings: [], queuedAt: now },
	};
}

function ofClient(message: ClientMessage, acceptance: Acceptance): InboxMessage {
	const { config, limits, now } = acceptance;
	const { session, idempotencyKey, traceId, app } = message;
	const event = eventOf({ channel: WEB, account: WEB, session }, message, acceptance);
	const sender = app === undefined ? OWNER : { id: `app:${app}`, owner: false };
	return {
		...event,
		queue: message.interrupt === true ? interruptingOf(limits.queueMessagesMax) : event.queue,
		idempotencyKey,
		traceId,
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

function eventOf(
	source: { channel: string; account: string; session: string },
	{ text, attachments = [] }: { text: string; attachments?: readonly StoredAttachment[] },
	{ config, limits, now }: Acceptance,
	eventId = newEventId(now),
): InboundEvent {
	const queue = queueOf(config, source, limits.queueMessagesMax);
	return {
		eventId,
		session: source.session,
		text,
		attachments: [...attachments],
		receivedAt: now,
		disposition: { state: "queued" },
		queue,
	};
}

/** The message of a recorded event. An event of an older version with fewer facts counts as the owner's. */
export function recorded(event: InboundEvent): InboxMessage {
	const { facts, origin = { channel: WEB, account: WEB, sender: OWNER.id }, session, receivedAt } = event;
	const defaults: MessageFacts = {
		sender: OWNER,
		chat: { id: session, type: "direct" },
		agent: agentOf({}, WEB, WEB),
		hooks: noHooks(),
		timings: [],
		queuedAt: receivedAt,
	};
	return { ...event, origin, facts: { ...defaults, ...facts } };
}

const digestOf = ({ text, attachments = [] }: ClientMessage): string => {
	const files = attachments.map(({ name, contentType, data }) => [name, contentType, data]);
	return createHash("sha256")
		.update(JSON.stringify([text, files]))
		.digest("base64url");
};

/** The newest message of a run, with the plugins' results for all of them. */
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

/** The rights of a run that answers these messages: those that all of their senders have (A10). */
export const rightsTogether = (messages: readonly InboxMessage[]): Rights =>
	commonRights(messages.map(({ facts }) => recordedRights(facts)));

/** A message of an older version without a recorded sender counts as the owner's. */
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

/** These messages contain text of other people than the sender of this one. */
export const hasOthers = (messages: readonly InboxMessage[], message: InboxMessage): boolean =>
	messages.some((one) => one.facts.summed?.others === true || !isBySame(one, message));

export const isFromGroup = ({ facts: { chat, summed } }: InboxMessage): boolean =>
	chat.type === "group" || summed?.group === true;

/** The destinations of the answer: every chat once, with the target of its newest message. */
export function destinationsOf(messages: readonly InboxMessage[]): Destination[] {
	const found: Destination[] = [];
	for (const { channel, account, target } of messages.flatMap(chatsOf)) {
		// The platform's adapter knows when two addresses name one chat.
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

/** The disposition of a message. */
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

/** Identifies a message that is sent again. */
export function keyOf({ session, idempotencyKey, origin }: InboxMessage): string | undefined {
	if (idempotencyKey !== undefined) return JSON.stringify([session, idempotencyKey]);
	return origin.sourceId === undefined ? undefined : JSON.stringify([origin.channel, origin.account, origin.sourceId]);
}

/** A message as plugins see it: before it is queued, with a run that is about to begin, or with one that has ended. */
export function hookRequestOf(
	{ facts, origin, ...event }: InboxMessage,
	run?: { runId: string; messages: readonly InboxMessage[]; outcome?: RunOutcome },
): HookRequest {
	const { eventId, text, receivedAt, session } = event;
	const { sender, chat, agent, hooks } = facts;
	const files = event.attachments.map(({ name, contentType, data }) => ({
		name,
		contentType,
		bytes: base64Bytes(data),
	}));
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
		disposition: run?.outcome && { state: "started", runId: run.runId },
		response: run?.outcome && responseOf(run.outcome),
	};
}
