import { describe, expect, test } from "vitest";
import { type Approval, approvalWrites, type Decided } from "../../packages/daemon/src/ledger/approvals/port.ts";
import { type Grant, grantWrites } from "../../packages/daemon/src/ledger/grants/port.ts";
import { stores } from "./rig.ts";

const { open, decide, withdrawRun, withdrawSession } = approvalWrites;

const approvalOf = (id: string, fields: Partial<Approval> = {}): Approval => ({
	id,
	runId: "run_1",
	session: "main",
	callId: "c1",
	tool: "bash",
	kind: "approval",
	args: { command: "ls" },
	digest: "d",
	state: "pending",
	createdAt: 1,
	expiresAt: 100,
	...fields,
});
const approved = (fields: Partial<Decided> = {}): Decided => ({ state: "approved", by: "Ann", at: 5, ...fields });

describe.each(stores)("approvals %s", (_name, openStore) => {
	test("one comes back as it was opened, by its run and by its id", async () => {
		const { ledger, write } = await openStore();
		const full = approvalOf("K7Q2", {
			agent: "ops",
			kind: "question",
			question: "Which?",
			choices: ["a", "b"],
			requester: {
				channel: "telegram",
				account: "bot",
				sender: "7",
				senderName: "Ann",
				only: true,
				chat: { id: "c", type: "direct" },
				target: { to: "c" },
			},
		});
		await write(open(full));
		expect(await ledger.approvals.get("run_1", "K7Q2")).toEqual(full);
		expect(await ledger.approvals.find("K7Q2")).toEqual(full);
		expect(await ledger.approvals.get("run_2", "K7Q2")).toBeUndefined();
	});

	test("A13: the first decision wins, and a later one changes nothing", async () => {
		const { ledger, write } = await openStore();
		await write(open(approvalOf("K7Q2")), decide(approvalOf("K7Q2"), approved({ reason: "fine" })));
		await expect(write(decide(approvalOf("K7Q2"), { state: "denied", by: "Bob", at: 6 }))).rejects.toThrow(
			expect.objectContaining({ refusal: "conflict" }),
		);
		const row = { state: "approved", by: "Ann", reason: "fine", decidedAt: 5 };
		expect(await ledger.approvals.get("run_1", "K7Q2")).toEqual(approvalOf("K7Q2", row as Partial<Approval>));
	});

	test("A2: no decision is taken when the time is over; the end of it is still on record", async () => {
		const { ledger, write } = await openStore();
		await write(open(approvalOf("K7Q2")));
		await expect(write(decide(approvalOf("K7Q2"), approved({ at: 100 })))).rejects.toThrow(/time is over/);
		await write(decide(approvalOf("K7Q2"), { state: "expired", at: 100 }));
		expect(await ledger.approvals.find("K7Q2")).toMatchObject({ state: "expired" });
	});

	test("an id is unique among the pending ones, and can be used again", async () => {
		const { ledger, write } = await openStore();
		await write(open(approvalOf("K7Q2")));
		await expect(write(open(approvalOf("K7Q2", { runId: "run_2" })))).rejects.toThrow(
			/Another question has the id K7Q2/,
		);
		await write(decide(approvalOf("K7Q2"), approved()), open(approvalOf("K7Q2", { runId: "run_2" })));
		expect(await ledger.approvals.find("K7Q2")).toMatchObject({ runId: "run_2", state: "pending" });
	});

	test("what a run or a session still asks is withdrawn, and nothing else", async () => {
		const { ledger, write } = await openStore();
		const rows = [
			approvalOf("A2A2"),
			approvalOf("B2B2", { runId: "run_2" }),
			approvalOf("C2C2", { runId: "run_3", session: "other" }),
		];
		await write(...rows.map((row) => open(row)));
		await write(withdrawRun("run_1", { state: "withdrawn", reason: "stopped", at: 2 }));
		await write(withdrawSession("main", { state: "withdrawn", reason: "superseded by run_9", at: 3 }));
		const states = (await ledger.approvals.list()).map(({ id, state, reason }) => [id, state, reason]);
		expect(states).toEqual([
			["C2C2", "pending", undefined],
			["B2B2", "withdrawn", "superseded by run_9"],
			["A2A2", "withdrawn", "stopped"],
		]);
		expect(await ledger.approvals.list({ state: "pending" })).toHaveLength(1);
		expect(await ledger.approvals.list({ session: "main", limit: 1 })).toMatchObject([{ id: "B2B2" }]);
	});

	test("grants are listed and revoked", async () => {
		const { ledger, write } = await openStore();
		const grant: Grant = {
			id: "K7Q2-1",
			session: "main",
			channel: "web",
			account: "web",
			sender: "owner",
			tool: "bash",
			prefix: "git status",
			agent: "ops",
			by: "the owner",
			createdAt: 1,
		};
		const { prefix: _prefix, agent: _agent, ...same } = grant;
		await write(grantWrites.save(grant), grantWrites.save({ ...same, id: "K7Q3-1", digest: "d", createdAt: 2 }));
		expect(await ledger.grants.list()).toEqual([{ ...same, id: "K7Q3-1", digest: "d", createdAt: 2 }, grant]);
		await write(grantWrites.revoke("K7Q2-1"));
		expect(await ledger.grants.list()).toHaveLength(1);
		await expect(write(grantWrites.revoke("K7Q2-1"))).rejects.toThrow(/There is no grant/);
	});
});
