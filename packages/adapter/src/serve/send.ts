/** The `send` verb: every line becomes the messages it needs, in order within a chat, each created once. */

import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import { sleep } from "@nexus-stream/protocol/retry";
import { factsOf } from "../draft/perform.ts";
import { splitAll } from "../markdown/split.ts";
import { pieceNonce } from "../nonce.ts";
import { harmless, PlatformError } from "../platform/platform-error.ts";
import type { CreatedMessage, SendOptions } from "../platform/session.ts";
import type { DeliveryFields, LineDone, Question, SendLine, Target } from "../port.ts";
import { buttonsFault, questionFault } from "../question.ts";
import { type AdapterContext, createRenderer, createTyping, doubtWait, laneOf } from "./context.ts";

type MessageLine = Extract<SendLine, { type: "send" | "ask" }>;
type AskedLine = Extract<SendLine, { type: "asked" }>;
type Find = Extract<SendLine, { type: "find" }>;

export function createSends(context: AdapterContext) {
	const lanes = createKeyedQueue();
	const typing = createTyping(context);
	const inOrder = (target: Target, work: () => Promise<void>) => void lanes.run(laneOf(target), work);

	return {
		accept(line: SendLine): void {
			if (line.type === "typing") typing(line);
			else if (line.type === "asked") inOrder(line.target, () => settle(context, line));
			else if (line.type === "send" || line.type === "ask") inOrder(line.target, () => send(context, line));
			else if (line.type === "find") inOrder(line.target, () => find(context, line));
		},
		/** Resolves when nothing is under way. */
		async stop(): Promise<void> {
			await lanes.idle();
			await context.gate.quiet();
		},
	};
}

/** One message that a line needs. */
interface MessagePart {
	nonce: string;
	from: number;
	to: number;
	/** UTF-16 units of the line's text that are sent with it and before it. */
	chars: number;
	create(options: SendOptions): Promise<CreatedMessage>;
	/** A look-up compares messages with this text. */
	text: string;
	/** Options in addition to the nonce. */
	more: Pick<SendOptions, "facts" | "question">;
}

async function send(context: AdapterContext, line: MessageLine): Promise<void> {
	const fields = fieldsOf(line);
	let { nonce } = line;
	try {
		const parts = partsOf(context, line);
		const last = parts.at(-1);
		// All of a question's text comes before its buttons.
		if (last && line.type === "ask") last.more = { ...last.more, question: questionOf(context, line) };
		for (const part of parts) {
			nonce = part.nonce;
			const { messageId } = await createOnce(context, line.target, part, fields);
			context.say({ ...sentOf(part, messageId, part === last), ...fields });
		}
	} catch (cause) {
		refuse(context, nonce, fields, cause);
	}
}

/** Refuses a question that does not fit the platform: the daemon then asks in text. */
function questionOf({ platform: { info } }: AdapterContext, { id, choices }: Question): Question {
	const fault = questionFault({ id, choices }) ?? buttonsFault(info, { id, choices });
	if (fault === undefined) return { id, choices };
	throw new PlatformError("invalid", `The question cannot be asked on ${info.channel}: ${fault}.`);
}

function refuse(context: AdapterContext, nonce: string, fields: DeliveryFields, cause: unknown): void {
	const error = cause instanceof PlatformError ? cause : new PlatformError("invalid", String(cause), { cause });
	const { message, fault, retryAfterMs } = error;
	context.say({ type: "delivery_error", error: message, code: fault, nonce, retryAfterMs, ...fields });
}

/** An edit: it may be repeated after any outcome. */
async function settle(context: AdapterContext, { delivery, nonce, target, messageId, text }: AskedLine): Promise<void> {
	const { session, platform } = context;
	const { render, ...rules } = createRenderer(platform);
	const fields = { delivery };
	try {
		const { asking } = session;
		if (!asking) throw new PlatformError("invalid", `${platform.info.channel} has no buttons.`);
		const [piece] = splitAll(text, rules);
		const rendered = render(piece?.text ?? "");
		const work = (signal: AbortSignal) => asking.settle(target, messageId, rendered, { nonce, final: true, signal });
		await context.gated(target, "final", () => context.call("edit", fields, work));
		context.say({ type: "message_sent", messageId, final: true, nonce, ...fields });
	} catch (cause) {
		refuse(context, nonce, fields, cause);
	}
}

const fieldsOf = ({ delivery, runId }: MessageLine | Find): DeliveryFields => ({ delivery, runId });

const sentOf = ({ nonce, from, to, chars }: MessagePart, messageId: string, final: boolean) =>
	({ type: "message_sent", messageId, final, nonce, from, to, chars }) as const;

/** The unsent messages of a line: the pieces of its text, then its attachments. The same line is always divided the same way. */
function partsOf(context: AdapterContext, line: MessageLine | Find): MessagePart[] {
	const { done = { pieces: 0, chars: 0 }, from = 0, text } = line;
	const { to = from + text.length - done.chars } = line;
	const drafts = [...textsOf(context, line, done.chars), ...filesOf(context, line, done)];
	const last = drafts.at(-1);
	if (!last) throw new PlatformError("invalid", "The text has nothing to show.");
	// White space at the end shows nothing; it counts as sent with the last message.
	last.chars = text.length;
	let at = from;
	const facts = { runId: line.runId, ...factsOf(line.facts ?? {}) };
	const more = Object.values(facts).some((each) => each !== undefined) ? { facts } : {};
	return drafts.map((draft, index) => {
		const begin = at;
		at = draft === last ? to : Math.min(to, from + draft.chars - done.chars);
		return { ...draft, more, nonce: pieceNonce(line.nonce, done.pieces + index + 1), from: begin, to: at };
	});
}

