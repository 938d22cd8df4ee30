import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createBroker, type RunStages } from "../../../src/broker/broker.ts";
import { createBus, sqliteStorage } from "../../../src/bus/bus.ts";
import type { EngineRequest } from "../../../src/engine/engine.ts";
import { type InboundEvent, type Ledger, type QueueSettings, sqliteLedger } from "../../../src/ledger/ledger.ts";
import { NexusError } from "../../../src/protocol/protocol.ts";
import { manualClock } from "../../../src/std/clock.ts";
import { silentLog } from "../../../src/std/log.ts";
import { openSqlite } from "../../../src/std/sqlite.ts";
import { atEffort } from "../../effort.ts";
import { engineOf, gate, never, type Play, rig, tempFile, text, ticks, until } from "../../broker/rig.ts";

const queueOf = (fields: Partial<QueueSettings> = {}): QueueSettings => ({
	...{ mode: "interrupt", collectMs: 100, messagesMax: 10, atCap: "drop_newest" },
	...fields,
});

/** Says "half" and waits to be stopped or let go. */
function patient() {
	const asked: EngineRequest[] = [];
	const doors: ReturnType<typeof gate>[] = [];
	const play: Play = async function* (request, signal) {
		const door = gate();
		asked.push(request);
		doors.push(door);
		yield text("half ");
		const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
		await Promise.race([door.opened, stopped]);
		if (!signal.aborted) yield text("whole");
	};
	return { play, asked, doors };
}

const dispositionOf = (ledger: Ledger, eventId: string) => ledger.event(eventId)!.disposition;
const usersOf = (request: EngineRequest) =>
	request.messages.filter((message) => message.role === "user").map((message) => message.text);

