import { describe, expect, test } from "vitest";
import {
	type StoredNode,
	type StoredWorkflow,
	workflowWrites,
} from "../../packages/daemon/src/services/workflows/rows.ts";
import { stores } from "./rig.ts";

const { create, advance, forget } = workflowWrites;

const workflowOf = (id: string, fields: Partial<StoredWorkflow> = {}): StoredWorkflow => ({
	id,
	appId: "notes",
	userId: "ann",
	owner: false,
	name: "a name",
	definition: { nodes: [{ id: "a" }] },
	state: "running",
	createdAt: 1,
	...fields,
});
const nodeOf = (nodeId: string, state: string, output?: unknown): StoredNode => ({
	nodeId,
	state,
	status: { state, attempt: 1 },
	output,
});

describe.each(stores)("workflows %s", (_name, openStore) => {
	test("one comes back as it was stored, with its nodes in their order", async () => {
		const { ledger, write } = await openStore();
		const full = workflowOf("wf_1", {
			owner: true,
			error: { code: "timeout", message: "m" },
			startedAt: 2,
			finishedAt: 3,
		});
		const nodes = [nodeOf("z", "completed", { text: "t\0" }), nodeOf("a", "accepted")];
		await write(create(full, nodes));
		expect(await ledger.workflows.get("wf_1")).toEqual(full);
		expect(await ledger.workflows.nodes("wf_1")).toEqual([nodeOf("z", "completed", { text: "t\uFFFD" }), nodes[1]]);
		expect(await ledger.workflows.statuses("wf_1")).toEqual([nodeOf("z", "completed"), nodes[1]]);
		expect(await ledger.workflows.get("wf_2")).toBeUndefined();
	});

	test("Z18: what has ended is never changed again, a node or a workflow", async () => {
		const { ledger, write } = await openStore();
		await write(create(workflowOf("wf_1"), [nodeOf("a", "running"), nodeOf("b", "accepted")]));
		await write(advance("wf_1", { state: "running", startedAt: 5 }, [nodeOf("a", "completed", { n: 1 })]));
		const again = advance("wf_1", { state: "running" }, [nodeOf("b", "running"), nodeOf("a", "running")]);
		await expect(write(again)).rejects.toThrow(/Node a of wf_1 has ended/);
		expect(await ledger.workflows.nodes("wf_1")).toEqual([nodeOf("a", "completed", { n: 1 }), nodeOf("b", "accepted")]);
		await write(advance("wf_1", { state: "failed", finishedAt: 9 }, []));
		await expect(write(advance("wf_1", { state: "running" }, []))).rejects.toThrow(/Workflow wf_1 has ended/);
	});

	test("they are listed by application and state, newest first, page by page", async () => {
		const { ledger, write } = await openStore();
		for (const [id, appId, state] of [
			["wf_1", "notes", "completed"],
			["wf_2", "mail", "running"],
			["wf_3", "notes", "running"],
			["wf_4", "notes", "failed"],
		])
			await write(create(workflowOf(id!, { appId: appId!, state: state! }), []));
		const ids = async (query: object) => (await ledger.workflows.list({ limit: 9, ...query })).map(({ id }) => id);
		expect(await ids({})).toEqual(["wf_4", "wf_3", "wf_2", "wf_1"]);
		expect(await ids({ appId: "notes", states: ["running", "completed"] })).toEqual(["wf_3", "wf_1"]);
		expect(await ids({ appId: "notes", before: "wf_4", limit: 1 })).toEqual(["wf_3"]);
	});

	test("they count for their application with definitions and outputs, until they are forgotten", async () => {
		const { ledger, write } = await openStore();
		const output = { text: "x".repeat(988) };
		await write(create(workflowOf("wf_1", { definition: {} }), [{ nodeId: "a", state: "running", status: {} }]));
		expect(await ledger.workflows.bytes("notes")).toBe(4);
		await write(
			advance("wf_1", { state: "completed", finishedAt: 5 }, [{ nodeId: "a", state: "completed", status: {}, output }]),
		);
		expect([await ledger.workflows.bytes("notes"), await ledger.workflows.bytes("mail")]).toEqual([1003, 0]);
		await write(create(workflowOf("wf_2", { appId: "mail", finishedAt: 5 }), []));
		expect(await ledger.workflows.isOlder(9, "other")).toBe(false);
		await write(forget(9, 5, "notes"));
		expect((await ledger.workflows.list({ limit: 9 })).map(({ id }) => id)).toEqual(["wf_2"]);
		expect(await ledger.workflows.bytes("notes")).toBe(0);
	});

	test("those that finished before a time are forgotten with their nodes, some at a time", async () => {
		const { ledger, write } = await openStore();
		for (const n of [1, 2, 3])
			await write(create(workflowOf(`wf_${n}`, { finishedAt: n }), [nodeOf("a", "completed", {})]));
		await write(create(workflowOf("wf_4"), [nodeOf("a", "running")]));
		await write(forget(3, 1));
		expect(await ledger.workflows.get("wf_1")).toBeUndefined();
		expect(await ledger.workflows.nodes("wf_1")).toEqual([]);
		expect(await ledger.workflows.isOlder(3)).toBe(true);
		await write(forget(3, 10));
		expect(await ledger.workflows.isOlder(3)).toBe(false);
		expect((await ledger.workflows.list({ limit: 9 })).map(({ id }) => id)).toEqual(["wf_4", "wf_3"]);
	});
});
