/** A Broker on a real Bus and Ledger with an engine made of one function, and ways to look at what it did. */

import { join } from "node:path";
import type { Engine, EngineContext, EngineEvent, EngineRequest, EngineYield } from "@nexus-stream/protocol/engine";
import {
	type Broker,
	type BrokerOptions,
	createBroker,
	type ExecuteRequest,
} from "../../packages/daemon/src/broker/broker.ts";
import { type Bus, follow } from "../../packages/daemon/src/bus/bus.ts";
import { inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import type { Clock } from "../../packages/protocol/src/clock.ts";
import {
	createToEvents,
	createVerifier,
	decodeFrame,
	type EndFrame,
	type Frame,
	newEventId,
	newRunId,
	type StreamEvent,
} from "../../packages/protocol/src/protocol.ts";
import { quiet } from "../quiet.ts";
import { freshFolder } from "../runtime/folder.ts";
import { type ForTestOptions, type Look, storeForTest } from "../store.ts";
import { until as waitUntil } from "../until.ts";

export type Play = (request: EngineRequest, signal: AbortSignal, context: EngineContext) => AsyncIterable<EngineYield>;

export const engineOf = (play: Play): Engine => ({
	name: "played",
	run: (request, context) => play(request, context.signal, context),
});

export interface RigOptions
	extends Partial<Pick<BrokerOptions, "limits" | "clock" | "log" | "approvals">>,
		Pick<ForTestOptions, "path" | "connection"> {
	/** The Bus's clock; the system's by default. */
	busClock?: Clock;
	/** Further fields of the engine. */
	engineFields?: Partial<Engine>;
	/** Its process dies: nothing of it is closed. */
	dies?: boolean;
}

export function rig(play: Play, { path, connection, dies, busClock, engineFields, ...options }: RigOptions = {}) {
	const store = storeForTest({ path, connection, dies, clock: busClock });
	const { bus, ledger } = store;
	const broker = createBroker({ ...quiet, bus, ledger, engine: { ...engineOf(play), ...engineFields }, ...options });
	return { ...store, broker, frames: (runId: string) => framesOf(bus, runId) };
}

/** A question with its event on record, as the inbox asks it; resolves once its run has begun. */
export async function ask(broker: Broker, session: string, text: string, fields: Partial<ExecuteRequest> = {}) {
	const eventId = newEventId();
	const runId = newRunId();
	const event = { eventId, session, text, attachments: [], receivedAt: Date.now() };
	const begin = [inboxWrites.accept({ ...event, disposition: { state: "started", runId } })];
	const execution = broker.execute({ session, runId, events: [event], begin, ...fields });
	await execution.established;
	return { runId, eventId, ...execution };
}

/** The events of a run, from the first on, until it has ended. */
export async function eventsOf(bus: Bus, runId: string): Promise<StreamEvent[]> {
	const mapping = createToEvents();
	const events: StreamEvent[] = [];
	for await (const batch of follow(await bus.cursor({ log: runId }, 0))) {
		for (const record of batch.records) events.push(...[mapping.push(decodeFrame(record)) ?? []].flat());
	}
	return events;
}

/** A database file of the test's own. */
export const tempFile = (): string => join(freshFolder(), "nexus.db");

/** The visible frames of a log. */
export async function framesOf(bus: Bus, runId: string): Promise<Frame[]> {
	const { head } = (await bus.describe(runId)) ?? { head: 0 };
	const cursor = await bus.cursor({ log: runId }, 0);
	const frames: Frame[] = [];
	while (cursor.offset < head) {
		const batch = await cursor.next();
		if (batch) frames.push(...batch.records.map(decodeFrame));
		else await ticks(1);
	}
	cursor.close();
	return frames;
}

/** The first rule that a whole log breaks. */
export function verified(frames: readonly Frame[]) {
	const verifier = createVerifier();
	for (const frame of frames) {
		const violation = verifier.push(frame);
		if (violation) return violation;
	}
	return verifier.finish();
}

export function finalEnd(frames: readonly Frame[]): EndFrame {
	const last = frames.at(-1);
	if (last?.type !== "stream.end" || !last.final) throw new Error(`no final end but ${JSON.stringify(last)}`);
	return last;
}

export const until = (holds: () => boolean | Promise<boolean>, what = String(holds)): Promise<void> =>
	waitUntil(what, holds);

/** Gives everything that is under way the chance to go on. */
export async function ticks(count: number): Promise<void> {
	for (let n = 0; n < count; n++) await new Promise((resolve) => setImmediate(resolve));
}

/** A door that a played engine waits at. */
export function gate() {
	const { promise, resolve } = Promise.withResolvers<void>();
	return { opened: promise, open: resolve };
}

export const turnWhenSettled = async (look: Look, runId: string) => {
	await until(() => look.turn(runId) !== undefined, `the turn of ${runId}`);
	return look.turn(runId)!;
};

export const never = new Promise<never>(() => {});

/** An engine that yields these, one after the other, and ends. */
export const yields = (...events: EngineYield[]) =>
	async function* (): AsyncIterable<EngineYield> {
		yield* events;
	};

/** An engine that yields these and then hangs. */
export const yieldsThenWaits = (...events: EngineYield[]) =>
	async function* (): AsyncIterable<EngineYield> {
		yield* events;
		await never;
	};

/** One question to the session `main`, as run `run_1`. */
export const request = (fields = {}) => ({
	session: "main",
	runId: "run_1",
	events: [{ eventId: "evt_1", text: "question", attachments: [] }],
	...fields,
});
export const text = (delta: string): EngineEvent => ({ type: "text", delta });
export const started = (callId: string): EngineEvent => ({ type: "tool", callId, name: "look", status: "started" });
