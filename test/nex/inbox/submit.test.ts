import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { finalEnd, gate, never, tempFile, text, ticks, turnWhenSettled, until } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";
import { echo, lastOf, nexRig, patient, stuck, telegram } from "./rig.ts";

describe("a message for an idle session", () => {
	test("I9, I10: is answered once its run, its first begin and its event are durable", async () => {
		const { nex, look, frames } = nexRig(stuck, { path: tempFile() });
		const { eventId, disposition, runId } = await nex.receive({ session: "main", text: "hi" });
		expect(disposition).toEqual({ state: "started", runId });
		expect(look.event(eventId)).toMatchObject({ session: "main", text: "hi", disposition });
		expect((await frames(runId!))[0]).toMatchObject({
			type: "stream.begin",
			modality: "text",
			session: "main",
			run_id: runId,
		});
	});

	test("sessions whose labels differ in case only are two", async () => {
		const { nex, look, bus, runSettled } = nexRig(echo, { path: tempFile() });
		const sent = await Promise.all(
			["Main", "main", "MAIN"].map((session) => nex.receive({ session, text: session, idempotencyKey: "k" })),
		);
		for (const { runId } of sent) await runSettled(runId!);
		for (const session of ["Main", "main", "MAIN"]) {
			expect(look.turns({ session, limit: 9 }).map((turn) => turn.messages[0]!.text)).toEqual([session]);
			expect(await bus.describeChain(`session:${session}`)).toEqual({ start: 0, head: 3 });
		}
	});

	test("shows as a live run until its turn is saved", async () => {
		const door = gate();
		const { broker, nex, look } = nexRig(async function* () {
			await door.opened;
			yield text("answer");
		});
		const { eventId, runId } = await nex.receive({ session: "main", text: "hi" });
		expect(broker.live(runId!)).toMatchObject({
			runId,
			session: "main",
			engine: "played",
			status: "running",
			compacting: false,
			text: "",
			messages: [
				{ role: "user", text: "hi", eventId },
				{ role: "assistant", text: "" },
			],
		});
		expect(broker.liveRuns()).toHaveLength(1);
		door.open();
		await until(() => {
			const saved = look.turn(runId!) !== undefined;
			const live = broker.live(runId!) !== undefined;
			if (!saved && !live) throw new Error("neither live nor saved");
			return saved && !live;
		});
		expect(broker.liveRuns()).toEqual([]);
	});

	test("compaction shows while it lasts", async () => {
		const door = gate();
		const { broker, nex } = nexRig(async function* () {
			yield { type: "compaction", phase: "start" };
			await door.opened;
			yield { type: "compaction", phase: "end" };
			await never;
		});
		const { runId } = await nex.receive({ session: "main", text: "hi" });
		await until(() => broker.live(runId!)?.compacting === true);
		door.open();
		await until(() => broker.live(runId!)?.compacting === false);
	});
});

