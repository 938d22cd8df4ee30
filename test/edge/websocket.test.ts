/** WebSocket (PROTOCOL §6): the same logs, multiplexed. */

import { beforeEach, describe, expect, it } from "vitest";
import { manualClock } from "../clock.ts";
import { BEARER, type Rig, type RigOptions, rawClient, rigForTest, waitFor, watchCursors } from "./rig.ts";
import { dial } from "./ws-client.ts";

const upFrom = (first: number, last: number) =>
	Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);

describe("WebSocket", () => {
	let rig: Rig;
	const connect = (options?: { autoPong?: boolean }) => dial(rig.port, options);
	const make = async (options: RigOptions = {}) => {
		rig = await rigForTest(options);
	};
	beforeEach(() => make());

	it("P6.12: a run: subscribed, its frames with their offsets, ended", async () => {
		const { runId, puppet } = await rig.start("s");
		const client = await connect();
		client.send({ type: "subscribe", id: "a", run: runId });
		await client.until(() => client.offsets("a").length === 1);
		expect(client.messages[0]).toEqual({ type: "subscribed", id: "a", after: 0 });
		puppet.say("x", "y");
		puppet.finish();
		await client.until((messages) => messages.at(-1)?.type === "ended");
		expect(client.offsets("a")).toEqual([1, 2, 3, 4]);
		const frames = client.messages.flatMap((message) => message.frames ?? []);
		expect(frames.map(({ type }) => type)).toEqual(["stream.begin", "stream.chunk", "stream.chunk", "stream.end"]);
		expect(client.messages.at(-1)).toEqual({ type: "ended", id: "a" });
		expect(rig.edge.stats().subscriptions).toBe(0);
		expect(rig.bus.stats.cursors).toBe(0);
	});

	it("I4: resume at every offset, also after the end", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a", "b", "c");
		puppet.finish();
		await rig.settled(runId);
		const client = await connect();
		for (let after = 0; after <= 5; after++) {
			client.send({ type: "subscribe", id: `k${after}`, run: runId, after });
			await client.until((messages) => messages.some(({ type, id }) => type === "ended" && id === `k${after}`));
			expect(client.offsets(`k${after}`)).toEqual(upFrom(after + 1, 5));
		}
	});

	it("P6.12: many logs over one connection, each in order; an id can be used again after unsubscribe", async () => {
		const client = await connect();
		const runs = await Promise.all(["a", "b", "c"].map((session) => rig.start(session)));
		client.send({ type: "subscribe", id: "all-of-a", session: "a" });
		for (const [index, { runId }] of runs.entries()) client.send({ type: "subscribe", id: `r${index}`, run: runId });
		await client.until((messages) => messages.filter(({ type }) => type === "subscribed").length === 4);
		for (let i = 0; i < 20; i++) {
			for (const { puppet } of runs) puppet.say(`${i}`);
			await new Promise((resolve) => setImmediate(resolve));
		}
		await client.until(() => [0, 1, 2].every((index) => client.offsets(`r${index}`).length === 21));
		await client.until(() => client.offsets("all-of-a").length === 21);
		for (const id of ["r0", "r1", "r2", "all-of-a"]) expect(client.offsets(id)).toEqual(upFrom(1, 21));

		client.send({ type: "unsubscribe", id: "r0" });
		await waitFor(() => rig.edge.stats().subscriptions === 3);
		runs[0]!.puppet.say("more");
		await client.until(() => client.offsets("all-of-a").length === 22);
		expect(client.offsets("r0")).toHaveLength(21);
		client.send({ type: "subscribe", id: "r0", run: runs[0]!.runId, after: 21 });
		await client.until(() => client.offsets("r0").length === 22);
		expect(client.offsets("r0")).toEqual(upFrom(1, 22));
	});

	it("P6.12: a session: mode D, also one without a run yet, and only what is new with after: end", async () => {
		const client = await connect();
		client.send({ type: "subscribe", id: "s", session: "s" });
		await client.until((messages) => messages.length === 1);
		const first = await rig.start("s");
		first.puppet.finish();
		await client.until(() => client.offsets("s").length === 2);
		client.send({ type: "subscribe", id: "new", session: "s", after: "end" });
		await client.until((messages) => messages.some(({ id, after }) => id === "new" && after === 2));
		await rig.start("s");
		await client.until(() => client.offsets("s").length === 3 && client.offsets("new").length === 1);
		expect(client.offsets("new")).toEqual([3]);
	});

	it("P6.12: errors name the subscription and leave the others alone", async () => {
		const { runId, puppet } = await rig.start("s");
		const client = await connect();
		client.send({ type: "subscribe", id: "ok", run: runId });
		client.send({ type: "subscribe", id: "ok", run: runId });
		client.send({ type: "subscribe", id: "none", run: "run_none" });
		client.send({ type: "subscribe", id: "far", run: runId, after: 99 });
		client.send({ type: "subscribe", id: "label", session: "a b" });
		client.send({ type: "dance" });
		client.ws.send("{");
		client.ws.send(Buffer.from([1, 2]));
		const errors = () => client.messages.filter(({ type }) => type === "error");
		await client.until(() => errors().length === 7);
		expect(
			errors()
				.map(({ id, error }) => `${id ?? ""} ${error?.code}`)
				.toSorted((left, right) => (left < right ? -1 : 1)),
		).toEqual([" invalid", " invalid", " invalid", " invalid", "far invalid", "none not_found", "ok conflict"]);
		puppet.say("x");
		await client.until(() => client.offsets("ok").length === 2);
	});

	it.each([
		["GET", "Sec-WebSocket-Version: 12", 400, "invalid", "Sec-WebSocket-Version: 13"],
		["POST", "Sec-WebSocket-Version: 13", 405, "method_not_allowed", "Allow: GET"],
	])(
		"P6.1: a wrong handshake (%s, %s) is refused like anything else",
		async (method, version, status, code, header) => {
			const upgrade = `Upgrade: websocket\r\nConnection: Upgrade\r\n${version}\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n`;
			const head = `${method} /v1/ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${BEARER.authorization}\r\n`;
			const client = rawClient(rig.port, `${head}${upgrade}\r\n`);
			await client.closed;
			const [headers = "", body = ""] = client.received().split("\r\n\r\n");
			expect(headers.split("\r\n")).toEqual(
				expect.arrayContaining([expect.stringContaining(` ${status} `), "Content-Type: application/json", header]),
			);
			expect(JSON.parse(body)).toMatchObject({ error: { code } });
		},
	);

	it("I11: subscriptions and message size are limited", async () => {
		await make({ limits: { wsSubscriptionsMax: 2, wsMessageBytesMax: 1024 } });
		const client = await connect();
		for (const id of ["1", "2", "3"]) client.send({ type: "subscribe", id, session: "s" });
		await client.until((messages) => messages.length === 3);
		expect(client.messages.find(({ type }) => type === "error")).toMatchObject({ id: "3", error: { code: "busy" } });
		client.ws.send("x".repeat(2000));
		expect(await client.closed).toBe(1009);
	});

	it("I6: a client that does not read is not pulled for, and the others go on", async () => {
		const { runId, puppet } = await rig.start("s");
		const cursors = watchCursors(rig.bus);
		const [slow, quick] = [await connect(), await connect()];
		slow.send({ type: "subscribe", id: "x", run: runId });
		await slow.until((messages) => messages.length === 2);
		slow.ws.pause();
		quick.send({ type: "subscribe", id: "x", run: runId });
		const total = 20_000;
		let pulledAtHalf = 0;
		for (let said = 0; said < total; said += 500) {
			puppet.say(...Array.from({ length: 500 }, () => "x".repeat(1000)));
			await waitFor(() => cursors[1]?.offset === said + 501);
			if (said === total / 2) pulledAtHalf = cursors[0]!.offset;
		}
		expect(pulledAtHalf).toBeLessThan(total / 2);
		expect(cursors[0]!.offset).toBe(pulledAtHalf);
		puppet.finish();
		await quick.until((messages) => messages.at(-1)?.type === "ended");
		expect(quick.offsets("x")).toEqual(upFrom(1, total + 2));
		slow.ws.resume();
		await slow.until((messages) => messages.at(-1)?.type === "ended");
		expect(slow.offsets("x")).toEqual(upFrom(1, total + 2));
	});

	it("I11: who takes nothing for stalledReaderMs while data waits is disconnected; who is idle is not", async () => {
		// A client that does not answer pings would be dropped for that: here none are sent.
		await make({ limits: { stalledReaderMs: 1000, heartbeatMs: 600_000 } });
		const { runId, puppet } = await rig.start("s");
		const [idle, stalled] = [await connect(), await connect()];
		stalled.send({ type: "subscribe", id: "x", run: runId });
		await stalled.until((messages) => messages.length === 2);
		stalled.ws.pause();
		for (let i = 0; i < 20_000; i++) puppet.say("x".repeat(1000));
		await waitFor(() => rig.edge.stats().stalledReaders === 1);
		await waitFor(() => rig.edge.stats().webSockets === 1 && rig.bus.stats.cursors === 0);
		idle.send({ type: "subscribe", id: "y", run: runId });
		await idle.until((messages) => messages.length > 0);
	});

	it("P6.12: who asks and does not read is closed with 1013, and its cursors go at once", async () => {
		const client = await connect();
		client.send({ type: "subscribe", id: "s", session: "s" });
		await client.until((messages) => messages.length === 1);
		client.ws.pause();
		await waitFor(() => {
			for (let i = 0; i < 1000; i++) client.ws.send("{");
			return rig.bus.stats.cursors === 0;
		});
		expect(rig.edge.stats().subscriptions).toBe(0);
		client.ws.resume();
		expect(await client.closed).toBe(1013);
	});

	it("P6.12: a long replay does not hold up a live subscription of the same connection", async () => {
		const long = await rig.start("long");
		for (let i = 0; i < 40; i++) {
			long.puppet.say(...Array.from({ length: 500 }, () => "x".repeat(500)));
			await waitFor(() => rig.broker.live(long.runId)?.text.length === (i + 1) * 250_000);
		}
		const live = await rig.start("live");
		const client = await connect();
		client.send({ type: "subscribe", id: "long", run: long.runId });
		client.send({ type: "subscribe", id: "live", run: live.runId });
		await client.until(() => client.offsets("live").length === 1 && client.offsets("long").length === 20_001);
		const framesOf = (id: string) =>
			client.messages.filter((message) => message.id === id && message.type === "frames");
		const [first] = framesOf("live");
		expect(client.messages.indexOf(first!)).toBeLessThan(client.messages.indexOf(framesOf("long").at(-1)!));
	});

	it("P6.15: who does not answer pings is dropped", async () => {
		const clock = manualClock(Date.now());
		await make({ clock, limits: { heartbeatMs: 1000 } });
		const [dead, alive] = [await connect({ autoPong: false }), await connect()];
		let pings = 0;
		alive.ws.on("ping", () => pings++);
		clock.advance(1000);
		await waitFor(() => pings === 1);
		alive.send({ type: "unsubscribe", id: "nothing" });
		alive.send({ type: "subscribe", id: "s", session: "s" });
		await alive.until((messages) => messages.length === 1);
		clock.advance(1000);
		expect(await dead.closed).toBe(1006);
		await waitFor(() => pings === 2);
		await waitFor(() => rig.edge.stats().webSockets === 1);
	});

	it("I3: closing says 1001 and sends no terminal", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a");
		const client = await connect();
		client.send({ type: "subscribe", id: "x", run: runId });
		await client.until(() => client.offsets("x").length === 2);
		await rig.edge.close(1000);
		expect(await client.closed).toBe(1001);
		expect(client.messages.filter(({ type }) => type === "ended")).toEqual([]);
		expect(rig.bus.stats.cursors).toBe(0);
	});

	it("a client that leaves lets its cursors go", async () => {
		const client = await connect();
		for (let i = 0; i < 10; i++) client.send({ type: "subscribe", id: `${i}`, session: "s" });
		await client.until((messages) => messages.length === 10);
		expect(rig.bus.stats.cursors).toBe(10);
		client.ws.terminate();
		await waitFor(() => rig.bus.stats.cursors === 0 && rig.edge.stats().webSockets === 0);
	});
});
