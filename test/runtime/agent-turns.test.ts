import { expect, test } from "vitest";
import { type Disposition, inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { agentTurns } from "../../packages/daemon/src/services/agents/turns.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { storeForTest } from "../store.ts";

/** A message that waits behind what its session is busy with. */
async function waiting() {
	const { bus, ledger } = storeForTest();
	const eventId = "evt_1";
	const queued: Disposition = { state: "queued" };
	await bus.write([
		inboxWrites.accept({ eventId, session: "s", text: "t", attachments: [], receivedAt: 1, disposition: queued }),
	]);
	const aborted: string[] = [];
	const dispose = (disposition: Disposition) => bus.write([inboxWrites.dispose(eventId, disposition, ["queued"])]);
	const agents = agentTurns({
		bus,
		ledger,
		broker: { abort: async (runId: string) => void aborted.push(runId) } as never,
		receive: async () => ({ eventId, disposition: queued }) as never,
		async cancel() {
			const { disposition } = (await ledger.inbox.get(eventId))!;
			if (disposition.state !== "queued") throw new NexusError("conflict", "it waits no longer");
			await dispose({ state: "cancelled" });
		},
	});
	return { aborted, dispose, turn: await agents.start({ session: "s", text: "t", idempotencyKey: "k" }) };
}

test("a turn that waits for its session begins when the session takes it, without being looked after", async () => {
	const { turn, dispose, aborted } = await waiting();
	await dispose({ state: "started", runId: "run_1" });
	expect(await turn.begun).toBe("run_1");
	await turn.stop();
	expect(aborted).toEqual(["run_1"]);
});

test("a turn that is stopped while it waits is taken back, and becomes no run", async () => {
	const { turn, aborted } = await waiting();
	await turn.stop();
	await expect(turn.begun).rejects.toMatchObject({ code: "precondition", message: /cancelled/ });
	expect(aborted).toEqual([]);
});
