/** The `send` verb: every line becomes the messages it needs, in order within a chat, each created once. */

import { factsOf } from "../draft/run-facts.ts";
import { splitAll } from "../markdown/split.ts";
import { pieceNonce } from "../nonce.ts";
import { PlatformError, type SendOptions } from "../platform/platform.ts";
import type { DeliveryFields, LineDone, Question, SendLine, Target } from "../port.ts";
import { buttonsFault, questionFault } from "../question.ts";
import { type AdapterContext, createRenderer, createTyping, doubtWait, laneOf } from "./context.ts";

export interface Sends {
	accept(line: SendLine): void;
	/** Resolves when nothing is under way. */
	idle(): Promise<void>;
}

type MessageLine = Extract<SendLine, { type: "send" | "ask" }>;
type AskedLine = Extract<SendLine, { type: "asked" }>;
type Find = Extract<SendLine, { type: "find" }>;

export function createSends(context: AdapterContext): Sends {
	const lanes = new Map<string, Promise<void>>();
	const typing = createTyping(context);

	function inOrder(target: Target, work: () => Promise<void>): void {
		const lane = laneOf(target);
		const next = (lanes.get(lane) ?? Promise.resolve()).then(work).then(() => {
			if (lanes.get(lane) === next) lanes.delete(lane);
		});
		lanes.set(lane, next);
	}

	return {
		accept(line) {
			if (line.type === "typing") typing(line);
			else if (line.type === "asked") inOrder(line.target, () => settle(context, line));
			else if (line.type === "send" || line.type === "ask") inOrder(line.target, () => send(context, line));
			else if (line.type === "find") inOrder(line.target, () => find(context, line));
		},
		async idle() {
			while (lanes.size > 0) await Promise.all(lanes.values());
			await context.gate.quiet();
		},
	};
}

/** One message that a line needs. */
interface MessagePart {
	nonce: string;
	from: number;
	to: number;
	/** How much of the line's text is out with it. */
	chars: number;
	create(options: SendOptions): Promise<{ messageId: string }>;
	/** What a look-up compares with. */
	text: string;
	/** What the message carries beside its text. */
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
			context.say(sentOf(part, messageId, part === parts.at(-1), fields));
		}
	} catch (cause) {
		refuse(context, nonce, fields, cause);
	}
}

/** The daemon asks in words where there are no buttons. */
function questionOf({ platform: { info } }: AdapterContext, { id, choices }: Question): Question {
	const fault = questionFault({ id, choices }) ?? buttonsFault(info, { id, choices });
	if (fault === undefined) return { id, choices };
	throw new PlatformError("invalid", `The question cannot be asked on ${info.channel}: ${fault}.`);
}

function refuse(context: AdapterContext, nonce: string, fields: DeliveryFields, cause: unknown): void {
	const error = cause instanceof PlatformError ? cause : new PlatformError("invalid", String(cause), { cause });
	const wait = error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs };
	context.say({ type: "delivery_error", error: error.message, code: error.fault, nonce, ...wait, ...fields });
}

/** An edit: it may be repeated after any outcome. */
async function settle(context: AdapterContext, { delivery, nonce, target, messageId, text }: AskedLine): Promise<void> {
	const { session, platform } = context;
	const { render, ...rules } = createRenderer(platform);
	const fields = { delivery };
	try {
		if (!session.settle) throw new PlatformError("invalid", `${platform.info.channel} has no buttons.`);
		const [piece] = splitAll(text, rules, platform.info.limits.textMax, 0);
		const said = render(piece?.text ?? "");
		const work = async (signal: AbortSignal) =>
			session.settle?.(target, messageId, said, { nonce, final: true, signal });
		await context.gated(target, "final", () => context.call("edit", fields, work));
		context.say({ type: "message_sent", messageId, final: true, nonce, ...fields });
	} catch (cause) {
		refuse(context, nonce, fields, cause);
	}
}

const fieldsOf = ({ delivery, runId }: Pick<MessageLine, "delivery" | "runId">): DeliveryFields => ({
	delivery,
	...(runId === undefined ? {} : { runId }),
});

const sentOf = (
	{ nonce, from, to, chars }: MessagePart,
	messageId: string,
	final: boolean,
	fields: DeliveryFields,
) => ({ type: "message_sent" as const, messageId, final, nonce, from, to, chars, ...fields });

/** What is left of a line: its text's pieces, then its attachments. The same line is always divided the same way. */
function partsOf(context: AdapterContext, line: MessageLine | Find): MessagePart[] {
	const { done = { pieces: 0, chars: 0 }, from = 0, text } = line;
	const { to = from + text.length - done.chars } = line;
	const drafts = [...textsOf(context, line, done.chars), ...filesOf(context, line, done)];
	const last = drafts.at(-1);
	if (!last) throw new PlatformError("invalid", "The text has nothing to show.");
	// White space at the end shows nothing, and is delivered with what is before it.
	last.chars = text.length;
	let at = from;
	const known = { ...(line.runId !== undefined && { runId: line.runId }), ...factsOf(line.facts ?? {}) };
	const more = Object.keys(known).length === 0 ? {} : { facts: known };
	return drafts.map((draft, index) => {
		const begin = at;
		at = draft === last ? to : Math.min(to, from + draft.chars - done.chars);
		return { ...draft, more, nonce: pieceNonce(line.nonce, done.pieces + index + 1), from: begin, to: at };
	});
}

