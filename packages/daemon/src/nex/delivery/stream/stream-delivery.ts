/** Native streaming: pushes a run's log to the adapter's `stream` process, and after a crash goes on in the next one where the platform is. */

import { setImmediate } from "node:timers/promises";
import { FenceWatch, type StreamLine } from "@nexus-stream/adapter/host";
import type { DeliveryMessage } from "../../../ledger/ledger.ts";
import { speaks } from "../../accounts/account.ts";
import { type AnswerWatch, watchAnswer } from "../../accounts/answer-watch.ts";
import type { Seat, StreamClient } from "../../accounts/stream-port.ts";
import {
	type DeliveryAttachment,
	isErrorSent,
	showsPart,
	showsParts,
	showsReasoning,
	wantedAttachment,
} from "../attachments/attachment.ts";
import { isAttachmentNonce } from "../attachments/attachment-nonce.ts";
import { sayError, settleAttachment } from "../blocks/send-delivery.ts";
import { type DeliveryContext, type DeliveryOutcome, factsOf } from "../delivery-context.ts";
import { isEnd, readSource, type SourceEvent, type SourcePartEvent } from "../source.ts";
import { isResumable, isUnshown, leaveHalfShown } from "./half-shown.ts";
import { StreamAttachments } from "./stream-attachments.ts";
import { createLines } from "./stream-lines.ts";
import { StreamReports } from "./stream-reports.ts";
import { createTyping, type Typing } from "./typing.ts";
import { typingInputOf, typingRulesOf } from "./typing-rules.ts";

/** `begun`: an earlier process may have written some of it. */
export async function deliverByStream(context: DeliveryContext, begun: boolean): Promise<DeliveryOutcome> {
	if (begun && isHalfShown(context)) return leaveHalfShown(context);
	const left = await settleAttachment(context);
	if (left) return left;
	const attachments = new StreamAttachments(context);
	const outcome = await attemptAll(context, attachments);
	await attachments.idle();
	if (outcome.state !== "complete") return outcome;
	// With the basic fields alone it does not hear of the error text.
	const unheard = context.isFailed && !speaks(context.info, "runId");
	return (await attachments.rest()) ?? (unheard ? await sayError(context) : undefined) ?? outcome;
}

async function attemptAll(context: DeliveryContext, attachments: StreamAttachments): Promise<DeliveryOutcome> {
	const { signal, limits, clock, live } = context;
	for (let known = "", since = clock.now(); ; ) {
		const attempt = await attemptOnce(context, attachments);
		await attachments.idle();
		if (attempt.state !== "lost") return attempt;
		if (signal.aborted) return { state: "left" };
		context.log.warn({ ...factsOf(context.live), error: attempt.error }, "the adapter was lost; the delivery goes on");
		if (attempt.begun && isHalfShown(context)) return leaveHalfShown(context);
		const progress = JSON.stringify([live.row.cursor, live.unfinished?.shown]);
		if (progress !== known) since = clock.now();
		known = progress;
		if (clock.now() - since >= limits.giveUpMs) return { state: "failed", error: `Given up: ${attempt.error}` };
	}
}

type StreamOutcome = DeliveryOutcome | { state: "lost"; error: string; begun: boolean };

/** Something of it may be on the platform, and no process can go on with it. */
const isHalfShown = (context: DeliveryContext): boolean => !isResumable(context) && !isUnshown(context.live);

async function attemptOnce(context: DeliveryContext, attachments: StreamAttachments): Promise<StreamOutcome> {
	const { live, clock, signal, target } = context;
	const { promise, resolve } = Promise.withResolvers<StreamOutcome>();
	let seat: Seat | undefined;
	let watch: AnswerWatch | undefined;
	let isOver = false;
	const write = (line: StreamLine, begun?: () => void) => seat?.write(line, begun);
	const names = speaks(context.info, "runId") && { delivery: live.id, runId: live.row.runId };
	const typing = createTyping(typingRulesOf(context), clock, (on, doing) =>
		write({ type: "typing", target, on, ...doing, ...names }),
	);
	const message = (what: "out" | "grown") => typing.take({ type: what === "out" ? "message_out" : "message_grown" });
	const reports = new StreamReports(context, { write, message });
	const client: StreamClient = {
		runId: live.row.runId,
		lost(error) {
			reports.lost();
			resolve({ state: "lost", error, begun: true });
		},
		status(status) {
			// What a delivery that has ended still says does not count.
			if (isOver) return;
			watch?.touch();
			const outcome = reports.take(status);
			attachments.moved();
			if (!outcome) return;
			isOver = true;
			resolve(outcome);
		},
	};
	seat = await takeSeat(context, client);
	if (!seat) return { state: "lost", error: "the adapter does not run", begun: false };
	const taken = seat;
	const over = new AbortController();
	// Whoever took the delivery over goes on with its messages: this process must not touch them any more.
	const lost = () => taken.kill("works on a delivery that another daemon has taken over");
	if (live.lost.aborted) lost();
	else live.lost.addEventListener("abort", lost, { signal: over.signal });
	// It ends by itself once it is over; a full pipe must not hold up the outcome.
	const pushing = {
		delivering: context,
		seat,
		typing,
		attachments,
		signal: AbortSignal.any([signal, over.signal]),
	};
	const onEnd = (position: number, hasVisibleText: boolean) => {
		reports.ended(position, hasVisibleText);
		watch = watchdog(context, taken);
	};
	void pushAll(pushing, onEnd, () => resolve({ state: "complete" })).catch((cause: unknown) => {
		if (!signal.aborted) resolve({ state: "failed", error: `The answer could not be read: ${String(cause)}` });
	});
	const outcome = await promise;
	over.abort();
	watch?.end();
	typing.take({ type: "run_end" });
	seat.leave();
	return outcome;
}

