/** The daemon starts its parts in the one safe order, and hands on what deliveries hold before the Bus commits. */

import { setImmediate } from "node:timers/promises";
import type { Engine } from "@nexus-stream/protocol/engine";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { inboxWrites } from "../../packages/daemon/src/ledger/inbox/port.ts";
import { dataPaths, startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { eventOf } from "../ledger/rig.ts";
import { openPlainStore } from "../store.ts";
import { until } from "../until.ts";
import { freshFolder } from "./folder.ts";

const { calls, noting } = vi.hoisted(() => {
	const noted: string[] = [];
	return {
		calls: noted,
		/** Notes when one of the methods is called, and when it has done its work, which takes a while. */
		noting<T extends object>(part: T, name: string, methods: readonly (keyof T & string)[]): T {
			for (const method of methods) {
				const inner = (part[method] as (...args: unknown[]) => unknown).bind(part);
				const noticed = (...args: unknown[]): unknown => {
					noted.push(`${name}.${method}`);
					const answer = inner(...args);
					if (!(answer instanceof Promise)) return answer;
					return answer.then(async (value: unknown) => {
						for (let turns = 0; turns < 20; turns++) await setImmediate();
						noted.push(`${name}.${method} done`);
						return value;
					});
				};
				Object.defineProperty(part, method, { value: noticed });
			}
			return part;
		},
	};
});

vi.mock("../../packages/daemon/src/nex/nex.ts", async (original) => {
	const actual = await original<typeof import("../../packages/daemon/src/nex/nex.ts")>();
	return {
		...actual,
		createNex: (...args: Parameters<typeof actual.createNex>) =>
			noting(actual.createNex(...args), "nex", ["load", "recover", "start"]),
		createOutbound: (...args: Parameters<typeof actual.createOutbound>) =>
			noting(actual.createOutbound(...args), "outbound", ["start", "flush"]),
	};
});
vi.mock("../../packages/daemon/src/edge/edge.ts", async (original) => {
	const actual = await original<typeof import("../../packages/daemon/src/edge/edge.ts")>();
	return {
		...actual,
		createEdge: (...args: Parameters<typeof actual.createEdge>) =>
			noting(actual.createEdge(...args), "edge", ["listen"]),
	};
});
vi.mock("../../packages/daemon/src/runtime/data/store.ts", async (original) => {
	const actual = await original<typeof import("../../packages/daemon/src/runtime/data/store.ts")>();
	return {
		...actual,
		async openStore(...args: Parameters<typeof actual.openStore>) {
			const store = await actual.openStore(...args);
			noting(store.bus, "bus", ["flush"]);
			return store;
		},
	};
});

const engine: Engine = {
	name: "noted",
	async *run() {
		calls.push("engine.run");
		yield { type: "text", delta: "ok" };
	},
};

async function start(data: string) {
	const daemon = await startDaemon({ data, port: 0, engine, logger: silentLog });
	onTestFinished(() => daemon.close());
	return daemon;
}

beforeEach(() => void calls.splice(0));

it("I7: plugins load first, and pending deliveries resume before queued messages are answered or new ones come in", async () => {
	const data = freshFolder();
	const before = openPlainStore(dataPaths(data).db);
	await before.bus.write([inboxWrites.accept(eventOf("evt_1", { receivedAt: Date.now() }))]);
	await before.close();
	await start(data);
	await until("the message that waited is answered", () => calls.includes("engine.run"));
	expect(calls.filter((call) => call !== "engine.run")).toEqual([
		"nex.load",
		"nex.load done",
		"nex.recover",
		"outbound.start",
		"outbound.start done",
		"nex.recover done",
		"nex.start",
		"edge.listen",
		"edge.listen done",
	]);
	expect(calls.indexOf("engine.run")).toBeGreaterThan(calls.indexOf("outbound.start done"));
});

it("I1: deliveries hand over what they hold before the Bus commits", async () => {
	const daemon = await start(freshFolder());
	calls.splice(0);
	daemon.flush();
	expect(calls).toEqual(["outbound.flush", "bus.flush"]);
});
