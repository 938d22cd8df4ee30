/** The one object that passes all stages: a message, who it is from, where its answer goes, and what happened to it so far. */

import { createHash } from "node:crypto";
import type { InboundMessage, Target } from "../../adapter/adapter.ts";
import type { Submission } from "../../broker/broker.ts";
import type {
	Disposition,
	HookCall,
	InboundEvent,
	Origin,
	QueueSettings,
	StageTiming,
	StoredAttachment,
	Trace,
} from "../../ledger/ledger.ts";
import type { HookContext, HookRequest } from "../hooks/port.ts";
import { WEB } from "./config.ts";
import { type Outcome, responseOf } from "./response.ts";

/** A message from a platform. */
export interface ChannelMessage {
	channel: string;
	account: string;
	message: InboundMessage;
	/** Anybody can write on this platform. Default: true. */
	public?: boolean;
}

/** A message from a client of the daemon itself: the page, the CLI, a program. Its caller has proven to be the owner. */
export type ApiSubmission = Pick<
	Submission,
	"session" | "text" | "attachments" | "idempotencyKey" | "traceId" | "disableStreaming"
>;

export interface NexusRequest {
	event: {
		eventId: string;
		text: string;
		attachments: readonly StoredAttachment[];
		receivedAt: number;
		/** The platform's id of the message. */
		sourceId?: string;
		idempotencyKey?: string;
		/** With a key: the digest of what the client sent, before plugins changed it. */
		digest?: string;
		/** The caller's trace. */
		traceId?: string;
		/** The messages that this one is answered with, oldest first, itself included. */
		batch?: readonly { eventId: string; text: string }[];
	};
	channel: string;
	account: string;
	sender: { id: string; name?: string; owner: boolean };
	chat: { id: string; type: "direct" | "group"; name?: string };
	session: string;
	routing: {
		agent: string;
		/** Where the answer is pushed to; undefined: clients pull it. */
		target?: Target;
		queue?: QueueSettings;
	};
	hooks: {
		context: HookContext;
		/** What the agent is told beside the message. */
		attached: string[];
		calls: HookCall[];
	};
	timings: StageTiming[];
	disposition?: Disposition;
	runId?: string;
	deliveries: string[];
}

type Named = Pick<NexusRequest, "session" | "routing"> & { eventId: string; receivedAt: number };

const begun = (context: HookContext = {}): Pick<NexusRequest, "hooks" | "timings" | "deliveries"> => ({
	...{ hooks: { context, attached: [], calls: [] }, timings: [], deliveries: [] },
});

export function requestOfMessage({ channel, account, message }: ChannelMessage, named: Named): NexusRequest {
	const { eventId, receivedAt, session, routing } = named;
	const { text, attachments = [], from, chat } = message;
	return {
		event: { eventId, text, attachments, receivedAt, sourceId: message.eventId },
		...{ channel, account, session, routing, chat },
		sender: { ...from, owner: false },
		...begun(),
	};
}

export function requestOfSubmission(submission: ApiSubmission, named: Named): NexusRequest {
	const { eventId, receivedAt, session, routing } = named;
	const { text, attachments = [], idempotencyKey, traceId } = submission;
	return {
		event: {
			...{ eventId, text, attachments, receivedAt },
			...(idempotencyKey !== undefined && { idempotencyKey, digest: digestOf(submission) }),
			...(traceId !== undefined && { traceId }),
		},
		...{ channel: WEB, account: WEB, session, routing, chat: { id: session, type: "direct" } },
		sender: { id: "owner", owner: true },
		...begun(submission.disableStreaming === true ? { disable_streaming: true } : {}),
	};
}

export const originOf = ({ channel, account, sender, event }: NexusRequest): Origin => ({
	...{ channel, account, sender: sender.id },
	...(sender.name !== undefined && { senderName: sender.name }),
	...(event.sourceId !== undefined && { sourceId: event.sourceId }),
});