/** Undefined when there is none within the time that a delivery may wait, or this process stops. */
async function takeSeat(context: DeliveryContext, client: StreamClient): Promise<Seat | undefined> {
	const { account, info, live, clock, limits } = context;
	const tooLate = new AbortController();
	const cancel = clock.after(limits.giveUpMs, () => tooLate.abort());
	const signal = AbortSignal.any([context.signal, tooLate.signal]);
	try {
		await account.gate.open(signal);
		return await account.stream(info).seat(live.id, client, signal);
	} catch (cause) {
		if (!signal.aborted) throw cause;
		return undefined;
	} finally {
		cancel();
	}
}

interface Pushing {
	delivering: DeliveryContext;
	seat: Seat;
	typing: Typing;
	attachments: StreamAttachments;
	/** The attempt is over. */
	signal: AbortSignal;
}

/** So many events at once mean that more lies in the log: everyone else has a turn in between. */
const LONG_BATCH = 64;

/** Writes the source from where the platform is, as fast as the process reads. */
async function pushAll(
	pushing: Pushing,
	onEnd: (position: number, hasVisibleText: boolean) => void,
	onNothing: () => void,
): Promise<void> {
	const { delivering: context, seat, typing, signal } = pushing;
	const { live, info, bus, log } = context;
	const { runId } = live.row;
	const named = speaks(info, "runId");
	const resume = named ? live.resume() : undefined;
	const position = resume?.position ?? 0;
	const push = pusher(pushing, position);
	const onDamage = (reason: string) => {
		context.damage = reason;
	};
	for await (const events of readSource(bus, runId, { position, signal, log, onDamage })) {
		if (signal.aborted) return;
		const end = events.find(({ event }) => isEnd(event));
		context.isFailed = end?.event.type === "stream_error";
		const [first] = events;
		// Of this answer nothing can be read. With the basic fields alone an adapter need not answer a stream_error.
		if (!named && first?.event.type === "stream_start" && events[1] === end && context.damage !== undefined)
			return onNothing();
		if (first?.event.type === "stream_start") seat.write(startLine(context, first, named, resume));
		const visible = live.unfinished?.state === "open" && !info.typing?.beside;
		await push.events(events);
		for (const { event } of events) {
			const input = typingInputOf(event, visible);
			if (input) typing.take(input);
		}
		if (end && !signal.aborted) onEnd(end.position, push.hasVisibleText);
		await seat.turn();
		if (events.length >= LONG_BATCH) await setImmediate();
	}
}

