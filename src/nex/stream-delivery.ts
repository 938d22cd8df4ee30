/** Native streaming: pushes a run's log to the adapter's `stream` process, and after a crash goes on in the next one where the platform is. */

import { setImmediate } from "node:timers/promises";
import { FenceWatch, type StreamLine } from "../adapter/adapter.ts";
import type { DeliveryMessage } from "../ledger/ledger.ts";
import { speaks } from "./account.ts";
import { type Aside, isErrorSaid, showsPart, showsParts, showsReasoning, wantedAside } from "./aside.ts";
import { isAside } from "./aside-nonce.ts";
import { type Delivering, factsOf, type Outcome } from "./delivering.ts";
import { isResumable, isUnshown, leaveHalfShown } from "./half-shown.ts";
import { sayError, settleAside } from "./send-delivery.ts";
import { isEnd, type PartEvent, readSource, type SourceEvent } from "./source.ts";
import { StreamAsides } from "./stream-asides.ts";
import { createLines } from "./stream-lines.ts";
import { StreamReports } from "./stream-reports.ts";
import { type AnswerWatch, watchAnswer } from "./supervise/answer-watch.ts";
import type { Seat, StreamClient } from "./supervise/stream-port.ts";
import { createTyping, type Typing } from "./typing.ts";
import { typingInputOf, typingRulesOf } from "./typing-rules.ts";

/** `begun`: an earlier process may have written some of it. */
export async function deliverByStream(delivering: Delivering, begun: boolean): Promise<Outcome> {
	if (begun && isHalfShown(delivering)) return leaveHalfShown(delivering);
	const left = await settleAside(delivering);
	if (left) return left;
	const asides = new StreamAsides(delivering);
	const outcome = await attemptAll(delivering, asides);
	await asides.idle();
	if (outcome.state !== "complete") return outcome;
	// With the basic fields alone it does not hear of the error text.
	const unheard = delivering.isFailed && !speaks(delivering.info, "runId");
	return (await asides.rest()) ?? (unheard ? await sayError(delivering) : undefined) ?? outcome;
}

async function attemptAll(delivering: Delivering, asides: StreamAsides): Promise<Outcome> {
	const { signal, limits, clock, tracked } = delivering;
	for (let known = "", since = clock.now(); ; ) {
		const attempt = await attemptOnce(delivering, asides);
		await asides.idle();
		if (attempt.state !== "lost") return attempt;
		if (signal.aborted) return { state: "left" };
		delivering.log.warn(
			{ ...factsOf(delivering.tracked), error: attempt.error },
			"the adapter was lost; the delivery goes on",
		);
		if (attempt.begun && isHalfShown(delivering)) return leaveHalfShown(delivering);
		const progress = JSON.stringify([tracked.row.cursor, tracked.unfinished?.shown]);
		if (progress !== known) since = clock.now();
		known = progress;
		if (clock.now() - since >= limits.giveUpMs) return { state: "failed", error: `Given up: ${attempt.error}` };
	}
}

type Attempt = Outcome | { state: "lost"; error: string; begun: boolean };

/** Something of it may be on the platform, and no process can go on with it. */
const isHalfShown = (delivering: Delivering): boolean => !isResumable(delivering) && !isUnshown(delivering.tracked);

