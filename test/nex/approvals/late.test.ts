/** A2: an approval outlives its daemon, and its answer continues the run. */

import { expect, test } from "vitest";
import { createBroker } from "../../../packages/daemon/src/broker/broker.ts";
import { reasonActEngine } from "../../../packages/daemon/src/engine/reason-act/reason-act.ts";
import { textResult } from "../../../packages/daemon/src/engine/tool.ts";
import { approvalWrites } from "../../../packages/daemon/src/ledger/approvals/port.ts";
import { checkpointWrites } from "../../../packages/daemon/src/ledger/checkpoints/port.ts";
import { createNex } from "../../../packages/daemon/src/nex/nex.ts";
import { tempFile } from "../../broker/rig.ts";
import { answer, asks, modelOf, setupOf, text, toolOf } from "../../engine/reason-act/kit.ts";
import { quiet } from "../../quiet.ts";
import { storeForTest } from "../../store.ts";
import { until } from "../../until.ts";
import { messageOf, outboundOf } from "../inbox/rig.ts";

const COMMAND = { command: "git status" };

const config = { channels: { telegram: { acl: { owner: ["ann"] }, accounts: { bot: {} } } } };

/** One start of a daemon: a model that asks for `look` and `bash`, then says what it has. */
async function start(path: string, ran: string[], answers: Parameters<typeof modelOf>[0]) {
	const acting = (name: string) =>
		toolOf(name, {
			parameters: { type: "object", properties: { command: { type: "string" } } },
			async execute(args) {
				ran.push(`${name} ${JSON.stringify(args)}`);
				return textResult(`${name} done`);
			},
		});
	const { model, calls } = modelOf(answers);
	const engine = reasonActEngine(await setupOf({}, model, [acting("look"), acting("bash")]));
	const store = storeForTest({ path });
	const { bus, ledger } = store;
	const broker = createBroker({ ...quiet, bus, ledger, engine });
	const { outbound, texts } = outboundOf();
	const nex = createNex({ broker, bus, ledger, outbound, engine, config });
	await nex.load();
	await nex.recover();
	const stop = async () => {
		nex.close();
		await broker.drain(60_000);
		await nex.stop(0);
	};
	return { ...store, broker, nex, calls, stop, texts };
}

test.each([
	["approved", [`bash ${JSON.stringify(COMMAND)}`], "bash done"],
	["denied", [], "not run: no"],
] as const)("%s after a restart: the run continues, and no completed tool runs again", async (state, acted, told) => {
	const path = tempFile();
	const ran: string[] = [];
	const first = await start(path, ran, [answer(asks("look", {}), asks("bash", COMMAND))]);
	const { runId } = await first.nex.receive({ session: "s", text: "hi" });
	await until("a question", () => first.broker.approvals.pending().length === 1);
	const calls = () => first.broker.live(runId!)?.toolCalls ?? [];
	await until("the other tool's end", () => calls().some(({ status }) => status === "completed"));
	await first.stop();
	expect(ran).toEqual(["look {}"]);

	const second = await start(path, ran, [answer(text("Done."))]);
	const [row] = second.broker.approvals.pending();
	expect(row).toMatchObject({ runId, tool: "bash", args: COMMAND, state: "pending" });
	await second.nex.approvals.decide(runId!, row!.id, { state, by: "the owner", reason: "no" });
	const continuedBy = async () => (await second.ledger.turns.get(runId!))?.continuedBy;
	await until("the continuing run", async () => (await continuedBy()) !== undefined);
	const next = (await continuedBy())!;
	await until("its turn", async () => (await second.ledger.turns.get(next)) !== undefined);
	expect(ran).toEqual(["look {}", ...acted]);
	expect((await second.ledger.turns.get(next))?.messages.at(-1)?.text).toBe("Done.");
	const results = second.calls[0]!.messages.filter(({ role }) => role === "toolResult");
	expect(JSON.stringify(results)).toContain("look done");
	expect(JSON.stringify(results)).toContain(told);
	await second.stop();
});

test("while a decision is open the run is neither continued nor retried, and the question stays", async () => {
	const path = tempFile();
	const ran: string[] = [];
	const first = await start(path, ran, [answer(asks("bash", COMMAND))]);
	const { runId } = await first.nex.receive({ session: "s", text: "hi" });
	await until("a question", () => first.broker.approvals.pending().length === 1);
	await first.stop();
	const second = await start(path, ran, [answer(text("Done."))]);
	const turn = (await second.ledger.turns.get(runId!))!;
	const [row] = second.broker.approvals.pending();
	const { canContinue, retryRefusal } = await second.broker.resumption(turn);
	expect(canContinue).toBe(false);
	const waits = `it waits for a decision about bash (${row!.id}); allow or deny it, and the run continues`;
	expect(retryRefusal).toBe(waits);
	await expect(second.nex.continue(runId!)).rejects.toMatchObject({
		code: "conflict",
		message: `run ${runId} cannot be continued: ${waits}`,
	});
	await expect(second.nex.retry(runId!)).rejects.toMatchObject({ code: "conflict" });
	expect(second.broker.approvals.pending()).toEqual([row]);
	await second.nex.approvals.decide(runId!, row!.id, { state: "approved", by: "the owner" });
	await until("the command", () => ran.length === 1);
	await second.stop();
});

test("a decision that its daemon did not live to use is used when the run is continued", async () => {
	const path = tempFile();
	const ran: string[] = [];
	const first = await start(path, ran, [answer(asks("bash", COMMAND))]);
	const { runId } = await first.nex.receive({ session: "s", text: "hi" });
	await until("a question", () => first.broker.approvals.pending().length === 1);
	const [row] = first.broker.approvals.pending();
	await first.stop();
	// On record, but the run is not notified: as by a daemon that is killed at this moment.
	const second = await start(path, ran, [answer(text("Done."))]);
	const decided = { state: "approved", by: "the owner", at: row!.createdAt } as const;
	await second.bus.write([approvalWrites.decide(row!, decided)]);
	const { runId: next } = await second.nex.continue(runId!);
	await until("its turn", async () => (await second.ledger.turns.get(next)) !== undefined);
	expect(ran).toEqual([`bash ${JSON.stringify(COMMAND)}`]);
	expect((await second.ledger.turns.get(next))?.messages.at(-1)?.text).toBe("Done.");
	await second.stop();
});

test("the requester is notified of an answer that no run can use any more", async () => {
	const path = tempFile();
	const first = await start(path, [], [answer(asks("bash", COMMAND))]);
	const message = messageOf("hi");
	const { runId } = await first.nex.receive({ channel: "telegram", account: "bot", message, public: false });
	await until("a question", () => first.broker.approvals.pending().length === 1);
	const { id } = first.broker.approvals.pending()[0]!;
	await first.stop();
	const second = await start(path, [], []);
	await second.bus.write([checkpointWrites.remove(runId!)]);
	await second.nex.approvals.decide(runId!, id, { state: "approved", by: "the owner" });
	const said = `${id} was approved too late: run ${runId} cannot be continued: there is no checkpoint of it any more`;
	await until("a note", () => second.texts().some((one) => one.startsWith(said)));
	await second.stop();
});