type PartDraft = Pick<MessagePart, "chars" | "create" | "text">;

function textsOf({ platform, session }: AdapterContext, line: MessageLine | Find, begin: number): PartDraft[] {
	const { render, ...rules } = createRenderer(platform);
	const pieces = splitAll(line.text, rules, platform.info.limits.textMax, begin);
	const drafts = pieces.flatMap((piece): PartDraft[] => {
		if (piece.text.trim() === "") return [];
		const text = render(piece.text);
		return [{ chars: piece.to, text, create: (options) => session.create(line.target, text, options) }];
	});
	const { createWith } = session;
	const { attachments = [] } = line;
	const body = drafts.at(-1);
	if (createWith && body && attachments.length > 0) {
		body.create = (options) => createWith.call(session, line.target, body.text, attachments, options);
	}
	return drafts;
}

function filesOf(context: AdapterContext, line: MessageLine | Find, { pieces, chars }: LineDone): PartDraft[] {
	const { session, platform } = context;
	const { text, attachments = [] } = line;
	if (attachments.length === 0 || (session.createWith && text.trim() !== "")) return [];
	// Files follow the text: none is out before all of it is.
	const out = chars < text.length ? 0 : Math.max(0, pieces - textsOf(context, line, 0).length);
	return attachments.slice(out).map((attachment) => {
		const { attach } = session;
		if (!attach) throw new PlatformError("invalid", `${platform.info.channel} cannot send attachments.`);
		const create = (options: SendOptions) => attach.call(session, line.target, attachment, options);
		return { chars: text.length, text: attachment.name, create };
	});
}

/** What was not told is looked up, or said again under its nonce, ever later; in the end nobody knows. */
async function createOnce(
	context: AdapterContext,
	target: Target,
	part: MessagePart,
	fields: DeliveryFields,
): Promise<{ messageId: string }> {
	const { session, platform, clock, limits } = context;
	const { nonce } = part;
	const begun = clock.now();
	const patienceMs = session.find ? limits.doubtMs : platform.info.reconcile === "nonce" ? limits.nonceWindowMs : 0;
	let open: PlatformError | undefined;
	for (let tries = 1; ; tries++) {
		try {
			const create = (signal: AbortSignal) => {
				// It had to wait for its turn, and the platform may have forgotten the nonce meanwhile.
				if (open && clock.now() - begun >= patienceMs) throw open;
				return part.create({ nonce, final: true, ...part.more, signal });
			};
			return await context.gated(target, "final", () => context.call("create", fields, create));
		} catch (cause) {
			if (!(cause instanceof PlatformError)) throw cause;
			// A refusal of this try says nothing about one before it.
			if (cause.fault !== "unknown_outcome") throw open ? inDoubt(open, cause) : cause;
			const { find } = session;
			const look = async (signal: AbortSignal) => find?.call(session, target, nonce, part.text, signal);
			const found = find && (await lookUp(context, target, fields, look, cause));
			if (found) return found;
			const askedMs = Math.min(cause.retryAfterMs ?? 0, patienceMs - (clock.now() - begun));
			const waitMs = Math.max(doubtWait(limits, tries), askedMs);
			if (clock.now() + waitMs - begun > patienceMs) throw cause;
			open = find ? undefined : cause;
			await new Promise<void>((resolve) => clock.after(waitMs, resolve));
		}
	}
}

const inDoubt = (open: PlatformError, cause: unknown): PlatformError =>
	new PlatformError("unknown_outcome", `${open.message}; asking again failed: ${String(cause)}`, { cause });

/** A look-up that fails leaves the first question open. */
async function lookUp<T>(
	context: AdapterContext,
	target: Target,
	fields: DeliveryFields,
	look: (signal: AbortSignal) => Promise<T>,
	open: PlatformError,
): Promise<T> {
	try {
		return await context.gated(target, "create", () => context.call("find", fields, look));
	} catch (cause) {
		throw new PlatformError("unknown_outcome", `${open.message}; looking it up failed too`, { cause });
	}
}

/** Looks for a line's messages in their order: what is out is told one by one, and the answer is about what is left. */
async function find(context: AdapterContext, line: Find): Promise<void> {
	const { session } = context;
	const { nonce, target } = line;
	const fields = fieldsOf(line);
	const look = session.find;
	if (!look) {
		context.say({ type: "found", nonce, known: false });
		return;
	}
	try {
		const parts = partsOf(context, line);
		for (const part of parts) {
			const work = (signal: AbortSignal) => look.call(session, target, part.nonce, part.text, signal);
			const found = await context.gated(target, "create", () => context.call("find", fields, work));
			if (!found || part === parts.at(-1)) {
				context.say({ type: "found", nonce, known: true, messageId: found?.messageId });
				return;
			}
			context.say(sentOf(part, found.messageId, false, fields));
		}
	} catch (cause) {
		context.log.warn({ nonce, error: String(cause) }, "a message could not be looked up");
		context.say({ type: "found", nonce, known: false });
	}
}
