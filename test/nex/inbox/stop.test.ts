import { expect, test } from "vitest";
import { sqliteStorage } from "../../../packages/daemon/src/bus/bus.ts";
import type { Delivery } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import type { Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { gate, ticks, turnWhenSettled, until } from "../../broker/rig.ts";
import { expireAll } from "../../bus/remove.ts";
import { echo, nexRig, telegram } from "./rig.ts";

/** A message whose delivery has begun and ends when the door opens. */
async function delivering() {
	const door = gate();
	const begun = gate();
	const completed: string[] = [];
	const plugins: Plugin[] = [{ name: "last", onComplete: ({ runId }) => completed.push(runId!) }];
	const settled = async (id: string) => {
		begun.open();
		await door.opened;
		return { id, state: "complete", createdAt: 1, endedAt: 1, messages: [] as Delivery["messages"] } as Delivery;
	};
	const parts = nexRig(echo, { config: telegram(), plugins, outbound: { settled } });
	const { runId } = await parts.hear("hi");
	await turnWhenSettled(parts.look, runId!);
	await begun.opened;
	return { ...parts, runId: runId!, door, completed };
}

test("what is still being delivered when the pipeline stops is the next process's: nothing is written after it", async () => {
	const { nex, look, runId, door, completed } = await delivering();
	await nex.stop(1);
	door.open();
	await ticks(20);
	expect(completed).toEqual([]);
	expect(look.turn(runId)?.trace?.stages.map(({ stage }) => stage)).not.toContain("complete");
});

test("ST19: a daemon that another one has taken over completes nothing: what it delivered is not known to it", async () => {
	const { bus, file, door, completed } = await delivering();
	await expireAll(sqliteStorage(file));
	await expect(bus.write([])).rejects.toMatchObject({ refusal: "fenced" });
	await until(() => bus.fenced.aborted);
	door.open();
	await ticks(20);
	expect(completed).toEqual([]);
});