async function attemptOnce(delivering: Delivering, asides: StreamAsides): Promise<Attempt> {
	const { tracked, clock, signal, target } = delivering;
	const { promise, resolve } = Promise.withResolvers<Attempt>();
	let seat: Seat | undefined;
	let watch: AnswerWatch | undefined;
	let isOver = false;
	const write = (line: StreamLine, begun?: () => void) => seat?.write(line, begun);
	const names = speaks(delivering.info, "runId") && { delivery: tracked.id, runId: tracked.row.runId };
	const typing = createTyping(typingRulesOf(delivering), clock, (on, doing) =>
		write({ type: "typing", target, on, ...doing, ...names }),
	);
	const message = (what: "out" | "grown") => typing.take({ type: what === "out" ? "message_out" : "message_grown" });
	const reports = new StreamReports(delivering, { write, message });
	const client: StreamClient = {
		runId: tracked.row.runId,
		lost(error) {
			reports.lost();
			resolve({ state: "lost", error, begun: true });
		},
		status(status) {
			// What a delivery that has ended still says does not count.
			if (isOver) return;
			watch?.touch();
			const outcome = reports.take(status);
			asides.moved();
			if (!outcome) return;
			isOver = true;
			resolve(outcome);
		},
	};
	seat = await takeSeat(delivering, client);
	if (!seat) return { state: "lost", error: "the adapter does not run", begun: false };
	const taken = seat;
	const over = new AbortController();
	// Whoever took the delivery over goes on with its messages: this process must not touch them any more.
	const lost = () => taken.kill("works on a delivery that another daemon has taken over");
	if (tracked.lost.aborted) lost();
	else tracked.lost.addEventListener("abort", lost, { signal: over.signal });
	// It ends by itself once it is over; a full pipe must not hold up the outcome.
	const pushing = { delivering, seat, typing, asides, signal: AbortSignal.any([signal, over.signal]) };
	const onEnd = (position: number, inked: boolean) => {
		reports.ended(position, inked);
		watch = watchdog(delivering, taken);
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
async function takeSeat(delivering: Delivering, client: StreamClient): Promise<Seat | undefined> {
	const { account, info, tracked, clock, limits } = delivering;
	const tooLate = new AbortController();
	const cancel = clock.after(limits.giveUpMs, () => tooLate.abort());
	const signal = AbortSignal.any([delivering.signal, tooLate.signal]);
	try {
		await account.gate.open(signal);
		return await account.stream(info).seat(tracked.id, client, signal);
	} catch (cause) {
		if (!signal.aborted) throw cause;
		return undefined;
	} finally {
		cancel();
	}
}

interface Pushing {
	delivering: Delivering;
	seat: Seat;
	typing: Typing;
	asides: StreamAsides;
	/** The attempt is over. */
	signal: AbortSignal;
}

/** So many events at once mean that more lies in the log: everyone else has a turn in between. */
const LONG_BATCH = 64;

/** Writes the source from where the platform is, as fast as the process reads. */
async function pushAll(
	pushing: Pushing,
	onEnd: (position: number, inked: boolean) => void,
	onNothing: () => void,
): Promise<void> {
	const { delivering, seat, typing, signal } = pushing;
	const { tracked, info, bus, log } = delivering;
	const { runId } = tracked.row;
	const named = speaks(info, "runId");
	const resume = named ? tracked.resume() : undefined;
	const position = resume?.position ?? 0;
	const push = pusher(pushing, position);
	const onDamage = (reason: string) => {
		delivering.damage = reason;
	};
	for await (const events of readSource(bus, runId, { position, signal, log, onDamage })) {
		if (signal.aborted) return;
		const end = events.find(({ event }) => isEnd(event));
		delivering.isFailed = end?.event.type === "stream_error";
		const [first] = events;
		// Of this answer nothing can be read. With the basic fields alone an adapter need not answer a stream_error.
		if (!named && first?.event.type === "stream_start" && events[1] === end && delivering.damage !== undefined)
			return onNothing();
		if (first?.event.type === "stream_start") seat.write(startLine(delivering, first, named, resume));
		const visible = tracked.unfinished?.state === "open" && !info.typing?.beside;
		await push.events(events);
		for (const { event } of events) {
			const input = typingInputOf(event, visible);
			if (input) typing.take(input);
		}
		if (end && !signal.aborted) onEnd(end.position, push.inked);
		await seat.turn();
		if (events.length >= LONG_BATCH) await setImmediate();
	}
}

/** Events become lines; what stands beside the text is sent between them. */
function pusher({ delivering, seat, asides, signal }: Pushing, start: number) {
	const { tracked, info, limits } = delivering;
	const { id, runId } = tracked.row;
	const named = speaks(info, "runId");
	const shows = { parts: showsParts(delivering), reasoning: showsReasoning(delivering) };
	const isOwn = (part: PartEvent) => showsPart(delivering, part);
	const resumable = isResumable(delivering);
	const fields = named ? { delivery: id, runId } : undefined;
	const linesOf = createLines({
		fields,
		tokenCharsMax: limits.tokenCharsMax,
		// The others get each passage as a message: with the lines as well they would show it twice.
		reasoning: delivering.reasoning && shows.reasoning,
		parts: delivering.parts && info.supports.includes("parts"),
	});
	/** How far the text that was written has something to see. */
	let ink = 0;
	/** How far the messages were ended, and how many. */
	let inkEnded = 0;
	let ends = 0;
	/** The adapter may have begun a message, with text or before it (a tool, the placeholder), that has not been ended. */
	let begun = tracked.unfinished !== undefined || (delivering.options.placeholder ?? "") !== "";
	const fence = new FenceWatch();
	/** Where the next token line begins. */
	let written = start;
	/** Notes of what a process can have shown that does not say so. */
	const handed = (line: string): (() => void) | undefined => {
		if (resumable || !line.startsWith('{"type":"token"')) return undefined;
		written += (JSON.parse(line) as { text: string }).text.length;
		const reach = written;
		return () => {
			tracked.given = Math.max(tracked.given ?? 0, reach);
		};
	};
	const write = (events: readonly SourceEvent[]) => {
		for (const line of linesOf(events)) seat.write(line, handed(line));
		for (const { event, position } of events) {
			if (event.type === "stream_end") {
				fence.reset();
				begun = false;
				if (ink > inkEnded) ends++;
				inkEnded = ink;
			}
			if (event.type === "tool_status") begun = true;
			if (event.type !== "token") continue;
			if (!shows.parts || !shows.reasoning) fence.push(event.text);
			if (!/\S/.test(event.text)) continue;
			ink = position + event.text.trimEnd().length;
			begun = true;
		}
	};
	/** What follows is in a new message. One that shows text from behind this place was begun when this had been passed. */
	const endMessage = ({ position, offset }: SourceEvent) => {
		if (begun && (tracked.unfinished?.shown ?? 0) <= position)
			seat.write({ type: "stream_end", runId, final: false, ...fields, offset });
		begun = false;
	};
	/** Without positions a message counts as finished when the adapter says so of the next one. One that does not is not waited for again. */
	const besideBlindly = async (aside: Aside, event: SourceEvent) => {
		if (asides.isHolding) return asides.hold();
		const finished = () =>
			tracked.row.messages.filter(({ state, nonce }) => state === "sent" && !isAside(nonce)).length;
		const before = finished();
		const due = ends + 1;
		const isBegun = ink > inkEnded || tracked.unfinished !== undefined;
		begun = isBegun;
		endMessage(event);
		inkEnded = ink;
		if (isBegun) ends = due;
		const isOut = () => finished() >= due && finished() > before && !tracked.unfinished;
		await asides.sayBehind(() => !isBegun || isOut(), aside, signal);
	};
	const beside = async (aside: Aside, event: SourceEvent) => {
		// A message that ended here would tear the code.
		if (fence.inside) return asides.hold();
		if (!resumable) return besideBlindly(aside, event);
		endMessage(event);
		await asides.say(aside, ink, signal);
	};
	/** An earlier process sent it below a message that was then still to be ended or taken away. */
	const isBelow = ({ ordinal }: DeliveryMessage) => (tracked.unfinished?.ordinal ?? ordinal) < ordinal;
	const all = async (events: readonly SourceEvent[]): Promise<void> => {
		let from = 0;
		for (const [at, each] of events.entries()) {
			if (each.event.type !== "part") continue;
			const own = isOwn(each.event);
			if (own && each.position >= start) continue;
			write(events.slice(from, at));
			from = at + 1;
			const wanted = own ? undefined : wantedAside(delivering, each);
			if (wanted && !wanted.known) await beside(wanted.aside, each);
			else if (wanted?.known && isBelow(wanted.known)) endMessage(each);
			if (signal.aborted) return;
		}
		write(from === 0 ? events : events.slice(from));
	};
	return {
		events: all,
		/** Something of what was written can be seen. */
		get inked() {
			return ink > 0;
		},
	};
}

function startLine(
	delivering: Delivering,
	{ event, offset }: SourceEvent,
	named: boolean,
	resume: ReturnType<Delivering["tracked"]["resume"]>,
): StreamLine {
	const { target, tracked, options } = delivering;
	const sessionLabel = event.type === "stream_start" ? event.sessionLabel : "";
	const line = { type: "stream_start" as const, runId: tracked.row.runId, sessionLabel, target };
	if (!named) return line;
	// The error text is no part of the source: once said, it is not said again.
	const choices = { tools: true, ...options, ...(isErrorSaid(tracked.row) && { errorText: "" }) };
	return { ...line, delivery: tracked.id, offset, options: choices, ...(resume && { resume }) };
}

/** An adapter that has the whole answer and says nothing is ended; the next one goes on. */
const watchdog = ({ clock, limits: { answerMs, giveUpMs }, account }: Delivering, seat: Seat): AnswerWatch =>
	watchAnswer({
		...{ clock, answerMs, giveUpMs, heardAt: () => seat.heardAt() },
		paused: () => account.gate.pausedUntil !== undefined,
		late: (ms) => seat.kill(`did not finish a delivery within ${ms} ms`),
	});
