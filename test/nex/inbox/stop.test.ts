import { expect, test } from "vitest";
import { sqliteStorage } from "../../../packages/daemon/src/bus/bus.ts";
import type { Delivery } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import type { Plugin } from "../../../packages/daemon/src/nex/nex.ts";
import { gate, type Play, ticks, turnWhenSettled, until } from "../../broker/rig.ts";
import { expireAll } from "../../bus/remove.ts";
import { messageOf, nexRig } from "./rig.ts";

const echo: Play = async function* ({ messages }) {
	yield { type: "text", delta: `re ${messages.at(-1)?.text}` };
};
const config = { channels: { telegram: { acl: { unknown: "allow" as const }, accounts: { bot: {} } } } };

test("what is still being delivered when the pipeline stops is the next process's: nothing is written after it", async () => {
	const door = gate();
	const completed: string[] = [];
	const plugins: Plugin[] = [{ name: "last", onComplete: ({ runId }) => completed.push(runId!) }];
	const settled = async (id: string) => {
		await door.opened;
		return { id, state: "complete", createdAt: 1, endedAt: 1, messages: [] as Delivery["messages"] } as Delivery;
	};
	const { nex, look } = nexRig(echo, { config, plugins, outbound: { settled } });
	const { runId } = await nex.receive({ channel: "telegram", account: "bot", message: messageOf("hi") });
	await turnWhenSettled(look, runId!);
	await nex.stop(1);
	door.open();
	await ticks(20);
	expect(completed).toEqual([]);
	expect(look.turn(runId!)?.trace?.stages.map(({ stage }) => stage)).not.toContain("complete");
});

test("ST19: a daemon that another one has taken over completes nothing: what it delivered is not known to it", async () => {
	const door = gate();
	const completed: string[] = [];
	const plugins: Plugin[] = [{ name: "last", onComplete: ({ runId }) => completed.push(runId!) }];
	let waiting = false;
	const settled = async (id: string) => {
		waiting = true;
		await door.opened;
		return { id, state: "complete", createdAt: 1, endedAt: 1, messages: [] as Delivery["messages"] } as Delivery;
	};
	const { nex, bus, file, look } = nexRig(echo, { config, plugins, outbound: { settled } });
	const { runId } = await nex.receive({ channel: "telegram", account: "bot", message: messageOf("hi") });
	await turnWhenSettled(look, runId!);
	await until(() => waiting);
	await expireAll(sqliteStorage(file));
	await expect(bus.write([])).rejects.toMatchObject({ refusal: "fenced" });
	await until(() => bus.fenced.aborted);
	door.open();
	await ticks(20);
	expect(completed).toEqual([]);
});
