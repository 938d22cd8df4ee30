/** Native streaming: writes a run's log to the adapter's `stream` process, and after a crash continues in the next process. */

import { setImmediate } from "node:timers/promises";
import type { StreamLine } from "@nexus-stream/adapter/port";
import { speaks } from "../../accounts/account.ts";
import { type AnswerWatch, watchAnswer } from "../../accounts/answer-watch.ts";
import type { LineProcess } from "../../accounts/line-process.ts";
import type { StreamClient } from "../../accounts/stream-port.ts";
import { isErrorSent } from "../attachments/attachment.ts";
import { sendError, settleAttachment } from "../blocks/send-delivery.ts";
import { type DeliveryContext, type DeliveryOutcome, factsOf } from "../delivery-context.ts";
import { isEnd, readSource, type SourceEvent } from "../source.ts";
import { isResumable, isUnshown, leaveHalfShown } from "./half-shown.ts";
import { StreamAttachments } from "./stream-attachments.ts";
import { type Push, StreamPusher } from "./stream-pusher.ts";
import { StreamReports } from "./stream-reports.ts";
import { createTyping, type Typing, typingInputOf, typingRulesOf } from "./typing.ts";

/** `begun`: an earlier process may have written some of it. */
export async function deliverByStream(context: DeliveryContext, begun: boolean): Promise<DeliveryOutcome> {
	if (begun && isHalfShown(context)) return leaveHalfShown(context);
	const unsettled = await settleAttachment(context);
	if (unsettled) return unsettled;
	const attachments = new StreamAttachments(context);
	const outcome = await attemptAll(context, attachments);
	await attachments.idle();
	if (outcome.state !== "complete") return outcome;
	// An adapter with only the basic fields does not get the error text in the stream.
	const needsError = context.isFailed && !speaks(context.info, "runId");
	return (await attachments.sendDeferred()) ?? (needsError ? await sendError(context) : undefined) ?? outcome;
}

async function attemptAll(context: DeliveryContext, attachments: StreamAttachments): Promise<DeliveryOutcome> {
	const { signal, limits, clock, live } = context;
	for (let lastProgress = "", since = clock.now(); ; ) {
		const attempt = await attemptOnce(context, attachments);
		await attachments.idle();
		if (attempt.state !== "lost") return attempt;
		if (signal.aborted) return { state: "left" };
		context.log.warn(
			{ ...factsOf(context.live), error: attempt.error },
			"the adapter ended; the delivery continues in the next process",
		);
		if (attempt.begun && isHalfShown(context)) return leaveHalfShown(context);
		const progress = JSON.stringify([live.row.cursor, live.unfinished?.shown]);
		if (progress !== lastProgress) since = clock.now();
		lastProgress = progress;
		if (clock.now() - since >= limits.giveUpMs) return { state: "failed", error: `Given up: ${attempt.error}` };
	}
}

type StreamOutcome = DeliveryOutcome | { state: "lost"; error: string; begun: boolean };

/** The platform may show a part of the text, and no process can resume it. */
const isHalfShown = (context: DeliveryContext): boolean => !isResumable(context) && !isUnshown(context.live);

