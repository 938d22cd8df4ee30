import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { InboundEvent, QueueSettings } from "../../../packages/daemon/src/ledger/inbox/port.ts";
import type { Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { gate, tempFile, text, ticks, until } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";
import { type Look, refuseWrites } from "../../store.ts";
import { nexRig, patient, queueOf, silent, usersOf } from "./rig.ts";

const dispositionOf = (look: Look, eventId: string) => look.event(eventId)!.disposition;
describe("interrupt", () => {
	test("I10: stops the run, keeps what was said, and answers all that waits in one run that names the originals", async () => {
		const { play, asked, doors } = patient({ last: true });
		const { broker, submit, look } = nexRig(play, { path: tempFile() });
		const say = (said: string, queue: QueueSettings) => submit({ session: "main", text: said, queue });
		const one = await say("one", queueOf("interrupt"));
		await until(() => broker.live(one.runId!)?.text === "half ");
		const two = await say("two", queueOf("followup"));
		const three = await say("three", queueOf("interrupt"));
		expect([two, three].map(({ disposition }) => disposition.state)).toEqual(["queued", "queued"]);
		await until(() => asked.length === 2);

		const aborted = look.turn(one.runId!)!;
		expect(aborted).toMatchObject({ status: "aborted", messages: [{ text: "one" }, { text: "half " }] });
		const { runId } = asked[1]!;
		expect(dispositionOf(look, one.eventId)).toEqual({ state: "superseded", by: three.eventId, runId: one.runId });
		for (const { eventId } of [two, three]) expect(dispositionOf(look, eventId)).toEqual({ state: "batched", runId });
		const batch = look.events({ limit: 9 }).find((event) => event.batch);
		expect(batch).toMatchObject({ batch: [two.eventId, three.eventId], disposition: { state: "started", runId } });

		expect(usersOf(asked[1]!)).toEqual(["one", "two", "three"]);
		doors[1]!.open();
		await until(() => look.turn(runId) !== undefined);
		expect(look.turn(runId)!.messages.map(({ text: said, eventId }) => [said, eventId])).toEqual([
			["two", two.eventId],
			["three", three.eventId],
			["half whole", undefined],
		]);
	});

	test("a run that ends by itself meanwhile is not superseded", async () => {
		const { play, asked, doors } = patient({ last: true });
		const { submit, look, bus } = nexRig(play);
		const one = await submit({ session: "main", text: "one" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(async () => (await bus.describe(one.runId!))?.sealedAt !== undefined);
		await submit({ session: "main", text: "two", queue: queueOf("interrupt") });
		await until(() => asked.length === 2);
		expect(dispositionOf(look, one.eventId)).toEqual({ state: "started", runId: one.runId });
	});

	test("a run that had ended before it was stopped, and was not yet on record, is not superseded", async () => {
		const { play, asked, doors } = patient({ last: true });
		const { submit, look, file } = nexRig(play);
		const refused = gate();
		let first = true;
		refuseWrites({ file }, ({ table, op }) => {
			const refuses = first && table === "turns" && op === "settle";
			if (refuses) [first] = [false, refused.open()];
			return refuses;
		});
		const one = await submit({ session: "main", text: "one" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await refused.opened;
		await submit({ session: "main", text: "two", queue: queueOf("interrupt") });
		await until(() => asked.length === 2);
		expect(look.turn(one.runId!)?.status).toBe("completed");
		expect(dispositionOf(look, one.eventId)).toEqual({ state: "started", runId: one.runId });
	});

	test("a run that is still being prepared is stopped as soon as it is one", async () => {
		const { play, asked } = patient({ last: true });
		const door = gate();
		let calls = 0;
		const plugin: Plugin = { name: "slow", onPrepare: () => (calls++ === 0 ? door.opened : undefined) };
		const { submit, look } = nexRig(play, { plugins: [plugin] });
		const first = submit({ session: "main", text: "one" });
		await until(() => calls === 1);
		await submit({ session: "main", text: "two", queue: queueOf("interrupt") });
		door.open();
		const { runId } = await first;
		await until(() => asked.length === 1);
		expect(look.turn(runId!)?.status).toBe("aborted");
		expect(usersOf(asked[0]!)).toEqual(["one", "two"]);
	});
});

describe("collect", () => {
	test("waits until nothing more comes, then answers together", async () => {
		const clock = manualClock(1000);
		const { play, asked } = patient({ last: true });
		const { submit, look } = nexRig(play, { clock });
		const queue = queueOf("collect");
		const one = await submit({ session: "main", text: "one", queue });
		expect(one.disposition).toEqual({ state: "queued" });
		clock.advance(60);
		await submit({ session: "main", text: "two", queue });
		clock.advance(99);
		await ticks(3);
		expect(asked).toEqual([]);
		clock.advance(1);
		await until(() => asked.length === 1);
		expect(usersOf(asked[0]!)).toEqual(["one", "two"]);
		expect(dispositionOf(look, one.eventId).state).toBe("batched");
	});

	test("a single message is started, not batched", async () => {
		const clock = manualClock(1000);
		const { play, asked } = patient({ last: true });
		const { submit, look } = nexRig(play, { clock });
		const one = await submit({ session: "main", text: "one", queue: queueOf("collect") });
		clock.advance(100);
		await until(() => asked.length === 1);
		expect(dispositionOf(look, one.eventId)).toEqual({ state: "started", runId: asked[0]!.runId });
		expect(look.events({ limit: 9 })).toHaveLength(1);
	});
});

test("reject: a busy session refuses, and nothing is recorded", async () => {
	const { submit, look } = nexRig(patient({ last: true }).play);
	const queue = queueOf("reject");
	await submit({ session: "main", text: "one", queue });
	await expect(submit({ session: "main", text: "two", queue })).rejects.toMatchObject({ code: "busy" });
	expect(look.events({ limit: 9 })).toHaveLength(1);
});

describe("I10, I11: at the cap", () => {
	async function crowded(atCap: QueueSettings["atCap"]) {
		const { play, asked, doors } = patient({ last: true });
		const { submit, look } = nexRig(play);
		const queue = queueOf("followup", { messagesMax: 2, atCap });
		const accepted = [];
		for (const said of ["running", "one", "two", "three"])
			accepted.push(await submit({ session: "main", text: said, queue }).catch(() => undefined));
		return { look, asked, doors, accepted };
	}

	test("drop_oldest says so of the one that was dropped", async () => {
		const { look, accepted } = await crowded("drop_oldest");
		expect(dispositionOf(look, accepted[1]!.eventId)).toEqual({
			state: "dropped",
			because: "2 messages waited already, and a newer one came",
		});
		expect(look.queued().map((event) => event.text)).toEqual(["two", "three"]);
	});

	test("drop_newest refuses", async () => {
		const { look, accepted } = await crowded("drop_newest");
		expect(accepted[3]).toBeUndefined();
		expect(look.queued().map((event) => event.text)).toEqual(["one", "two"]);
	});

	test("summarise leaves one line that names the originals, and the engine reads it", async () => {
		const { look, accepted, asked, doors } = await crowded("summarise");
		const [summary, three] = look.queued() as [InboundEvent, InboundEvent];
		expect(summary).toMatchObject({
			text: "[2 earlier messages, shortened] one · two",
			batch: [accepted[1]!.eventId, accepted[2]!.eventId],
		});
		expect(three.text).toBe("three");
		for (const one of accepted.slice(1, 3))
			expect(dispositionOf(look, one!.eventId)).toEqual({ state: "superseded", by: summary.eventId });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(() => asked.length === 2);
		expect(usersOf(asked[1]!).at(-1)).toBe(summary.text);
	});
});

describe("plugins that prepare a run", () => {
	test("what is being prepared when the daemon stops stays queued", async () => {
		const { play, doors } = patient({ last: true });
		const door = gate();
		const preparing = gate();
		let prepared = 0;
		const onPrepare: Plugin["onPrepare"] = async () => {
			if (prepared++ === 0) return;
			preparing.open();
			await door.opened;
		};
		const { submit, nex, broker, look } = nexRig(play, { plugins: [{ name: "slow", onPrepare }] });
		await submit({ session: "main", text: "one" });
		const two = await submit({ session: "main", text: "two" });
		await until(() => doors.length === 1);
		doors[0]!.open();
		await preparing.opened;
		nex.close();
		await broker.drain(1000);
		door.open();
		await ticks(5);
		expect(dispositionOf(look, two.eventId)).toEqual({ state: "queued" });
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
			const send = async ({ submit }: ReturnType<typeof nexRig>, part: typeof messages) => {
				for (const [session, queue, pause] of part) {
					const answer = submit({ session, text: `${accepted.length}`, queue });
					await answer.then(({ eventId }) => accepted.push(eventId)).catch(() => undefined);
					await ticks(pause);
				}
			};
			// The process that dies: its engine keeps running, its clock stands still, and nothing of it is closed.
			const limits = { abortGraceMs: 0 };
			const dead = nexRig(silent, { path, limits, clock: manualClock(Date.now()), dies: true });
			await send(dead, messages.slice(0, killAfter));
			// The stopped process would otherwise keep writing next to its successor.
			await ticks(20);

			const seen = new Map<string, string[]>();
			const next = nexRig(
				async function* ({ session, runId, messages: context }) {
					const asked = look.events({ session, limit: 99 }).filter((event) => !event.batch);
					seen.set(session, [...(seen.get(session) ?? []), ...asked.flatMap(ofRun(runId)).reverse()]);
					yield text(`re ${context.at(-1)?.text}`);
				},
				{ path, limits },
			);
			const { broker, look } = next;
			await next.nex.recover();
			await send(next, messages.slice(killAfter));
			const isOver = (eventId: string) => {
				const { disposition } = look.event(eventId)!;
				return !("runId" in disposition) || look.turn(disposition.runId!) !== undefined;
			};
			await until(
				() => look.queued().length === 0 && broker.liveRuns().length === 0 && accepted.every(isOver),
				"all messages are answered",
			);
			for (const eventId of accepted) {
				const { disposition } = look.event(eventId)!;
				expect(["started", "batched", "superseded", "dropped"]).toContain(disposition.state);
			}
			for (const [, order] of seen) expect(order).toEqual(order.toSorted());
			// The messages of a run are exactly those of its turn, each message in one turn only.
			const answered = look.turns({ limit: 99 }).flatMap((turn) => turn.messages.flatMap((one) => one.eventId ?? []));
			expect(new Set(answered).size).toBe(answered.length);
		}),
		{ numRuns: atEffort(100, 25), endOnFailure: true },
	);
}, 60_000);

const ofRun =
	(runId: string) =>
	({ eventId, disposition }: InboundEvent): string[] =>
		"runId" in disposition && disposition.runId === runId ? [eventId] : [];
