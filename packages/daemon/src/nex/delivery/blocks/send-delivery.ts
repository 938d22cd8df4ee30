/** Delivery by separate messages: each is recorded before it is sent, so that a crash leaves at most one unknown outcome, which is looked up. */

import { pieceOf } from "@nexus-stream/adapter/host";
import type { PlatformFault, SendBody } from "@nexus-stream/adapter/port";
import { backoffMs, jittered, sleep } from "@nexus-stream/protocol/retry";
import type { DeliveryMessage } from "../../../ledger/deliveries/port.ts";
import { speaks } from "../../accounts/account.ts";
import type { OnPiece, SendAnswer, SendRequest } from "../../accounts/send-port.ts";
import { type DeliveryAttachment, errorAttachment } from "../attachments/attachment.ts";
import { type DeliveryContext, type DeliveryOutcome, factsOf } from "../delivery-context.ts";
import { isAttachmentNonce, isUnfinished, lineOf } from "../live-delivery.ts";
import { createTyping, NO_TYPING, type Typing, typingRulesOf } from "../stream/typing.ts";
import { readBlocks } from "./block-machine.ts";
import type { DeliveryBlock } from "./block-step.ts";
import { recallFiles } from "./mail.ts";

export async function deliverBySend(context: DeliveryContext): Promise<DeliveryOutcome> {
	const { live, account, info, clock } = context;
	const names = { delivery: live.id, runId: live.row.runId };
	const typing = createTyping(typingRulesOf(context), clock, (on, doing) =>
		account.send(info).typing(context.target, on, doing, names),
	);
	try {
		for (const open of live.row.messages.filter(isUnfinished)) {
			const settled = await settle(context, open, typing);
			if (settled) return settled;
		}
		for await (const block of readBlocks(context, typing)) {
			const { attachment } = block;
			const outcome = await (attachment
				? sendAttachment(context, attachment, typing)
				: sendBlock(context, block, typing));
			if (outcome) return outcome;
		}
		return context.signal.aborted ? { state: "left" } : { state: "complete" };
	} finally {
		typing.take({ type: "run_end" });
	}
}

/** Sends an attachment. Its failure does not affect the text. */
export async function sendAttachment(
	context: DeliveryContext,
	attachment: DeliveryAttachment,
	typing: Typing,
): Promise<DeliveryOutcome | undefined> {
	const { cursor: at } = context.live.row;
	const { text, nonce, instead, attachments } = attachment;
	const block = { from: at, to: at, text, attachments };
	const outcome = await sendBlock(context, block, typing, nonce);
	if (outcome?.state === "left") return outcome;
	if (outcome) context.log.warn({ ...factsOf(context.live), nonce, ...outcome }, "an attachment was not sent");
	return outcome?.state === "failed" && instead ? sendAttachment(context, instead, typing) : undefined;
}

/** Sends the error text of a failed answer after its text, for an adapter that does not send it itself. */
export async function sendError(context: DeliveryContext): Promise<DeliveryOutcome | undefined> {
	const { live, info } = context;
	const attachment = errorAttachment(context);
	const isSent = live.row.messages.some(({ nonce }) => nonce === attachment?.nonce);
	return attachment && !isSent && info.supports.includes("send")
		? sendAttachment(context, attachment, NO_TYPING)
		: undefined;
}

/** Settles an attachment that an earlier process left unfinished. */
export async function settleAttachment(context: DeliveryContext): Promise<DeliveryOutcome | undefined> {
	const { messages } = context.live.row;
	const unfinished = messages.find((message) => isUnfinished(message) && isAttachmentNonce(message.nonce));
	return unfinished && settle(context, unfinished, NO_TYPING);
}

/** Settles a message that an earlier process, or the stream, left unfinished. */
async function settle(
	context: DeliveryContext,
	message: DeliveryMessage,
	typing: Typing,
): Promise<DeliveryOutcome | undefined> {
	const { live } = context;
	if (message.state === "open") {
		live.abandon(message);
		return undefined;
	}
	if (message.text === undefined || message.to === undefined) {
		live.doubt(message.nonce);
		return { state: "unknown", error: "A message may or may not have been created; the platform cannot tell." };
	}
	await recallFiles(context, message.nonce);
	const sending: Sending = { context, typing, line: lineOf(message.nonce) };
	const outcome = await send(sending, await reconcile(sending));
	return outcome && outcome.state !== "left" && isAttachmentNonce(message.nonce) ? undefined : outcome;
}