type PartDraft = Pick<MessagePart, "chars" | "create" | "text">;

function textsOf(context: AdapterContext, line: MessageLine | Find, begin: number): PartDraft[] {
	const { platform, session } = context;
	const { render, ...rules } = createRenderer(platform);
	const pieces = splitAll(line.text, rules, begin);
	const drafts = pieces.flatMap((piece): PartDraft[] => {
		if (piece.text.trim() === "") return [];
		const text = render(piece.text);
		const create = (options: SendOptions) =>
			context.create(options, (noted) => session.create(line.target, text, noted));
		return [{ chars: piece.to, text, create }];
	});
	const { attaching } = session;
	const { attachments = [] } = line;
	const body = drafts.at(-1);
	if (attaching?.createWith && body && attachments.length > 0) {
		const { createWith } = attaching;
		const withAll = (options: SendOptions) => createWith.call(attaching, line.target, body.text, attachments, options);
		body.create = (options) => context.create(options, withAll);
	}
	return drafts;
}

function filesOf(context: AdapterContext, line: MessageLine | Find, { pieces, chars }: LineDone): PartDraft[] {
	const { platform, session } = context;
	const { attaching } = session;
	const { text, attachments = [] } = line;
	if (attachments.length === 0 || (attaching?.createWith && text.trim() !== "")) return [];
	// Files follow the text: the first is sent after all of it.
	const out = chars < text.length ? 0 : Math.max(0, pieces - textsOf(context, line, 0).length);
	return attachments.slice(out).map((attachment) => {
		if (!attaching) throw new PlatformError("invalid", `${platform.info.channel} cannot send attachments.`);
		const create = async (options: SendOptions) => {
			// Uploaded before the creation is recorded: a crash during the upload leaves no doubt.
			const uploaded = attaching.upload ? await harmless(attaching.upload(attachment, options.signal)) : "";
			return await context.create(options, (noted) => attaching.attach(line.target, attachment, noted, uploaded));
		};
		return { chars: text.length, text: attachment.name, create };
	});
}

/** Unknown outcomes are looked up, or retried with the same nonce and growing back-off, then reported as unknown. */
async function createOnce(
	context: AdapterContext,
	target: Target,
	part: MessagePart,
	fields: DeliveryFields,
): Promise<CreatedMessage> {
	const { find, platform, clock, limits } = context;
	const { nonce } = part;
	const begun = clock.now();
	const patienceMs = find ? limits.doubtMs : platform.info.reconcile === "nonce" ? limits.nonceWindowMs : 0;
	let open: PlatformError | undefined;
	for (let tries = 1; ; tries++) {
		try {
			const create = (signal: AbortSignal) => {
				// The platform may have forgotten the nonce while the call waited for its turn.
				if (open && clock.now() - begun >= patienceMs) throw open;
				return part.create({ nonce, final: true, ...part.more, signal });
			};
			return await context.gated(target, "final", () => context.call("create", fields, create));
		} catch (cause) {
			if (!(cause instanceof PlatformError)) throw cause;
			// A refusal of this try says nothing about one before it.
			if (cause.fault !== "unknown_outcome") throw open ? inDoubt(open, cause) : cause;
			const found = find && (await lookUp(context, target, part, fields).catch((failure) => stillOpen(cause, failure)));
			if (found) return found;
			const requestedMs = Math.min(cause.retryAfterMs ?? 0, patienceMs - (clock.now() - begun));
			const waitMs = Math.max(doubtWait(limits, tries), requestedMs);
			if (clock.now() + waitMs - begun > patienceMs) throw cause;
			open = find ? undefined : cause;
			await sleep(clock, waitMs);
		}
	}
}

const inDoubt = (open: PlatformError, cause: unknown): PlatformError =>
	new PlatformError("unknown_outcome", `${open.message}; asking again failed: ${String(cause)}`, { cause });

/** When the look-up fails, the outcome stays unknown. */
function stillOpen(open: PlatformError, cause: unknown): never {
	throw new PlatformError("unknown_outcome", `${open.message}; looking it up failed too`, { cause });
}

const lookUp = ({ gated, call, find }: AdapterContext, target: Target, part: MessagePart, fields: DeliveryFields) =>
	gated(target, "create", () => call("find", fields, async (signal) => find?.(target, part.nonce, part.text, signal)));

/** Looks for a line's messages in order: reports each one found, then answers for the first missing or last one. */
async function find(context: AdapterContext, line: Find): Promise<void> {
	const { nonce, target } = line;
	const fields = fieldsOf(line);
	if (!context.find) return context.say({ type: "found", nonce, known: false });
	try {
		const parts = partsOf(context, line);
		for (const part of parts) {
			const found = await lookUp(context, target, part, fields);
			if (!found || part === parts.at(-1)) {
				context.say({ type: "found", nonce, known: true, messageId: found?.messageId });
				return;
			}
			context.say({ ...sentOf(part, found.messageId, false), ...fields });
		}
	} catch (cause) {
		context.log.warn({ nonce, error: String(cause) }, "a message could not be looked up");
		context.say({ type: "found", nonce, known: false });
	}
}
