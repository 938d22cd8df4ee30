/** A26: a message joins a run when the store has it so, or not at all. */

import { expect, test } from "vitest";
import { inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { ask, type Play, rig, text, turnWhenSettled, verified } from "./rig.ts";

const joining = { eventId: "evt_two", text: "two", attachments: [] };

test("one that the store refuses is in neither the turn nor a checkpoint, and the run can go on", async () => {
	const failures: unknown[] = [];
	const play: Play = async function* (_, __, { inbox }) {
		yield text("before");
		const checkpoint = () => ({ read: "two" });
		await inbox!.take(checkpoint).catch((cause: unknown) => failures.push(cause));
		yield { type: "message" };
		yield text("after");
		throw new Error("cut off");
	};
	const { broker, look, ledger, frames } = rig(play, { engineFields: { continues: true } });
	// It does not wait any more.
	const refused = inboxWrites.dispose("evt_two", { state: "cancelled" }, ["queued"]);
	const { runId, saved } = await ask(broker, "main", "one", {
		inbox: { take: async (join) => void (await join([joining], [refused])) },
	});
	await saved;
	const { messages } = await turnWhenSettled(look, runId);
	expect(failures).toHaveLength(1);
	expect(messages.map((message) => message.text)).toEqual(["one", "before", "after"]);
	expect((await ledger.checkpoints.get(runId))!.data).toBe("null");
	expect(verified(await frames(runId))).toBeUndefined();
});

test("one whose commit is under way when the run is stopped is in its turn", async () => {
	let stop = () => {};
	const play: Play = async function* (_, signal, { inbox }) {
		yield text("before");
		await inbox!.take();
		expect(signal.aborted).toBe(true);
	};
	const { broker, look } = rig(play, { limits: { abortGraceMs: 0 } });
	const { runId, abort } = await ask(broker, "main", "one", {
		inbox: {
			async take(join) {
				const joined = join([joining], []);
				stop();
				expect(await joined).toBe(true);
			},
		},
	});
	stop = abort;
	const { messages } = await turnWhenSettled(look, runId);
	expect(messages.map((message) => message.text)).toEqual(["one", "before", "two"]);
});
