import type { Engine, EngineEvent } from "@nexus-stream/protocol/engine";
import { describe, expect, test } from "vitest";
import type { ApprovalJson } from "../../packages/protocol/src/gen/api.ts";
import { until } from "../until.ts";
import { rigForTest } from "./rig.ts";

const engineAsking = (asking: Extract<EngineEvent, { type: "tool" }>["asking"]): Engine => ({
	name: "asking",
	async *run(_request, { signal, answer }) {
		const call = { type: "tool", callId: "c1", name: "bash" } as const;
		yield { ...call, status: "progress", args: { command: "ls\u202e" }, ...(asking && { asking }) };
		const { state, text = "" } = await answer!("q", signal);
		yield { ...call, status: state === "denied" ? "failed" : "completed" };
		yield { type: "text", delta: `${state} ${text}` };
	},
});

const APPROVAL = { id: "q", kind: "approval", state: "pending" } as const;
const QUESTION = { id: "q", kind: "question", state: "pending", question: "Which?" } as const;

async function rigAsking(asking: Parameters<typeof engineAsking>[0]) {
	const rig = await rigForTest({ engine: engineAsking(asking) });
	const accepted = await (await rig.post("/v1/sessions/main/messages", { text: "hi" })).json();
	const { run_id: runId } = accepted as { run_id: string };
	const list = async (query = "?state=pending") => {
		const { approvals } = (await (await rig.get(`/v1/approvals${query}`)).json()) as { approvals: ApprovalJson[] };
		return approvals;
	};
	await until("a question", async () => (await list()).length === 1);
	const [row] = await list();
	return { ...rig, rig, runId, row: row!, list };
}

describe("A31: approvals by the API", () => {
	test("are listed with what is asked, decided once, and a second decision says who decided", async () => {
		const { rig, runId, row, list } = await rigAsking(APPROVAL);
		expect(row).toMatchObject({
			run_id: runId,
			session: "main",
			tool: "bash",
			state: "pending",
			kind: "approval",
			args: { command: "ls\u202e" },
			text: 'bash {"command":"ls\\u202e"}',
			asked_for: { channel: "web", sender: "owner" },
		});
		const path = `/v1/runs/${runId}/approvals/${row.id}`;
		const decided = await rig.post(path, { decision: "approve", reason: "fine" });
		expect(decided.status).toBe(200);
		expect(await decided.json()).toMatchObject({ state: "approved", by: "the owner", reason: "fine" });
		const again = await rig.post(path, { decision: "deny" });
		expect(again.status).toBe(409);
		expect(await again.json()).toMatchObject({ error: { message: `${row.id} is approved already by the owner` } });
		await rig.settled(runId);
		expect(await list()).toEqual([]);
		expect(await list("?state=approved")).toMatchObject([{ id: row.id }]);
	});

	test.each([
		["another run's", "run_other", 404],
		["another id", "", 404],
	])("%s is not found", async (_, run, status) => {
		const { rig, runId, row } = await rigAsking(APPROVAL);
		const id = run === "" ? "Z9Z9" : row.id;
		const answer = await rig.post(`/v1/runs/${run || runId}/approvals/${id}`, { decision: "approve" });
		expect(answer.status).toBe(status);
		expect((await rig.post(`/v1/runs/${runId}/questions/${row.id}`, { answer: "x" })).status).toBe(404);
	});

	test("an invalid decision is refused, and so is a caller without the token", async () => {
		const { rig, runId, row } = await rigAsking(APPROVAL);
		const path = `/v1/runs/${runId}/approvals/${row.id}`;
		expect((await rig.post(path, { decision: "yes" })).status).toBe(400);
		expect((await rig.post(path, { decision: "approve" }, { authorization: "Bearer wrong" })).status).toBe(401);
		expect((await rig.post(`/v1/runs/${runId}/approvals/yes`, { decision: "approve" })).status).toBe(400);
	});

	test("P6.6: a decision with a field that it does not have decides nothing", async () => {
		const { rig, runId, row, list } = await rigAsking(APPROVAL);
		const path = `/v1/runs/${runId}/approvals/${row.id}`;
		for (const other of [{ args: { command: "ls" } }, { tool: "read" }, { reasons: "x" }]) {
			const refused = await rig.post(path, { decision: "approve", ...other });
			expect(refused.status).toBe(400);
			expect(JSON.stringify(await refused.json())).toContain(Object.keys(other)[0]);
		}
		expect(await list()).toMatchObject([{ id: row.id, state: "pending" }]);
	});

	test("a question takes an answer", async () => {
		const { rig, runId, row } = await rigAsking(QUESTION);
		expect(row).toMatchObject({ kind: "question", text: "Which?" });
		const answered = await rig.post(`/v1/runs/${runId}/questions/${row.id}`, { answer: "this" });
		expect(await answered.json()).toMatchObject({ state: "answered", answer: "this" });
		await rig.settled(runId);
		const turn = await rig.ledger.turns.get(runId);
		expect(turn?.messages.at(-1)?.text).toBe("answered this");
	});
});