/** Events become lines; what stands beside the text is sent between them. */
function pusher({ delivering: context, seat, attachments, signal }: Pushing, start: number) {
	const { live, info, limits } = context;
	const { id, runId } = live.row;
	const named = speaks(info, "runId");
	const shows = { parts: showsParts(context), reasoning: showsReasoning(context) };
	const isOwn = (part: SourcePartEvent) => showsPart(context, part);
	const resumable = isResumable(context);
	const fields = named ? { delivery: id, runId } : undefined;
	const linesOf = createLines({
		fields,
		tokenCharsMax: limits.tokenCharsMax,
		// The others get each passage as a message: with the lines as well they would show it twice.
		reasoning: context.reasoning && shows.reasoning,
		parts: context.parts && info.supports.includes("parts"),
	});
	/** How far the text that was written has something to see. */
	let visibleUpTo = 0;
	/** How far the messages were ended, and how many. */
	let visibleAtEnd = 0;
	let ends = 0;
	/** The adapter may have begun a message, with text or before it (a tool, the placeholder), that has not been ended. */
	let begun = live.unfinished !== undefined || (context.options.placeholder ?? "") !== "";
	const fence = new FenceWatch();
	/** Where the next token line begins. */
	let written = start;
	/** Notes of what a process can have shown that does not say so. */
	const handed = (line: string): (() => void) | undefined => {
		if (resumable || !line.startsWith('{"type":"token"')) return undefined;
		written += (JSON.parse(line) as { text: string }).text.length;
		const reach = written;
		return () => {
			live.given = Math.max(live.given ?? 0, reach);
		};
	};
	const write = (events: readonly SourceEvent[]) => {
		for (const line of linesOf(events)) seat.write(line, handed(line));
		for (const { event, position } of events) {
			if (event.type === "stream_end") {
				fence.reset();
				begun = false;
				if (visibleUpTo > visibleAtEnd) ends++;
				visibleAtEnd = visibleUpTo;
			}
			if (event.type === "tool_status") begun = true;
			if (event.type !== "token") continue;
			if (!shows.parts || !shows.reasoning) fence.push(event.text);
			if (!/\S/.test(event.text)) continue;
			visibleUpTo = position + event.text.trimEnd().length;
			begun = true;
		}
	};
	/** What follows is in a new message. One that shows text from behind this place was begun when this had been passed. */
	const endMessage = ({ position, offset }: SourceEvent) => {
		if (begun && (live.unfinished?.shown ?? 0) <= position)
			seat.write({ type: "stream_end", runId, final: false, ...fields, offset });
		begun = false;
	};
	/** Without positions a message counts as finished when the adapter says so of the next one. One that does not is not waited for again. */
	const besideBlindly = async (attachment: DeliveryAttachment, event: SourceEvent) => {
		if (attachments.isHolding) return attachments.hold();
		const finished = () =>
			live.row.messages.filter(({ state, nonce }) => state === "sent" && !isAttachmentNonce(nonce)).length;
		const before = finished();
		const due = ends + 1;
		const isBegun = visibleUpTo > visibleAtEnd || live.unfinished !== undefined;
		begun = isBegun;
		endMessage(event);
		visibleAtEnd = visibleUpTo;
		if (isBegun) ends = due;
		const isOut = () => finished() >= due && finished() > before && !live.unfinished;
		await attachments.sayBehind(() => !isBegun || isOut(), attachment, signal);
	};
	const beside = async (attachment: DeliveryAttachment, event: SourceEvent) => {
		// A message that ended here would tear the code.
		if (fence.inside) return attachments.hold();
		if (!resumable) return besideBlindly(attachment, event);
		endMessage(event);
		await attachments.say(attachment, visibleUpTo, signal);
	};
	/** An earlier process sent it below a message that was then still to be ended or taken away. */
	const isBelow = ({ ordinal }: DeliveryMessage) => (live.unfinished?.ordinal ?? ordinal) < ordinal;
	const all = async (events: readonly SourceEvent[]): Promise<void> => {
		let from = 0;
		for (const [at, each] of events.entries()) {
			if (each.event.type !== "part") continue;
			const own = isOwn(each.event);
			if (own && each.position >= start) continue;
			write(events.slice(from, at));
			from = at + 1;
			const wanted = own ? undefined : wantedAttachment(context, each);
			if (wanted && !wanted.row) await beside(wanted.attachment, each);
			else if (wanted?.row && isBelow(wanted.row)) endMessage(each);
			if (signal.aborted) return;
		}
		write(from === 0 ? events : events.slice(from));
	};
	return {
		events: all,
		/** Something of what was written can be seen. */
		get hasVisibleText() {
			return visibleUpTo > 0;
		},
	};
}

function startLine(
	context: DeliveryContext,
	{ event, offset }: SourceEvent,
	named: boolean,
	resume: ReturnType<DeliveryContext["live"]["resume"]>,
): StreamLine {
	const { target, live, options } = context;
	const sessionLabel = event.type === "stream_start" ? event.sessionLabel : "";
	const line = { type: "stream_start" as const, runId: live.row.runId, sessionLabel, target };
	if (!named) return line;
	// The error text is no part of the source: once said, it is not said again.
	const choices = { tools: true, ...options, ...(isErrorSent(live.row) && { errorText: "" }) };
	return { ...line, delivery: live.id, offset, options: choices, resume };
}

/** An adapter that has the whole answer and says nothing is ended; the next one goes on. */
const watchdog = ({ clock, limits: { answerMs, giveUpMs }, account }: DeliveryContext, seat: Seat): AnswerWatch =>
	watchAnswer({
		clock,
		answerMs,
		giveUpMs,
		receivedAt: () => seat.receivedAt(),
		paused: () => account.gate.pausedUntil !== undefined,
		late: (ms) => seat.kill(`did not finish a delivery within ${ms} ms`),
	});