describe("interrupt", () => {
	test("I10: stops the run, keeps what was said, and answers all that waits in one run that names the originals", async () => {
		const { play, asked, doors } = patient();
		const { broker, ledger } = rig(play, { path: tempFile() });
		const submit = (said: string, queue: QueueSettings) => broker.submit({ session: "main", text: said, queue });
		const one = await submit("one", queueOf());
		await until(() => broker.live(one.runId!)?.text === "half ");
		const two = await submit("two", queueOf({ mode: "followup" }));
		const three = await submit("three", queueOf());
		expect([two, three].map(({ disposition }) => disposition.state)).toEqual(["queued", "queued"]);
		await until(() => asked.length === 2);

		const aborted = ledger.turn(one.runId!)!;
		expect(aborted).toMatchObject({ status: "aborted", messages: [{ text: "one" }, { text: "half " }] });
		const { runId } = asked[1]!;
		expect(dispositionOf(ledger, one.eventId)).toEqual({ state: "superseded", by: three.eventId, runId: one.runId });
		for (const { eventId } of [two, three]) expect(dispositionOf(ledger, eventId)).toEqual({ state: "batched", runId });
		const batch = ledger.events({ limit: 9 }).find((event) => event.batch);
		expect(batch).toMatchObject({ batch: [two.eventId, three.eventId], disposition: { state: "started", runId } });

		expect(usersOf(asked[1]!)).toEqual(["one", "two", "three"]);
		doors[1]!.open();
		await until(() => ledger.turn(runId) !== undefined);
		expect(ledger.turn(runId)!.messages.map(({ text: said, eventId }) => [said, eventId])).toEqual([
			["two", two.eventId],
			["three", three.eventId],
			["half whole", undefined],
		]);
	});

	test("a run that ends by itself meanwhile is not superseded", async () => {
		const { play, asked, doors } = patient();
		const { broker, ledger, bus } = rig(play);
		const one = await broker.submit({ session: "main", text: "one" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(async () => (await bus.describe(one.runId!))?.sealedAt !== undefined);
		await broker.submit({ session: "main", text: "two", queue: queueOf() });
		await until(() => asked.length === 2);
		expect(dispositionOf(ledger, one.eventId)).toEqual({ state: "started", runId: one.runId });
	});

	test("a run that had ended when it was told to stop, and was not yet on record, is not superseded", async () => {
		const { play, asked, doors } = patient();
		const { broker, ledger } = rig(play);
		const refused = gate();
		const settle = ledger.settle.bind(ledger);
		ledger.settle = () => {
			ledger.settle = settle;
			refused.open();
			throw new Error("no room");
		};
		const one = await broker.submit({ session: "main", text: "one" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await refused.opened;
		await broker.submit({ session: "main", text: "two", queue: queueOf() });
		await until(() => asked.length === 2);
		expect(ledger.turn(one.runId!)?.status).toBe("completed");
		expect(dispositionOf(ledger, one.eventId)).toEqual({ state: "started", runId: one.runId });
	});

	test("a run that is still being prepared is stopped as soon as it is one", async () => {
		const { play, asked } = patient();
		const { broker, ledger } = rig(play);
		const door = gate();
		let calls = 0;
		broker.attach({ prepare: () => (calls++ === 0 ? door.opened.then(() => ({})) : {}) });
		const first = broker.submit({ session: "main", text: "one" });
		await broker.submit({ session: "main", text: "two", queue: queueOf() });
		door.open();
		const { runId } = await first;
		await until(() => asked.length === 1);
		expect(ledger.turn(runId!)?.status).toBe("aborted");
		expect(usersOf(asked[0]!)).toEqual(["one", "two"]);
	});
});

describe("collect", () => {
	test("waits until nothing more comes, then answers together", async () => {
		const clock = manualClock(1000);
		const { play, asked } = patient();
		const { broker, ledger } = rig(play, { clock });
		const queue = queueOf({ mode: "collect" });
		const one = await broker.submit({ session: "main", text: "one", queue });
		expect(one.disposition).toEqual({ state: "queued" });
		clock.advance(60);
		await broker.submit({ session: "main", text: "two", queue });
		clock.advance(99);
		await ticks(3);
		expect(asked).toEqual([]);
		clock.advance(1);
		await until(() => asked.length === 1);
		expect(usersOf(asked[0]!)).toEqual(["one", "two"]);
		expect(dispositionOf(ledger, one.eventId).state).toBe("batched");
	});

	test("a single message is started, not batched", async () => {
		const clock = manualClock(1000);
		const { play, asked } = patient();
		const { broker, ledger } = rig(play, { clock });
		const one = await broker.submit({ session: "main", text: "one", queue: queueOf({ mode: "collect" }) });
		clock.advance(100);
		await until(() => asked.length === 1);
		expect(dispositionOf(ledger, one.eventId)).toEqual({ state: "started", runId: asked[0]!.runId });
		expect(ledger.events({ limit: 9 })).toHaveLength(1);
	});
});

test("reject: a busy session refuses, and nothing is recorded", async () => {
	const { broker, ledger } = rig(patient().play);
	const queue = queueOf({ mode: "reject" });
	await broker.submit({ session: "main", text: "one", queue });
	await expect(broker.submit({ session: "main", text: "two", queue })).rejects.toMatchObject({ code: "busy" });
	expect(ledger.events({ limit: 9 })).toHaveLength(1);
});

describe("I10, I11: at the cap", () => {
	async function crowded(atCap: QueueSettings["atCap"]) {
		const { play, asked, doors } = patient();
		const { broker, ledger } = rig(play);
		const queue = queueOf({ mode: "followup", messagesMax: 2, atCap });
		const accepted = [];
		for (const said of ["running", "one", "two", "three"])
			accepted.push(await broker.submit({ session: "main", text: said, queue }).catch(() => undefined));
		return { ledger, asked, doors, accepted };
	}

	test("drop_oldest says so of the one that was dropped", async () => {
		const { ledger, accepted } = await crowded("drop_oldest");
		expect(dispositionOf(ledger, accepted[1]!.eventId)).toEqual({
			...{ state: "dropped", because: "2 messages waited already, and a newer one came" },
		});
		expect(ledger.queued().map((event) => event.text)).toEqual(["two", "three"]);
	});

	test("drop_newest refuses", async () => {
		const { ledger, accepted } = await crowded("drop_newest");
		expect(accepted[3]).toBeUndefined();
		expect(ledger.queued().map((event) => event.text)).toEqual(["one", "two"]);
	});

	test("summarise leaves one line that names the originals, and the engine reads it", async () => {
		const { ledger, accepted, asked, doors } = await crowded("summarise");
		const [summary, three] = ledger.queued() as [InboundEvent, InboundEvent];
		expect(summary).toMatchObject({
			text: "[2 earlier messages, shortened] one · two",
			batch: [accepted[1]!.eventId, accepted[2]!.eventId],
		});
		expect(three.text).toBe("three");
		for (const one of accepted.slice(1, 3))
			expect(dispositionOf(ledger, one!.eventId)).toEqual({ state: "superseded", by: summary.eventId });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(() => asked.length === 2);
		expect(usersOf(asked[1]!).at(-1)).toBe(summary.text);
	});
});

describe("stages", () => {
	test("are called in order, can change what the engine is told, and the trace is saved with the turn", async () => {
		const { play, asked, doors } = patient();
		const { broker, ledger } = rig(play);
		const calls: string[] = [];
		const trace = { channel: "c", account: "a", sender: "s", stages: [], hooks: [], deliveries: [] };
		const stages: RunStages = {
			prepare: ({ events }) => {
				calls.push("prepare");
				return { events: events.map((event) => ({ ...event, text: "rewritten" })), context: ["it is late"] };
			},
			started: () => calls.push("started"),
			settling: (turn) => {
				calls.push("settling");
				return { ...turn, trace };
			},
			settled: () => calls.push("settled"),
		};
		broker.attach(stages);
		const { runId } = await broker.submit({ session: "main", text: "original" });
		await until(() => doors.length === 1);
		expect(asked[0]!.messages.map((message) => message.text)).toEqual(["[Context]\nit is late", "rewritten"]);
		doors[0]!.open();
		await until(() => calls.includes("settled"));
		expect(calls).toEqual(["prepare", "started", "settling", "settled"]);
		expect(ledger.turn(runId!)).toMatchObject({ trace, messages: [{ text: "rewritten" }, {}] });
	});

	test("one that fails after the start is logged, and the run goes on and ends", async () => {
		const logged: string[] = [];
		const { play, doors } = patient();
		const { broker, ledger } = rig(play, { log: { ...silentLog, error: (_, message) => void logged.push(message) } });
		const fail = () => {
			throw new Error("odd");
		};
		broker.attach({ started: fail, settling: fail, settled: fail });
		const { runId } = await broker.submit({ session: "main", text: "one" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(() => logged.length === 3);
		expect(ledger.turn(runId!)?.status).toBe("completed");
		expect(new Set(logged)).toEqual(new Set(["a stage of the run failed"]));
	});

	test("a preparation that fails refuses the message, and rejects one that waited", async () => {
		const { play, doors } = patient();
		const { broker, ledger } = rig(play);
		let refusing = true;
		broker.attach({
			prepare: () => (refusing ? Promise.reject(new NexusError("forbidden", "not today")) : {}),
		});
		await expect(broker.submit({ session: "main", text: "one" })).rejects.toMatchObject({ code: "forbidden" });
		expect(ledger.events({ limit: 9 })).toEqual([]);
		refusing = false;
		await broker.submit({ session: "main", text: "two" });
		const three = await broker.submit({ session: "main", text: "three" });
		await until(() => doors.length === 1);
		refusing = true;
		doors[0]!.open();
		await until(() => dispositionOf(ledger, three.eventId).state === "rejected");
		expect(dispositionOf(ledger, three.eventId)).toEqual({ state: "rejected", because: "not today" });
	});

	test("what is being prepared when the daemon stops stays queued", async () => {
		const { play, doors } = patient();
		const { broker, ledger } = rig(play);
		const door = gate();
		await broker.submit({ session: "main", text: "one" });
		const two = await broker.submit({ session: "main", text: "two" });
		const preparing = gate();
		broker.attach({
			prepare: () => {
				preparing.open();
				return door.opened.then(() => ({}));
			},
		});
		await until(() => doors.length === 1);
		doors[0]!.open();
		await preparing.opened;
		await broker.drain(1000);
		door.open();
		await ticks(5);
		expect(dispositionOf(ledger, two.eventId)).toEqual({ state: "queued" });
	});
});

const settings = fc.record({
	mode: fc.constantFrom("followup", "interrupt", "collect", "reject"),
	atCap: fc.constantFrom("drop_oldest", "drop_newest", "summarise"),
	messagesMax: fc.integer({ min: 1, max: 3 }),
	collectMs: fc.constantFrom(1, 5),
}) satisfies fc.Arbitrary<QueueSettings>;

test("I10: for all arrivals, paces, modes and a kill in the middle nothing is lost and order is kept", async () => {
	const plan = fc.array(fc.tuple(fc.constantFrom("a", "b"), settings, fc.nat(4)), { minLength: 1, maxLength: 12 });
	await fc.assert(
		fc.asyncProperty(plan, fc.nat(12), async (messages, killAfter) => {
			const path = tempFile();
			const accepted: string[] = [];
			const send = async (broker: ReturnType<typeof rig>["broker"], part: typeof messages) => {
				for (const [session, queue, pause] of part) {
					const answer = broker.submit({ session, text: `${accepted.length}`, queue });
					await answer.then(({ eventId }) => accepted.push(eventId)).catch(() => undefined);
					await ticks(pause);
				}
			};
			// The process that dies: its engine goes on for ever, its clock stands still, and nothing of it is closed.
			const clock = manualClock(Date.now());
			const dead = openSqlite(path, "process");
			const deadBus = createBus({ storage: sqliteStorage(dead) });
			const limits = { abortGraceMs: 0 };
			const engine = engineOf(async function* () {
				await never;
				yield text("");
			});
			await send(
				createBroker({ bus: deadBus, ledger: sqliteLedger(dead), engine, limits, clock }),
				messages.slice(0, killAfter),
			);
			// What is being stopped would otherwise go on writing beside its successor.
			await ticks(20);

			const seen = new Map<string, string[]>();
			const { broker, ledger } = rig(
				async function* ({ session, runId, messages: context }) {
					const asked = ledger.events({ session, limit: 99 }).filter((event) => !event.batch);
					seen.set(session, [...(seen.get(session) ?? []), ...asked.flatMap(ofRun(runId)).reverse()]);
					yield text(`re ${context.at(-1)?.text}`);
				},
				{ path, limits },
			);
			await broker.recover();
			await send(broker, messages.slice(killAfter));
			await until(() => ledger.queued().length === 0 && broker.liveRuns().length === 0);
			for (const eventId of accepted) {
				const { disposition } = ledger.event(eventId)!;
				expect(["started", "batched", "superseded", "dropped"]).toContain(disposition.state);
				if ("runId" in disposition) expect(ledger.turn(disposition.runId!)).toBeDefined();
			}
			for (const [, order] of seen) expect(order).toEqual(order.toSorted());
			// What a run was asked is exactly what its turn says it was asked, each message in one turn only.
			const answered = ledger.turns({ limit: 99 }).flatMap((turn) => turn.messages.flatMap((one) => one.eventId ?? []));
			expect(new Set(answered).size).toBe(answered.length);
		}),
		{ numRuns: atEffort(100, 25), endOnFailure: true },
	);
}, 60_000);

const ofRun =
	(runId: string) =>
	({ eventId, disposition }: InboundEvent): string[] =>
		"runId" in disposition && disposition.runId === runId ? [eventId] : [];
