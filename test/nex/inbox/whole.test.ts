/** From a message on a platform to the answer on it, with everything real: adapter processes, supervision, Broker, Bus, Ledger. */

import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createBroker } from "../../../packages/daemon/src/broker/broker.ts";
import { createNex, type InboundChannelConfig, type Nex } from "../../../packages/daemon/src/nex/nex.ts";
import { engineOf, type Play, until } from "../../broker/rig.ts";
import { quiet } from "../../quiet.ts";
import { type Look, lookInto, openStore } from "../../store.ts";
import { createRigWith, type Rig } from "../outbound/rig.ts";

const echo: Play = async function* ({ messages }) {
	for (const word of `re ${messages.at(-1)?.text}`.split(/(?<= )/)) yield { type: "text", delta: word };
};

interface Whole {
	rig: Rig;
	nex: Nex;
	look: Look;
	close(): Promise<void>;
}

let whole: Whole | undefined;
beforeEach(() => {
	whole = undefined;
});
afterEach(() => whole?.close());

async function start(play: Play, channel: InboundChannelConfig, inbound: number): Promise<Whole> {
	let store!: ReturnType<typeof openStore>;
	const open = (path: string) => {
		store = openStore(path);
		return store;
	};
	const rig = createRigWith((full) => ({ full: full("full", { inbound: String(inbound) }) }), { open });
	const { bus, ledger } = store;
	const { outbound } = rig;
	const broker = createBroker({ ...quiet, bus, ledger, engine: engineOf(play) });
	const config = { channels: { full: { ...channel, accounts: { main: {} } } } };
	const nex = createNex({ broker, bus, ledger, outbound, config });
	await nex.load();
	await nex.recover();
	await outbound.start();
	nex.start();
	const close = async () => {
		nex.close();
		await broker.drain(0);
		await nex.stop(0);
		await rig.close();
	};
	return { rig, nex, look: lookInto(store), close };
}

const acks = (rig: Rig) => rig.calls().flatMap(({ op, eventId }) => (op === "ack" ? [eventId] : []));

describe("a platform's messages", () => {
	test("I7, I10: are answered where they came from, once and in order, also when the platform sends them again", async () => {
		whole = await start(echo, { acl: { unknown: "allow" }, queue: { mode: "followup" } }, 3);
		const { rig, look, nex } = whole;
		const answers = ["re t1", "re t2", "re t3"];
		const complete = () => look.turns({ limit: 9 }).filter((turn) => turn.trace?.stages.length === 8);
		// The acks are written by a process of their own, which may be the slower one.
		await until(() => complete().length === 3 && acks(rig).length === 3);
		expect(rig.visible("c1")).toEqual(answers);
		expect(acks(rig)).toEqual(["e1", "e2", "e3"]);
		const { trace } = look.turns({ limit: 1 })[0]!;
		expect(rig.deliveries.get(trace!.deliveries[0]!)).toMatchObject({ state: "complete", channel: "full" });

		// The adapter's process dies; the next one reports the same messages.
		process.kill(rig.outbound.accounts()[0]!.processes.monitor!.pid!, "SIGKILL");
		await until(() => acks(rig).length === 6);
		expect(nex.stats()).toMatchObject({ received: 6, duplicates: 3 });
		expect(rig.visible("c1")).toEqual(answers);
		expect(look.turns({ limit: 9 })).toHaveLength(3);
	});

	test("a stranger gets a code on the platform, and a note when it was approved", async () => {
		whole = await start(echo, {}, 1);
		const { rig, nex, look } = whole;
		await until(() => rig.visible("c1").length === 1);
		const [waiting] = await nex.pairing.list();
		expect(rig.visible("c1")[0]).toContain(`nexus pair ${waiting!.code}`);
		expect(look.turns({ limit: 9 })).toEqual([]);
		await nex.pairing.approve(waiting!.code);
		await until(() => rig.visible("c1").length === 2);
		expect(rig.visible("c1")[1]).toContain("approved");
	});

	test("an interrupted answer stays visible as far as it came, and the next one answers the rest together", async () => {
		// By what is asked, not by how often: a run that is stopped early enough never asks its engine.
		const play: Play = async function* ({ messages }, signal) {
			const isFirst = messages.at(-1)?.text === "t1";
			yield { type: "text", delta: isFirst ? "half an answer" : "all of it" };
			if (isFirst) await new Promise((resolve) => signal.addEventListener("abort", resolve));
		};
		whole = await start(play, { acl: { unknown: "allow" } }, 3);
		const { rig, look } = whole;
		const askedIn = () =>
			look
				.turns({ limit: 9 })
				.toReversed()
				.map((turn) => turn.messages.flatMap(({ role, text }) => (role === "user" ? [text] : [])));
		await until(() => askedIn().flat().length === 3 && rig.visible("c1").at(-1) === "all of it");
		// How many of them wait when the first run has been stopped depends on how fast they come; none is lost or answered twice.
		expect(askedIn()[0]).toEqual(["t1"]);
		expect(askedIn().flat()).toEqual(["t1", "t2", "t3"]);
		expect(look.turns({ limit: 9 }).at(-1)?.status).toBe("aborted");
		expect(look.events({ state: "superseded", limit: 9 }).at(-1)?.text).toBe("t1");
	});
});
