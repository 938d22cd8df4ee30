/** Approvals and grants among daemons: decided in one of them, they count in all. */

import type { Engine } from "@nexus-stream/protocol/engine";
import { expect, it } from "vitest";
import { createBroker } from "../../packages/daemon/src/broker/broker.ts";
import { createGrants } from "../../packages/daemon/src/nex/approvals/grants.ts";
import { ask, engineOf, type Play, tempFile, text } from "../broker/rig.ts";
import { quiet } from "../quiet.ts";
import { storeForTest } from "../store.ts";
import { until } from "../until.ts";

const asks: Play = async function* (_request, signal, { answer }) {
	yield {
		type: "tool",
		callId: "c1",
		name: "bash",
		status: "progress",
		args: { command: "ls" },
		asking: { id: "q1", kind: "approval", state: "pending" },
	};
	const { state, by } = await answer!("q1", signal);
	yield text(`${state} by ${by}`);
};

/** Brokers of two daemons on one file. */
function brokers(play: Play) {
	const path = tempFile();
	const engine: Engine = engineOf(play);
	const join = () => {
		const store = storeForTest({ path, shared: true, connection: "none" });
		const broker = createBroker({ ...quiet, ...store, engine });
		const closed: [id: string, live: boolean][] = [];
		broker.approvals.listen({ closed: ({ id }, live) => void closed.push([id, live]) });
		return { ...store, broker, closed };
	};
	return [join(), join()] as const;
}

it("A2: a decision in one daemon resolves the run that waits in another, and no daemon takes it for a late one", async () => {
	const [one, two] = brokers(asks);
	const { runId, result } = await ask(one.broker, "s", "hi");
	await until("the other daemon knows the question", () => two.broker.approvals.pending().length === 1);
	const { id } = two.broker.approvals.pending()[0]!;
	await two.broker.approvals.decide(runId, id, { state: "approved", by: "ann" });
	expect(await result).toMatchObject({ status: "completed" });
	const { messages } = one.look.turn(runId)!;
	expect(messages.at(-1)?.text).toBe("approved by ann");
	expect(one.closed).toEqual([[id, true]]);
	expect(two.closed).toEqual([]);
	expect(two.broker.approvals.pending()).toEqual([]);
	await expect(two.broker.approvals.decide(runId, id, { state: "denied", by: "bob" })).rejects.toMatchObject({
		code: "conflict",
	});
});

it("A2: of two decisions in two daemons at once, one counts, and both say which", async () => {
	const [one, two] = brokers(asks);
	const { runId, result } = await ask(one.broker, "s", "hi");
	await until("the other daemon knows the question", () => two.broker.approvals.pending().length === 1);
	const { id } = one.broker.approvals.pending()[0]!;
	const decisions = await Promise.allSettled([
		one.broker.approvals.decide(runId, id, { state: "approved", by: "ann" }),
		two.broker.approvals.decide(runId, id, { state: "denied", by: "bob" }),
	]);
	expect(decisions.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
	await result;
	const row = await one.ledger.approvals.get(runId, id);
	expect(one.look.turn(runId)!.messages.at(-1)?.text).toBe(`${row!.state} by ${row!.by}`);
});

it("A14: a grant that is revoked in one daemon no longer counts in another", async () => {
	const path = tempFile();
	const join = async () => {
		const store = storeForTest({ path, shared: true, connection: "none" });
		const grants = createGrants({ ...quiet, ...store, config: () => ({}) });
		await grants.load();
		return { ...store, grants };
	};
	const [one, two] = [await join(), await join()];
	const requester = {
		channel: "telegram",
		account: "bot",
		sender: "ann",
		only: true,
		chat: { id: "c", type: "direct" },
	} as const;
	const row = {
		id: "A2B3",
		runId: "run_1",
		session: "s",
		callId: "c1",
		tool: "bash",
		kind: "approval",
		args: {},
		digest: "d",
		requester,
		state: "pending",
		createdAt: 1,
		expiresAt: Date.now() + 60_000,
	} as const;
	const { write, done } = one.grants.granting(row, "owner");
	await one.bus.write([write]);
	done();
	expect(one.grants.list()).toHaveLength(1);
	await until("the grant counts in both", () => two.grants.agreed(row) !== undefined);
	await two.grants.revoke(two.grants.list()[0]!.id);
	await until("it counts in neither", () => one.grants.agreed(row) === undefined);
	expect([one.grants.list(), two.grants.list()]).toEqual([[], []]);
});