describe("a message for a busy session", () => {
	test("I10: waits, in order, and says so", async () => {
		const { play, asked, doors } = patient({ last: true });
		const { nex, look } = nexRig(play, { path: tempFile() });
		const texts = ["one", "two", "three", "four"];
		const accepted = await Promise.all(texts.map((said) => nex.receive({ session: "main", text: said })));
		expect(accepted.map(({ disposition }) => disposition.state)).toEqual(["started", "queued", "queued", "queued"]);
		expect(look.queued().map((event) => event.text)).toEqual(["two", "three", "four"]);
		for (const [n, said] of texts.entries()) {
			await until(() => asked.length === n + 1);
			await ticks(3);
			expect(asked).toHaveLength(n + 1);
			expect(lastOf(asked).at(-1)).toBe(said);
			const { disposition } = look.event(accepted[n]!.eventId)!;
			expect(disposition).toEqual({ state: "started", runId: asked[n]!.runId });
			doors[n]!.open();
		}
		await turnWhenSettled(look, asked[3]!.runId);
		expect(look.turns({ limit: 9 }).map((turn) => turn.messages[0]?.text)).toEqual(texts.toReversed());
		expect(asked[3]!.messages.map((message) => message.text)).toEqual([
			...["one", "half whole", "two", "half whole", "three", "half whole", "four"],
		]);
	});

	test("other sessions do not wait", async () => {
		const { broker, nex } = nexRig(stuck);
		const sessions = ["a", "b", "c"];
		const accepted = await Promise.all(sessions.map((session) => nex.receive({ session, text: "hi" })));
		expect(accepted.map(({ disposition }) => disposition.state)).toEqual(["started", "started", "started"]);
		expect(broker.liveRuns().map((run) => run.session)).toEqual(sessions);
	});

	test("for all interleavings of messages each session is answered in order, one run at a time", async () => {
		await fc.assert(
			fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom("a", "b"), fc.nat(3)), { maxLength: 15 }), async (plan) => {
				const running = new Set<string>();
				const { nex, look } = nexRig(async function* ({ session, messages }) {
					if (running.has(session)) throw new Error("two runs at once");
					running.add(session);
					await ticks(1);
					yield text(`re ${messages.at(-1)?.text}`);
					running.delete(session);
				});
				const submitted = [];
				for (const [n, [session, pause]] of plan.entries()) {
					submitted.push(nex.receive({ session, text: `${n}` }));
					await ticks(pause);
				}
				await Promise.all(submitted);
				await until(() => look.turns({ limit: 99 }).length === plan.length);
				for (const label of ["a", "b"]) {
					const order = plan.flatMap(([session], n) => (session === label ? [`${n}`] : []));
					const turns = look.turns({ session: label, limit: 99 }).toReversed();
					expect(turns.map((turn) => turn.messages.map((message) => message.text))).toEqual(
						order.map((said) => [said, `re ${said}`]),
					);
				}
			}),
			{ numRuns: atEffort(120, 30) },
		);
	});

	test("the next run gets the note that the last answer was stopped", async () => {
		const { broker, nex, look } = nexRig(
			async function* ({ messages }) {
				if (messages.length > 1) {
					yield text(`I know: ${messages.at(-2)?.text}`);
					return;
				}
				yield text("half an");
				await never;
			},
			{ limits: { abortGraceMs: 0 } },
		);
		const { runId } = await nex.receive({ session: "main", text: "first" });
		await until(() => broker.live(runId!)?.text === "half an");
		const next = await nex.receive({ session: "main", text: "second" });
		expect((await broker.abort(runId!))?.status).toBe("aborted");
		await until(() => look.turns({ limit: 9 }).length === 2);
		expect(look.event(next.eventId)?.disposition.state).toBe("started");
		expect(look.turns({ limit: 1 })[0]?.messages.at(-1)?.text).toBe(
			"I know: half an\n\n[This answer was stopped by the user before it was complete.]",
		);
	});

	test("a queued message that cannot be started is rejected with the reason, and the next one has its turn", async () => {
		const { play, asked, doors } = patient();
		const { nex, look, bus } = nexRig(play);
		await nex.receive({ session: "main", text: "one" });
		const two = await nex.receive({ session: "main", text: "two" });
		const three = await nex.receive({ session: "main", text: "three" });
		const create = bus.create.bind(bus);
		let failures = 1;
		bus.create = (...args) => (failures-- > 0 ? Promise.reject(new Error("no room")) : create(...args));
		await until(() => doors.length === 1);
		doors[0]!.open();
		await until(() => asked.length === 2);
		expect(look.event(two.eventId)?.disposition).toEqual({ state: "rejected", because: "no room" });
		expect(look.event(three.eventId)?.disposition).toEqual({ state: "started", runId: asked[1]!.runId });
	});
});