async function sendBlock(
	context: DeliveryContext,
	{ from, to, text, attachments, facts = {} }: DeliveryBlock,
	typing: Typing,
	name?: string,
): Promise<DeliveryOutcome | undefined> {
	const { live, files } = context;
	const next = live.next();
	const nonce = name ?? next.nonce;
	if (attachments) files.set(nonce, attachments);
	const message = { ordinal: next.ordinal, nonce, from, to, text };
	live.intend(Object.keys(facts).length > 0 ? { ...message, facts: { ...facts } } : message);
	await live.recorded();
	return send({ context, typing, line: nonce }, { type: "absent" });
}

/** One line: it may need several messages and several tries. */
interface Sending {
	context: DeliveryContext;
	typing: Typing;
	/** The nonce of the line. */
	line: string;
}

/** The state of the unsent remainder of a line before its next try. */
type Knowledge =
	| { type: "absent" }
	| { type: "there"; messageId: string }
	| { type: "unknown"; error: string }
	| { type: "failed"; error: string }
	| { type: "left" };

/** Tries until the whole line is sent, the platform refuses it permanently, or its outcome is unknown. Undefined: it was sent. */
async function send(sending: Sending, before: Knowledge): Promise<DeliveryOutcome | undefined> {
	const { typing, context } = sending;
	const { live, clock, limits } = context;
	let since = clock.now();
	let knowledge = before;
	for (let tries = 0; knowledge.type === "absent"; tries++) {
		const { nonce } = current(sending);
		if (tries > 0 && clock.now() - since >= limits.giveUpMs) {
			live.withdraw(nonce);
			return { state: "failed", error: `Given up after ${tries} tries.` };
		}
		knowledge = await trySend(sending, tries);
		if (current(sending).nonce === nonce) continue;
		// A piece was sent: the remainder gets the full time again.
		since = clock.now();
		tries = 0;
	}
	const { nonce, to } = current(sending);
	switch (knowledge.type) {
		case "there":
			live.sent(nonce, { messageId: knowledge.messageId, to });
			typing.take({ type: "message_out" });
			return undefined;
		case "unknown":
			live.doubt(nonce);
			return { state: "unknown", error: knowledge.error };
		case "failed":
			live.withdraw(nonce);
			return { state: "failed", error: knowledge.error };
		case "left":
			return { state: "left" };
		default:
			return knowledge satisfies never;
	}
}

type Current = DeliveryMessage & DeliveryBlock;

/** The unsent remainder of the line. */
function current({ context: { live }, line }: Sending): Current {
	const unfinished = live.unfinishedOf(line);
	const { text, to } = unfinished ?? {};
	if (!unfinished || text === undefined || to === undefined) throw new Error(`delivery ${live.id} has nothing to send`);
	return { ...unfinished, text, to };
}

/** Every try sends the same line; only `done` grows. */
function bodyOf(sending: Sending): SendBody {
	const { nonce, from, to, text, done, facts } = current(sending);
	const { line, piece } = pieceOf(nonce);
	const { live, target, files } = sending.context;
	const { id: delivery, runId } = live.row;
	const attachments = files.get(line);
	return {
		delivery,
		runId,
		nonce: line,
		target,
		text,
		from,
		to,
		attachments,
		facts,
		done: done === undefined ? undefined : { pieces: piece - 1, chars: done },
	};
}

/** Faults without effect, after which another try may succeed. */
const TEMPORARY: ReadonlySet<PlatformFault> = new Set<PlatformFault>(["rate_limited", "unavailable"]);