async function attemptOnce(context: DeliveryContext, attachments: StreamAttachments): Promise<StreamOutcome> {
	const { live, clock, signal, target } = context;
	const { promise, resolve } = Promise.withResolvers<StreamOutcome>();
	let process: LineProcess | undefined;
	let watch: AnswerWatch | undefined;
	let isOver = false;
	const write = (line: StreamLine, begun?: () => void) => process?.write(line, begun);
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
			// Reports after the end of the delivery do not count.
			if (isOver) return;
			watch?.touch();
			const outcome = reports.take(status);
			attachments.moved();
			if (!outcome) return;
			isOver = true;
			resolve(outcome);
		},
	};
	const joined = await join(context, client);
	if (!joined) return { state: "lost", error: "the adapter does not run", begun: false };
	const running = joined.process;
	process = running;
	const over = new AbortController();
	// The daemon that took over continues with these messages: this process must not touch them any more.
	const lost = () => running.kill("works on a delivery that another daemon has taken over");
	if (live.lost.aborted) lost();
	else live.lost.addEventListener("abort", lost, { signal: over.signal });
	const push = { context, process: running, attachments, signal: AbortSignal.any([signal, over.signal]) };
	const onEnd = (position: number, hasVisibleText: boolean) => {
		reports.ended(position, hasVisibleText);
		watch = watchdog(context, running);
	};
	// Not awaited: a full pipe must not delay the outcome.
	void pushAll(push, typing, onEnd, () => resolve({ state: "complete" })).catch((cause: unknown) => {
		if (!signal.aborted) resolve({ state: "failed", error: `The answer could not be read: ${String(cause)}` });
	});
	const outcome = await promise;
	over.abort();
	watch?.end();
	typing.take({ type: "run_end" });
	joined.leave();
	return outcome;
}

/** Undefined when no process runs within the time that a delivery may wait, or this process stops. */
async function join(context: DeliveryContext, client: StreamClient) {
	const { account, info, live, clock, limits } = context;
	const tooLate = new AbortController();
	const cancel = clock.after(limits.giveUpMs, () => tooLate.abort());
	const signal = AbortSignal.any([context.signal, tooLate.signal]);
	try {
		await account.rate.open(signal);
		return await account.stream(info).join(live.id, client, signal);
	} catch (cause) {
		if (!signal.aborted) throw cause;
		return undefined;
	} finally {
		cancel();
	}
}

/** A batch this long means that the log has a backlog: other work gets a turn in between. */
const LONG_BATCH = 64;

/** Writes the source from the platform's position on, as fast as the process reads. */
async function pushAll(
	push: Push,
	typing: Typing,
	onEnd: (position: number, hasVisibleText: boolean) => void,
	onNothing: () => void,
): Promise<void> {
	const { context, process, signal } = push;
	const { live, info, bus, log } = context;
	const { runId } = live.row;
	const named = speaks(info, "runId");
	const resume = named ? live.resume() : undefined;
	const position = resume?.position ?? 0;
	const pusher = new StreamPusher(push, position);
	const onDamage = (reason: string) => {
		context.damage = reason;
	};
	for await (const events of readSource(bus, runId, { position, signal, log, onDamage })) {
		if (signal.aborted) return;
		const end = events.find(({ event }) => isEnd(event));
		context.isFailed = end?.event.type === "stream_error";
		const [first] = events;
		// No part of this answer can be read, and an adapter with only the basic fields need not answer a stream_error.
		if (!named && first?.event.type === "stream_start" && events[1] === end && context.damage !== undefined)
			return onNothing();
		if (first?.event.type === "stream_start") process.write(startLine(context, first, named, resume));
		const visible = live.unfinished?.state === "open" && !info.typing?.beside;
		await pusher.push(events);
		for (const { event } of events) {
			const input = typingInputOf(event, visible);
			if (input) typing.take(input);
		}
		if (end && !signal.aborted) onEnd(end.position, pusher.hasVisibleText);
		await process.turn();
		if (events.length >= LONG_BATCH) await setImmediate();
	}
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
	const choices = { tools: true, ...options };
	// The error text is sent only once.
	if (isErrorSent(live.row)) choices.errorText = "";
	return { ...line, delivery: live.id, offset, options: choices, resume };
}

/** Kills an adapter that has the whole answer and reports nothing; the next process continues. */
const watchdog = ({ clock, limits, account, info }: DeliveryContext, process: LineProcess): AnswerWatch =>
	watchAnswer({
		clock,
		answerMs: limits.answerMs,
		giveUpMs: limits.giveUpMs,
		receivedAt: () => account.stream(info).receivedAt,
		paused: () => account.rate.pausedUntil !== undefined,
		late: (ms) => process.kill(`did not finish a delivery within ${ms} ms`),
	});