describe("what is refused", () => {
	test.each([
		["no text", { text: " \n" }, "invalid"],
		["a bad session", { session: "../etc" }, "invalid"],
		["too long a text", { text: "x".repeat(11) }, "too_large"],
		["an empty key", { idempotencyKey: "" }, "invalid"],
		["too long a key", { idempotencyKey: "k".repeat(257) }, "invalid"],
	])("%s", async (_, fields, code) => {
		const { nex, look } = nexRig(echo, { limits: { textCharsMax: 10 } });
		await expect(nex.receive({ session: "main", text: "hi", ...fields })).rejects.toMatchObject({ code });
		expect(look.events({ limit: 9 })).toEqual([]);
	});

	test("but an attachment alone is a message, and reaches the engine", async () => {
		const attachments = [{ name: "a.txt", contentType: "text/plain", data: "aGk=" }];
		const { play, asked, doors } = patient();
		const { nex, look } = nexRig(play);
		const { runId } = await nex.receive({ session: "main", text: "", attachments });
		await until(() => doors.length === 1);
		expect(asked[0]).toMatchObject({ attachments, messages: [{ role: "user", text: "", attachments }] });
		doors[0]!.open();
		expect((await turnWhenSettled(look, runId!)).messages[0]).toMatchObject({ attachments });
	});

	test("I11: more waiting messages, or live runs, than the limit", async () => {
		const { nex } = nexRig(stuck, { limits: { queueMessagesMax: 1, runsMax: 2 } });
		for (const session of ["a", "b"]) await nex.receive({ session, text: "hi" });
		await expect(nex.receive({ session: "c", text: "hi" })).rejects.toMatchObject({ code: "busy" });
		expect((await nex.receive({ session: "a", text: "waits" })).disposition.state).toBe("queued");
		await expect(nex.receive({ session: "a", text: "too many" })).rejects.toMatchObject({ code: "busy" });
	});

	test("I11: `queueMessagesMax` holds for what interrupts, as realtime sessions do, and for chat platforms", async () => {
		const limits = { queueMessagesMax: 2, abortGraceMs: 1e6 };
		const { nex, broker, hear, look } = nexRig(stuck, { limits, config: telegram() });
		const say = (said: string) => nex.receive({ session: "main", text: said, interrupt: true });
		const { runId } = await say("runs");
		// A run that is stopped before its engine is asked ends at once.
		await until(() => broker.live(runId!)?.text === "thinking");
		for (const said of ["one", "two"]) await say(said);
		await expect(say("three")).rejects.toMatchObject({ code: "busy" });
		const { eventId } = await hear("hi");
		expect(look.event(eventId)?.queue).toMatchObject({ mode: "interrupt", messagesMax: 2 });
	});
});

describe("drain", () => {
	test("refuses new messages and waits for what runs; what is queued stays queued", async () => {
		const { play, doors } = patient();
		const { broker, nex, look } = nexRig(play);
		const { runId } = await nex.receive({ session: "main", text: "one" });
		await nex.receive({ session: "main", text: "two" });
		await until(() => doors.length === 1);
		nex.close();
		const drained = broker.drain(10_000);
		await expect(nex.receive({ session: "other", text: "hi" })).rejects.toMatchObject({ code: "unavailable" });
		await expect(nex.receive({ session: "main", text: "hi" })).rejects.toMatchObject({ code: "unavailable" });
		doors[0]!.open();
		await drained;
		expect(look.turn(runId!)?.status).toBe("completed");
		expect(look.queued().map((event) => event.text)).toEqual(["two"]);
		expect(broker.liveRuns()).toEqual([]);
	});

	test("stops what is left at the deadline and waits for its turn", async () => {
		const clock = manualClock();
		const { broker, nex, look, frames } = nexRig(stuck, { clock });
		const { runId } = await nex.receive({ session: "main", text: "one" });
		await until(() => broker.live(runId!)?.text === "thinking");
		nex.close();
		const drained = broker.drain(500);
		clock.advance(500);
		await until(() => broker.live(runId!)?.status === "stopping");
		clock.advance(2000);
		await drained;
		expect(look.turn(runId!)).toMatchObject({ status: "aborted", messages: [{}, { text: "thinking" }] });
		const error = { code: "unavailable", message: expect.stringContaining("Nexus was shut down") };
		expect(finalEnd(await frames(runId!))).toMatchObject({ reason: "aborted", error });
	});

	test("has nothing to wait for when nothing runs", async () => {
		const { broker } = nexRig(echo);
		await broker.drain(0);
		expect(broker.liveRuns()).toEqual([]);
	});
});
