/** Z28: an audit entry commits with its action, and holds ids and states only. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textResult } from "../../../packages/daemon/src/engine/tool.ts";
import { approvalWrites } from "../../../packages/daemon/src/ledger/approvals/port.ts";
import { deliveryWrites } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { grantWrites } from "../../../packages/daemon/src/ledger/grants/port.ts";
import { inboxWrites } from "../../../packages/daemon/src/ledger/inbox/port.ts";
import { pairingWrites } from "../../../packages/daemon/src/ledger/pairings/port.ts";
import { agentText } from "../../../packages/daemon/src/services/audit/events.ts";
import { memoryWrites } from "../../../packages/daemon/src/services/memory/rows.ts";
import { tempFile } from "../../broker/rig.ts";
import { character } from "../../character.ts";
import { manualClock } from "../../clock.ts";
import { atEffort } from "../../effort.ts";
import { answer, asks, text, toolOf } from "../../engine/reason-act/kit.ts";
import { eventOf } from "../../ledger/rig.ts";
import { messageOf } from "../../nex/inbox/rig.ts";
import { until } from "../../until.ts";
import { toldRig, toldStore } from "./rig.ts";

const MARK = "marker-7c1e";
const person = { channel: "telegram", account: "bot", message: messageOf("") };

const marked = toolOf("look", {
	parameters: { type: "object", properties: { command: { type: "string" } } },
	execute: async () => textResult(`result ${MARK}`),
});
const asked = toolOf("bash", {
	parameters: { type: "object", properties: { command: { type: "string" } } },
	execute: async () => textResult(`done ${MARK}`),
});

describe("audit entries of a run", () => {
	it("Z22: message, start, tools and end, once each, with the run's own records", async () => {
		const answers = [answer(asks("look", { command: `ls ${MARK}` })), answer(text(`Fine ${MARK}.`))];
		const rig = await toldRig({ answers, tools: [marked] });
		const { runId } = await rig.nex.receive({ session: "main", text: `hello ${MARK}` });
		await rig.settled(runId!);
		expect(rig.told()).toEqual([
			"runs/started",
			"messages/accepted",
			"tools/started",
			"tools/completed",
			"runs/settled",
		]);
		expect(rig.agentEvents()).toMatchObject([
			{ event_type: "started", session: "main", run_id: runId, state: "running" },
			{ event_type: "message", session: "main", run_id: runId, state: "started", id: expect.stringMatching(/^evt_/) },
			{ event_type: "tool", run_id: runId, tool: "look", id: "id_look", state: "started" },
			{ event_type: "tool", run_id: runId, tool: "look", id: "id_look", state: "completed" },
			{ event_type: "settled", session: "main", run_id: runId, state: "completed" },
		]);
		const [started, accepted, , , settled] = rig.events();
		expect(started).toMatchObject({
			caller: "web/web/owner",
			payload: { run_id: runId, session: "main", messages: 1 },
		});
		expect(accepted?.payload).toMatchObject({ run_id: runId, state: "started" });
		expect(settled?.payload).toMatchObject({ status: "completed", tools: 1, input_tokens: 6, output_tokens: 4 });
		expect(settled?.trace_id).toBe(started?.trace_id);
	});

	it("Z28: no entry holds a message's text, an argument, a result, an answer or a secret", async () => {
		const answers = [
			answer(
				text(`thinking ${MARK}`),
				asks("look", { command: `ls ${MARK}` }),
				asks("bash", { command: `rm ${MARK}` }),
			),
			answer(text(`Fine ${MARK}.`)),
		];
		const rig = await toldRig({ answers, tools: [marked, asked] });
		const attachments = [{ name: `${MARK}.txt`, contentType: "text/plain", data: MARK }];
		const { runId } = await rig.nex.receive({
			...person,
			message: messageOf(`please ${MARK}`, { from: { id: "ann", name: `Ann ${MARK}` } }),
		} as never);
		await until("a question", () => rig.broker.approvals.pending().length === 1);
		const [question] = rig.broker.approvals.pending();
		await rig.nex.approvals.decide(runId!, question!.id, { state: "denied", by: "the owner", reason: MARK });
		await rig.settled(runId!);
		await rig.nex.receive({ session: "other", text: MARK, attachments, idempotencyKey: MARK }).catch(() => {});
		// From a stranger: refused, and a code is made.
		await rig.nex.receive({ ...person, message: messageOf(MARK, { from: { id: "eve", name: MARK } }) } as never);
		const at = 5;
		await rig.bus.write([
			memoryWrites.add(
				{ id: "mem_1", bank: "agent:main", text: MARK, provenance: { at } },
				{ itemsMax: 9, itemsTotalMax: 9 },
			),
			memoryWrites.forget({ id: "mem_1", bank: "agent:main" }, { at }),
			grantWrites.save({
				id: "g1",
				session: "s",
				channel: "c",
				account: "a",
				sender: "7",
				tool: "bash",
				digest: MARK,
				prefix: MARK,
				by: "Ann",
				createdAt: at,
			}),
			pairingWrites.save({
				channel: "t",
				account: "b",
				sender: "7",
				senderName: MARK,
				code: MARK,
				state: "pending",
				target: { to: MARK },
				createdAt: at,
				expiresAt: at,
				sentAt: at,
			}),
			deliveryWrites.open({
				id: "dlv_x",
				runId: "run_x",
				channel: "t",
				account: "b",
				target: { to: MARK },
				options: { MARK },
				createdAt: at,
			}),
			deliveryWrites.finish("dlv_x", "failed", `error ${MARK}`, at),
			inboxWrites.accept(eventOf("evt_x", { text: MARK, disposition: { state: "rejected", because: MARK } })),
		]);
		const told = rig.told();
		for (const what of [
			"approvals/asked",
			"approvals/denied",
			"messages/refused",
			"pairings/asked",
			"deliveries/begun",
			"deliveries/ended",
			"memory/forgotten",
			"grants/given",
		])
			expect(told).toContain(what);
		expect(rig.everything()).not.toContain(MARK);
	});

	it("an approval is recorded when it is requested and when it is decided, for its session and agent", async () => {
		const answers = [answer(asks("bash", { command: "ls" })), answer(text("Done."))];
		const rig = await toldRig({ answers, tools: [asked] });
		const { runId } = await rig.nex.receive({ ...person, message: messageOf("go") } as never);
		await until("a question", () => rig.broker.approvals.pending().length === 1);
		const { id } = rig.broker.approvals.pending()[0]!;
		await rig.nex.approvals.decide(runId!, id, { state: "approved", by: "the owner" });
		await rig.settled(runId!);
		const approvals = rig.agentEvents().filter(({ event_type }) => event_type === "approval");
		expect(approvals).toMatchObject([
			{ session: rig.stored.turns.get(runId!)?.session, run_id: runId, id, tool: "bash", state: "pending" },
			{ session: rig.stored.turns.get(runId!)?.session, run_id: runId, id, tool: "bash", state: "approved" },
		]);
		const decided = rig.events().find(({ operation }) => operation === "approved");
		expect(decided).toMatchObject({
			domain: "approvals",
			caller: "the owner",
			payload: { approval_id: id, run_id: runId },
		});
	});

	it("a run that a dead daemon left is recorded as crashed by the one that settles it", async () => {
		const path = tempFile();
		const forever = toolOf("look", { execute: () => new Promise(() => {}) });
		const first = await toldRig({ path, dies: true, answers: [answer(asks("look"))], tools: [forever] });
		const { runId } = await first.nex.receive({ session: "main", text: "hi" });
		await until("the tool", () => first.told().includes("tools/started"));
		const second = await toldRig({ path });
		expect(second.recovered).toBe(1);
		expect(second.agentEvents().slice(-2)).toMatchObject([
			{ event_type: "tool", state: "failed" },
			{ event_type: "settled", run_id: runId, state: "failed", reason_code: "CRASHED" },
		]);
		expect(second.told().filter((what) => what === "runs/settled")).toHaveLength(1);
	});
});

describe("audit entries of any change", () => {
	it("Z28: commits with it, or not at all", async () => {
		const { bus, told, agentEvents } = toldStore();
		const accept = (id: string) => inboxWrites.accept(eventOf(id, { idempotencyKey: "same" }));
		await bus.write([accept("evt_1")]);
		await expect(bus.write([accept("evt_2")])).rejects.toMatchObject({ refusal: "duplicate" });
		await expect(
			bus.write([
				approvalWrites.decide({ id: "K7Q2", runId: "run_1", session: "s", tool: "bash" }, { state: "denied", at: 1 }),
			]),
		).rejects.toMatchObject({ refusal: "conflict" });
		expect(told()).toEqual(["messages/accepted"]);
		expect(agentEvents()).toHaveLength(1);
	});

	it("memory events name the bank, the run and the agent, and the bank of what is forgotten", async () => {
		const { bus, memoryEvents } = toldStore();
		const provenance = { at: 1, runId: "run_1", agent: "main" };
		const limits = { itemsMax: 9, itemsTotalMax: 9 };
		await bus.write([memoryWrites.add({ id: "mem_1", bank: "agent:main", text: "tea", provenance }, limits)]);
		await bus.write([memoryWrites.forget({ id: "mem_1", bank: "agent:main" }, { at: 2 })]);
		expect(memoryEvents()).toEqual([
			{ event_type: "retained", at: 1000, memory_id: "mem_1", bank: "agent:main", run_id: "run_1", agent: "main" },
			{ event_type: "forgotten", at: 1000, memory_id: "mem_1", bank: "agent:main" },
		]);
	});

	it("I11: a flood of refusals is recorded by its first ones, then counted", async () => {
		const clock = manualClock(0);
		const { bus, events } = toldStore({ clock });
		const refuse = (n: number) =>
			bus.write([inboxWrites.accept(eventOf(`evt_${n}`, { disposition: { state: "rejected", because: "no" } }))]);
		for (let n = 0; n < 100; n++) await refuse(n);
		expect(events()).toHaveLength(60);
		clock.advance(60_000);
		await refuse(100);
		expect(events().at(-1)?.payload).toMatchObject({ untold: 40 });
	});

	it("Z22: an agent event has 1 KB at most, whatever its names are", () => {
		const name = fc.string({ unit: character, maxLength: 300 });
		const label = fc.stringMatching(/^[a-z]{1,128}$/);
		fc.assert(
			fc.property(label, name, name, name, (session, agent, id, tool) => {
				const event = {
					event_type: "tool",
					at: 1,
					session,
					run_id: "run_01ARZ3NDEKTSV4RRFFQ69G5FAV",
					agent,
					id,
					tool,
				} as const;
				const line = agentText({ ...event, state: "completed" });
				expect(Buffer.byteLength(line)).toBeLessThanOrEqual(1024);
				expect(line).not.toContain("\n");
				expect(JSON.parse(line)).toMatchObject({ session });
			}),
			{ numRuns: atEffort(200) },
		);
	});
});
