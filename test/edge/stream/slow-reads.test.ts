/** Streams over a store whose every read is a promise, while producers go on and wake the readers. */

import { beforeEach, describe, expect, it } from "vitest";
import type { Bus } from "../../../packages/daemon/src/bus/bus.ts";
import { type Rig, readAll, readSse, rigForTest, waitFor } from "../rig.ts";
import { dial } from "../ws-client.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));
const upFrom = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

/** From now on a read takes a turn of the loop, and counts those that one cursor makes side by side. */
function delayReads(bus: Bus) {
	const seen = { reads: 0, inFlight: 0, sideBySide: 0 };
	const open = bus.cursor.bind(bus);
	bus.cursor = async (source, after) => {
		const cursor = await open(source, after);
		const next = cursor.next.bind(cursor);
		let own = 0;
		cursor.next = async () => {
			seen.reads++;
			seen.inFlight++;
			if (own++ > 0) seen.sideBySide++;
			await turn();
			own--;
			seen.inFlight--;
			return next();
		};
		return cursor;
	};
	return seen;
}

describe("ST14: reads that take a while", () => {
	let rig: Rig;
	beforeEach(async () => {
		rig = await rigForTest();
	});

	it("every reader of a live run gets every record once, with one read at a time", async () => {
		const seen = delayReads(rig.bus);
		const { runId, puppet } = await rig.start("s");
		const sse = await readSse(`${rig.url}/v1/runs/${runId}/stream`);
		const client = await dial(rig.port);
		client.send({ type: "subscribe", id: "run", run: runId });
		client.send({ type: "subscribe", id: "session", session: "s" });
		const total = 300;
		for (let i = 0; i < total; i++) {
			puppet.say(`${i}`);
			if (i % 3 === 0) await turn();
		}
		puppet.finish();
		expect(await sse.ended).toBe("clean");
		await client.until((messages) => messages.some(({ type }) => type === "ended"));
		await client.until(() => client.offsets("session").length === total + 2);
		const all = upFrom(1, total + 2);
		expect(sse.events.map(({ id }) => Number(id))).toEqual(all);
		expect(client.offsets("run")).toEqual(all);
		expect(client.offsets("session")).toEqual(all);
		expect(seen.sideBySide).toBe(0);
		const frames = await (await rig.get(`/v1/runs/${runId}/frames`)).text();
		expect(frames.trimEnd().split("\n")).toEqual(sse.events.map(({ data }) => data));
		expect(await readAll(`${rig.url}/v1/runs/${runId}/stream?after=100`)).toEqual(sse.events.slice(100));
	});

	it("a reader that has everything reads nothing until it is woken", async () => {
		const seen = delayReads(rig.bus);
		const { runId, puppet } = await rig.start("s");
		const sse = await readSse(`${rig.url}/v1/runs/${runId}/stream`);
		const client = await dial(rig.port);
		client.send({ type: "subscribe", id: "run", run: runId });
		await sse.until((events) => events.length === 1);
		await client.until(() => client.offsets("run").length === 1);
		await waitFor(() => seen.inFlight === 0);
		const { reads } = seen;
		for (let i = 0; i < 20; i++) await turn();
		expect(seen.reads).toBe(reads);
		puppet.say("more");
		await sse.until((events) => events.length === 2);
	});
});
