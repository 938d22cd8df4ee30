/** Sending in messages: what each one says is on record before it is sent, so that a crash leaves one question at most, and it is looked up. */

import { type PlatformFault, pieceOf, type SendBody } from "@nexus-stream/adapter/host";
import type { DeliveryMessage } from "../../../ledger/ledger.ts";
import { speaks } from "../../accounts/account.ts";
import type { OnPiece, SendAnswer, SendRequest } from "../../accounts/send-port.ts";
import { type DeliveryAttachment, errorAttachment } from "../attachments/attachment.ts";
import { recallFiles } from "../attachments/attachment-files.ts";
import { isAttachmentNonce, lineOf } from "../attachments/attachment-nonce.ts";
import { type DeliveryContext, type DeliveryOutcome, factsOf } from "../delivery-context.ts";
import { isUnfinished } from "../live-delivery.ts";
import { sleep } from "../sleep.ts";
import { createTyping, type Typing } from "../stream/typing.ts";
import { typingRulesOf } from "../stream/typing-rules.ts";
import { readBlocks } from "./block-feed.ts";
import type { DeliveryBlock } from "./block-step.ts";

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

/** Something beside the text: the text does not suffer from what becomes of it. */
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
	if (outcome)
		context.log.warn({ ...factsOf(context.live), nonce, ...outcome }, "something beside the text is missing");
	return outcome?.state === "failed" && instead ? sendAttachment(context, instead, typing) : undefined;
}

/** The text that says that an answer failed, behind what there is of it; to an adapter that does not say it itself. */
export async function sayError(context: DeliveryContext): Promise<DeliveryOutcome | undefined> {
	const { live, info } = context;
	const attachment = errorAttachment(context);
	const isSaid = live.row.messages.some(({ nonce }) => nonce === attachment?.nonce);
	return attachment && !isSaid && info.supports.includes("send")
		? sendAttachment(context, attachment, QUIET)
		: undefined;
}

/** Something beside the text that an earlier process left without an end. */
export async function settleAttachment(context: DeliveryContext): Promise<DeliveryOutcome | undefined> {
	const { messages } = context.live.row;
	const left = messages.find((message) => isUnfinished(message) && isAttachmentNonce(message.nonce));
	return left && settle(context, left, QUIET);
}

/** Nobody is shown typing. */
const QUIET: Typing = { take() {} };

/** A message that an earlier process, or an earlier path, left without an end. */
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
		live.change("doubt", message.nonce);
		return { state: "unknown", error: "A message may or may not have been created; the platform cannot tell." };
	}
	await recallFiles(context, message.nonce);
	const sending: Sending = { delivering: context, typing, line: lineOf(message.nonce) };
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
	const told = Object.keys(facts).length > 0 && { facts: { ...facts } };
	live.intend({ ordinal: next.ordinal, nonce, from, to, text, ...told });
	await live.recorded();
	return send({ delivering: context, typing, line: nonce }, { type: "absent" });
}

/** One line, however many messages and tries it takes. */
interface Sending {
	delivering: DeliveryContext;
	typing: Typing;
	/** Its nonce. */
	line: string;
}

/** What is known of what is left of the send that is under way, before it is tried (again). */
type Knowledge =
	| { type: "absent" }
	| { type: "there"; messageId: string }
	| { type: "unknown"; error: string }
	| { type: "failed"; error: string }
	| { type: "left" };

/** Tries until all of it is there, the platform refuses it for good, or nobody can tell. Undefined: it is there. */
async function send(sending: Sending, known: Knowledge): Promise<DeliveryOutcome | undefined> {
	const { typing, delivering: context } = sending;
	const { live, clock, limits } = context;
	let since = clock.now();
	let knowledge = known;
	for (let tries = 0; knowledge.type === "absent"; tries++) {
		const { nonce } = current(sending);
		if (tries > 0 && clock.now() - since >= limits.giveUpMs) {
			live.change("withdraw", nonce);
			return { state: "failed", error: `Given up after ${tries} tries.` };
		}
		knowledge = await trySend(sending, tries);
		if (current(sending).nonce === nonce) continue;
		// A piece went out: the patience is for what is left.
		since = clock.now();
		tries = 0;
	}
	const { nonce, to } = current(sending);
	switch (knowledge.type) {
		case "there":
			live.change("sent", nonce, { messageId: knowledge.messageId, to });
			typing.take({ type: "message_out" });
			return undefined;
		case "unknown":
			live.change("doubt", nonce);
			return { state: "unknown", error: knowledge.error };
		case "failed":
			live.change("withdraw", nonce);
			return { state: "failed", error: knowledge.error };
		case "left":
			return { state: "left" };
		default:
			return knowledge satisfies never;
	}
}