/** What has to survive a restart and stands in no column of its own. */
type Facts = Pick<NexusRequest, "sender" | "chat" | "hooks" | "timings"> & {
	agent: string;
	target?: Target;
	/** When it was handed to the queue. */
	queuedAt: number;
	digest?: string;
};

export function factsOf({ event, sender, chat, hooks, timings, routing }: NexusRequest, now: number): Facts {
	const { agent, target } = routing;
	const { digest } = event;
	return {
		...{ sender, chat, hooks, timings, agent, queuedAt: now },
		...(target && { target }),
		...(digest !== undefined && { digest }),
	};
}

const digestOf = ({ text, attachments = [] }: ApiSubmission): string => {
	const files = attachments.map(({ name, contentType, data }) => [name, contentType, data]);
	return createHash("sha256")
		.update(JSON.stringify([text, files]))
		.digest("base64url");
};

/** An event of a version that kept no digest counts as the same: nobody can tell any more. */
export function isSameSubmission(event: InboundEvent, submission: ApiSubmission): boolean {
	const { digest } = (event.facts ?? {}) as Partial<Facts>;
	return digest === undefined || digest === digestOf(submission);
}

/** The request of a run: the newest of its messages, with what plugins said to all of them. */
export function requestOfRun(runId: string, events: readonly InboundEvent[], now: number): NexusRequest | undefined {
	const newest = events.at(-1)!;
	const { facts, origin, queue } = newest;
	if (!facts || !origin) return undefined;
	const { sender, chat, timings, agent, target, queuedAt } = facts as unknown as Facts;
	const hooks = events.flatMap((event) => (event.facts ? [(event.facts as unknown as Facts).hooks] : []));
	const { eventId, text, attachments, receivedAt } = newest;
	return {
		event: {
			...{ eventId, text, attachments, receivedAt },
			...(events.length > 1 && { batch: events.map((event) => ({ eventId: event.eventId, text: event.text })) }),
		},
		...{ channel: origin.channel, account: origin.account, sender, chat, session: newest.session },
		routing: { agent, ...(target && { target }), ...(queue && { queue }) },
		hooks: {
			context: Object.assign({}, ...hooks.map((one) => one.context)) as HookContext,
			attached: hooks.flatMap((one) => one.attached),
			calls: hooks.flatMap((one) => one.calls),
		},
		timings: [...timings, { stage: "queue", at: queuedAt, ms: now - queuedAt }],
		...{ runId, deliveries: [] },
	};
}

export interface Destination {
	channel: string;
	account: string;
	target: Target;
}

/** Where the answer to these messages goes: every chat once, as the newest message from it asks. */
export function destinationsOf(events: readonly InboundEvent[]): Destination[] {
	const found = new Map<string, Destination>();
	for (const { origin, facts } of events) {
		const target = (facts as unknown as Facts | undefined)?.target;
		if (!origin || !target) continue;
		const { channel, account } = origin;
		found.set(JSON.stringify([channel, account, target.to, target.thread_id]), { channel, account, target });
	}
	return [...found.values()];
}

export const traceOf = ({ channel, account, sender, timings, hooks, deliveries }: NexusRequest): Trace => ({
	...{ channel, account, sender: sender.id, stages: timings, hooks: hooks.calls, deliveries },
});

/** Of base64 text, without decoding it. */
const bytesOf = (data: string): number => Math.floor((data.replace(/=+$/, "").length * 3) / 4);

export function hookRequestOf(request: NexusRequest, outcome?: Outcome): HookRequest {
	const { event, channel, account, sender, chat, session, routing, hooks, runId, disposition } = request;
	const { eventId, text, receivedAt, batch } = event;
	const files = event.attachments.map(({ name, contentType, data }) => ({ name, contentType, bytes: bytesOf(data) }));
	return {
		event: { eventId, text, receivedAt, attachments: files, ...(batch && { batch }) },
		...{ channel, account, sender, chat, session, agent: routing.agent, hooks: { context: hooks.context } },
		...(runId !== undefined && { runId }),
		...(disposition && { disposition }),
		...(outcome && { response: responseOf(outcome) }),
	};
}
