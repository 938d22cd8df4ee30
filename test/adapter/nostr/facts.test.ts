/** Messages that are sent whole carry the facts of their run: agent, model, usage. */

import { expect, onTestFinished, test } from "vitest";
import { createOutbound } from "../../../packages/daemon/src/nex/nex.ts";
import { createNostrFake, person } from "../../../packages/lab/src/nostr.ts";
import { GIFT_WRAP } from "../../../packages/platforms/src/nostr/events.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { framedRun, saidBy } from "../../nex/outbound/framed.ts";
import { FAST } from "../../nex/outbound/rig.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { openPlainStore } from "../../store.ts";

const ann = person("ann");
const account = { channel: "nostr", id: "main" };

async function start() {
	const fake = await createNostrFake();
	const store = openPlainStore(":memory:");
	const adapters = { nostr: { accounts: { main: { settings: { ...fake.settings } } } } };
	const { bus, ledger } = store;
	const outbound = createOutbound({ bus, ledger, dataDir: freshFolder(), log: silentLog, adapters, limits: FAST });
	onTestFinished(async () => {
		await outbound.stop(0);
		await store.close();
		await fake.close();
	});
	return { fake, bus, outbound };
}

const factsOf = (tags: readonly string[][]) => tags.filter(([name = ""]) => ["agent", "model", "usage"].includes(name));

test("A30: each message of a private chat tells its own agent and model, the last one what the run used, all inside the wrap", async () => {
	const { fake, bus, outbound } = await start();
	const runId = await framedRun(bus, [...saidBy("lead", "I ask the writer."), ...saidBy("writer", "Here it is.")]);
	const options = { disableStreaming: true };
	const { id } = await outbound.deliver({ runId, account, target: { to: ann.pubkey, direct: true }, options });
	expect(await outbound.settled(id)).toMatchObject({ state: "complete", mode: "whole" });
	const rumors = fake.raw(ann.pubkey);
	expect(rumors.map(({ content, tags }) => [content, factsOf(tags)])).toEqual([
		[
			"I ask the writer.",
			[
				["agent", "lead"],
				["model", "model-lead"],
			],
		],
		[
			"Here it is.",
			[
				["agent", "writer"],
				["model", "model-writer"],
				["usage", "input", "3"],
				["usage", "output", "4"],
			],
		],
	]);
	expect(fake.received.every(({ kind }) => kind === GIFT_WRAP)).toBe(true);
});