type Current = DeliveryMessage & DeliveryBlock;

/** What is left of the send that is under way. */
function current({ delivering: { live }, line }: Sending): Current {
	const unfinished = live.unfinishedOf(line);
	const { text, to } = unfinished ?? {};
	if (!unfinished || text === undefined || to === undefined) throw new Error(`delivery ${live.id} has nothing to send`);
	return { ...unfinished, text, to };
}

/** A line is the same in every try; only what is out of it grows. */
function bodyOf(sending: Sending): SendBody {
	const { nonce, from, to, text, done, facts } = current(sending);
	const { line, piece } = pieceOf(nonce);
	const { live, target, files } = sending.delivering;
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

/** Nothing happened, and another try may succeed. */
const PASSING: ReadonlySet<PlatformFault> = new Set<PlatformFault>(["rate_limited", "unavailable"]);

async function trySend(sending: Sending, tries: number): Promise<Knowledge> {
	const { delivering: context } = sending;
	const { account, info, signal } = context;
	await account.gate.open(signal);
	if (signal.aborted) return { type: "left" };
	const body = bodyOf(sending);
	let partly = false;
	const { question } = context;
	const line: SendRequest = question ? { type: "ask", ...body, ...question } : { type: "send", ...body };
	const answer = await ask(sending, line, () => {
		partly = true;
	});
	if (answer === undefined) return { type: "left" };
	if (answer.type === "sent") return { type: "there", messageId: answer.messageId };
	const certain = answer.type === "refused" && answer.code !== "unknown_outcome";
	// It would say the part again that is out.
	if (partly && !speaks(info, "pieces")) {
		return { type: certain ? "failed" : "unknown", error: `Only a part was sent: ${errorOf(answer)}` };
	}
	if (certain) return refused(context, answer, tries);
	context.log.warn({ ...factsOf(context.live), nonce: body.nonce, error: errorOf(answer) }, "a send without an answer");
	return reconcile(sending);
}

/** Messages that are a part of the line are on record as they are told of. Undefined: this process stops. */
async function ask(
	{ delivering: { account, info, live, signal }, typing, line: nonce }: Sending,
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
	if (!answer.code || !PASSING.has(answer.code)) return { type: "failed", error };
	const backoff = Math.min(limits.retryMs * 2 ** tries, limits.retryMsMax) * (0.75 + random() / 2);
	context.log.info({ ...factsOf(context.live), error, tries: tries + 1 }, "a send was refused; it is tried again");
	await sleep(clock, Math.max(answer.retryAfterMs ?? 0, backoff), signal);
	return signal.aborted ? { type: "left" } : { type: "absent" };
}

/** Asks the platform how much exists of a send whose outcome is not known. */
async function reconcile(sending: Sending): Promise<Knowledge> {
	const { live, account, info, signal, clock, limits } = sending.delivering;
	const unknown = (error: string): Knowledge => ({ type: "unknown", error });
	if (info.reconcile === undefined || info.reconcile === "none") {
		return unknown("A message may or may not have been sent; the platform cannot tell.");
	}
	if (current(sending).done !== undefined && !speaks(info, "pieces")) {
		return unknown("Only a part was sent for certain; the adapter cannot look for the rest.");
	}
	const begun = clock.now();
	// A process that dies over the question has not answered it.
	for (let tries = 0; tries === 0 || clock.now() - begun < limits.giveUpMs; tries++) {
		if (tries > 0) await sleep(clock, Math.min(limits.retryMs * 2 ** tries, limits.retryMsMax), signal);
		await account.gate.open(signal);
		const line = { type: "find" as const, ...bodyOf(sending) };
		const answer = await ask(sending, line, () => {});
		if (answer === undefined || signal.aborted) return { type: "left" };
		if (answer.type !== "found") continue;
		if (answer.messageId !== undefined) return { type: "there", messageId: answer.messageId };
		if (answer.known) return { type: "absent" };
		// The platform knows the nonce of what it created a moment ago, and does not create it again.
		if (info.reconcile === "nonce" && live.idleMs < limits.nonceWindowMs) return { type: "absent" };
		return unknown("A message may or may not have been sent; the platform could not tell.");
	}
	return unknown("A message may or may not have been sent; it could not be looked up.");
}

/** Only stopping ends a request without an answer. */
const asLeft =
	(signal: AbortSignal) =>
	(cause: unknown): undefined => {
		if (!signal.aborted) throw cause;
	};