async function trySend(sending: Sending, tries: number): Promise<Knowledge> {
	const { context } = sending;
	const { account, info, signal } = context;
	await account.rate.open(signal);
	if (signal.aborted) return { type: "left" };
	const body = bodyOf(sending);
	let isPartlySent = false;
	const { question } = context;
	const line: SendRequest = question ? { type: "ask", ...body, ...question } : { type: "send", ...body };
	const answer = await ask(sending, line, () => {
		isPartlySent = true;
	});
	if (answer === undefined) return { type: "left" };
	if (answer.type === "sent") return { type: "there", messageId: answer.messageId };
	const isCertain = answer.type === "refused" && answer.code !== "unknown_outcome";
	// Another try would send the first part again.
	if (isPartlySent && !speaks(info, "pieces")) {
		return { type: isCertain ? "failed" : "unknown", error: `Only a part was sent: ${errorOf(answer)}` };
	}
	if (isCertain) return refused(context, answer, tries);
	context.log.warn(
		{ ...factsOf(context.live), nonce: body.nonce, error: errorOf(answer) },
		"the outcome of a send is unknown",
	);
	return reconcile(sending);
}

/** Records every piece of the line as the adapter reports it. Undefined: this process stops. */
async function ask(
	{ context: { account, info, live, signal }, typing, line: nonce }: Sending,
	line: SendRequest,
	onPiece: () => void,
): Promise<SendAnswer | undefined> {
	const piece: OnPiece = (status) => {
		onPiece();
		if (live.piece(nonce, status)) typing.take({ type: "message_out" });
	};
	return account.send(info).request(line, signal, piece).catch(asLeft(signal));
}

const errorOf = (answer: SendAnswer): string => ("error" in answer ? answer.error : "no answer");

async function refused(
	context: DeliveryContext,
	answer: Extract<SendAnswer, { type: "refused" }>,
	tries: number,
): Promise<Knowledge> {
	const { clock, random, limits, signal } = context;
	const error = `${answer.code ? `${answer.code}: ` : ""}${answer.error}`;
	if (!answer.code || !TEMPORARY.has(answer.code)) return { type: "failed", error };
	const backoff = jittered(backoffMs({ firstMs: limits.retryMs, maxMs: limits.retryMsMax }, tries), random());
	context.log.info({ ...factsOf(context.live), error, tries: tries + 1 }, "a send was refused; it will be retried");
	await sleep(clock, Math.max(answer.retryAfterMs ?? 0, backoff), signal);
	return signal.aborted ? { type: "left" } : { type: "absent" };
}

/** Looks up on the platform how much of a line was sent. */
async function reconcile(sending: Sending): Promise<Knowledge> {
	const { live, account, info, signal, clock, limits } = sending.context;
	const unknown = (error: string): Knowledge => ({ type: "unknown", error });
	if (info.reconcile === undefined || info.reconcile === "none") {
		return unknown("A message may or may not have been sent; the platform cannot tell.");
	}
	if (current(sending).done !== undefined && !speaks(info, "pieces")) {
		return unknown("Only a part was sent for certain; the adapter cannot look for the rest.");
	}
	const since = clock.now();
	// A process that dies before it answers is asked again.
	for (let tries = 0; tries === 0 || clock.now() - since < limits.giveUpMs; tries++) {
		if (tries > 0) await sleep(clock, backoffMs({ firstMs: limits.retryMs, maxMs: limits.retryMsMax }, tries), signal);
		await account.rate.open(signal);
		const line = { type: "find" as const, ...bodyOf(sending) };
		const answer = await ask(sending, line, () => {});
		if (answer === undefined || signal.aborted) return { type: "left" };
		if (answer.type !== "found") continue;
		if (answer.messageId !== undefined) return { type: "there", messageId: answer.messageId };
		if (answer.known) return { type: "absent" };
		// Within this window the platform recognises the nonce and does not create the message again.
		if (info.reconcile === "nonce" && live.idleMs < limits.nonceWindowMs) return { type: "absent" };
		return unknown("A message may or may not have been sent; the platform could not tell.");
	}
	return unknown("A message may or may not have been sent; it could not be looked up.");
}

/** A request rejects only when this process stops. */
const asLeft =
	(signal: AbortSignal) =>
	(cause: unknown): undefined => {
		if (!signal.aborted) throw cause;
	};
