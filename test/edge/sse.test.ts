/** Server-sent events (PROTOCOL §6): format, resume, end, and being cut. */

import { EventSource } from "eventsource";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { createVerifier, decodeFrame } from "../../packages/protocol/src/protocol.ts";
import { removeUpTo } from "../bus/remove.ts";
import {
	BEARER,
	expectError,
	type Rig,
	rawClient,
	readAll,
	readSse,
	rigForTest,
	type SseEvent,
	TOKEN,
	waitFor,
} from "./rig.ts";

const streamRequest = (path: string, version = "1.1") =>
	`GET ${path} HTTP/${version}\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;
const offsets = (events: readonly SseEvent[]) => events.map(({ id }) => Number(id));
const upFrom = (first: number, last: number) =>
	Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);

describe("SSE of a run", () => {
	let rig: Rig;
	beforeEach(async () => {
		rig = await rigForTest();
	});
	const streamOf = (runId: string, query = "") => `${rig.url}/v1/runs/${runId}/stream${query}`;

	it("P6.8: id is the offset, event the frame's type, data the frame; it closes after the final end", async () => {
		const { runId, puppet } = await rig.start("s");
		const reader = await readSse(streamOf(runId));
		expect(reader.response.status).toBe(200);
		expect(Object.fromEntries(reader.response.headers)).toMatchObject({
			"content-type": "text/event-stream",
			"cache-control": "no-store",
			"x-accel-buffering": "no",
		});
		await reader.until((events) => events.length === 1);
		puppet.say("Hé", "llo 🌍\n\r ");
		await reader.until((events) => events.length === 3);
		puppet.finish();
		expect(await reader.ended).toBe("clean");
		expect(offsets(reader.events)).toEqual([1, 2, 3, 4]);
		const frames = reader.events.map(({ data }) => decodeFrame(data));
		expect(reader.events.map(({ event }) => event)).toEqual(frames.map(({ type }) => type));
		expect(frames[2]).toMatchObject({ type: "stream.chunk", seq_no: 2, payload: "llo 🌍\n\r " });
		expect(frames[3]).toMatchObject({ type: "stream.end", final: true, reason: "completed" });
	});

	it("I4: resume at every offset, live and after the end, by ?after and by Last-Event-ID", async () => {
		const { runId, puppet } = await rig.start("s");
		const live = [];
		for (let i = 0; i < 8; i++) {
			puppet.say(`t${i}`);
			await waitFor(async () => (await rig.bus.describe(runId))?.head === i + 2);
			for (let after = 0; after <= i + 2; after++)
				live.push({ after, reader: await readSse(streamOf(runId, `?after=${after}`)) });
		}
		puppet.finish();
		for (const { after, reader } of live) {
			expect(await reader.ended).toBe("clean");
			expect(offsets(reader.events)).toEqual(upFrom(after + 1, 10));
		}
		for (let after = 0; after < 10; after++) {
			expect(offsets(await readAll(streamOf(runId, `?after=${after}`)))).toEqual(upFrom(after + 1, 10));
			expect(offsets(await readAll(streamOf(runId), { "last-event-id": String(after) }))).toEqual(
				upFrom(after + 1, 10),
			);
		}
	});

	it("I4: resume at every offset after a restart; what was live is ended by recovery (I3)", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a", "b", "c");
		puppet.finish();
		const before = await readAll(streamOf(runId));
		const open = await rig.start("t");
		open.puppet.say("x", "y");
		await waitFor(async () => (await rig.bus.describe(open.runId))?.head === 3);
		const reader = await readSse(streamOf(open.runId));
		await reader.until((events) => events.length === 3);
		await rig.restart();
		expect(await reader.ended).toBe("cut");
		for (let after = 0; after < before.length; after++) {
			expect(await readAll(streamOf(runId, `?after=${after}`))).toEqual(before.slice(after));
		}
		const rest = await readAll(streamOf(open.runId, `?after=${reader.events.length}`));
		expect(offsets([...reader.events, ...rest])).toEqual([1, 2, 3, 4]);
		expect(decodeFrame(rest.at(-1)!.data)).toMatchObject({ type: "stream.end", final: true });
	});

	it("P6.9: the larger of ?after and Last-Event-ID counts", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a", "b", "c");
		puppet.finish();
		await rig.settled(runId);
		expect(offsets(await readAll(streamOf(runId, "?after=1"), { "last-event-id": "3" }))).toEqual([4, 5]);
		expect(offsets(await readAll(streamOf(runId, "?after=3"), { "last-event-id": "1" }))).toEqual([4, 5]);
	});

	it("P6.10: a reconnect after the end gets 204, so an EventSource stops", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a");
		puppet.finish();
		const all = await readAll(streamOf(runId));
		const response = await rig.get(`/v1/runs/${runId}/stream`, { "last-event-id": String(all.length) });
		expect(response.status).toBe(204);

		let connects = 0;
		const source = new EventSource(streamOf(runId), {
			fetch: (url, init) => {
				connects++;
				return fetch(url, { ...init, headers: { ...init.headers, ...BEARER } });
			},
		});
		const seen: string[] = [];
		for (const type of ["stream.begin", "stream.chunk", "stream.end"]) {
			source.addEventListener(type, (event) => seen.push(event.lastEventId));
		}
		await waitFor(() => source.readyState === EventSource.CLOSED);
		expect(seen).toEqual(["1", "2", "3"]);
		expect(connects).toBe(2);
	});

	it("I9: what cannot be established is a status, not a stream", async () => {
		const { runId } = await rig.start("s");
		await expectError(await rig.get(`/v1/runs/${runId}/stream?after=2`), 400, "invalid");
		await expectError(await rig.get(`/v1/runs/${runId}/stream`, { "last-event-id": "abc" }), 400, "invalid");
		await expectError(await rig.get("/v1/runs/run_none/stream"), 404, "not_found");
		await expectError(await fetch(streamOf(runId)), 401, "unauthenticated");
	});

	it("a connection serves the next request after a stream has ended on it", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a");
		puppet.finish();
		await rig.settled(runId);
		const path = `/v1/runs/${runId}/stream`;
		const client = rawClient(rig.port, streamRequest(path));
		await waitFor(() => client.received().endsWith("\r\n0\r\n\r\n"));
		client.socket.write(streamRequest(path));
		await waitFor(() => client.received().split("\r\n0\r\n\r\n").length === 3);
		const [one, two] = client.received().split("\r\n0\r\n\r\n");
		const body = (text = "") => text.slice(text.indexOf("\r\n\r\n"));
		expect(body(two)).toBe(body(one));
	});

	it("a stream behind an unfinished answer on the same connection waits for nothing: it is refused", async () => {
		const { runId, puppet } = await rig.start("s");
		const path = `/v1/runs/${runId}/stream`;
		const client = rawClient(rig.port, streamRequest(path) + streamRequest(path));
		await waitFor(() => client.received().includes("event: stream.begin"));
		puppet.finish();
		await waitFor(() => client.received().includes("pipelined"));
		expect(rig.bus.stats.cursors).toBe(0);
	});

	it("HTTP/1.0 (a proxy's default) gets the same events, unframed, and the end of the connection", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a");
		puppet.finish();
		const client = rawClient(rig.port, streamRequest(`/v1/runs/${runId}/stream`, "1.0"));
		await client.closed;
		const [head = "", ...body] = client.received().split("\r\n\r\n");
		expect(head).not.toMatch(/chunked/i);
		expect(body.join("\r\n\r\n")).toMatch(
			/^retry: 1000\n\nid: 1\nevent: stream\.begin\ndata: .*\n\nid: 2\n[^\r]*\n\n$/s,
		);
	});

	it("a client that leaves lets its cursor go and does not stop the run", async () => {
		const { runId } = await rig.start("s");
		const readers = await Promise.all(Array.from({ length: 5 }, () => readSse(streamOf(runId))));
		expect(rig.edge.stats().sseReaders).toBe(5);
		expect(rig.bus.stats.cursors).toBe(5);
		for (const reader of readers) reader.stop();
		await waitFor(() => rig.edge.stats().sseReaders === 0 && rig.bus.stats.cursors === 0);
		expect(rig.broker.live(runId)?.status).toBe("running");
	});

	it("I3, P5.8: closing the edge cuts readers without a terminal", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("a");
		const reader = await readSse(streamOf(runId));
		await reader.until((events) => events.length === 2);
		await rig.edge.close(1000);
		expect(await reader.ended).toBe("cut");
		expect(reader.events.map(({ event }) => event)).toEqual(["stream.begin", "stream.chunk"]);
	});

	it("I4: readers that are cut at random and resume see every record once, in order, well framed (I2)", async () => {
		const { runId, puppet } = await rig.start("s");
		const total = 400;
		const feed = (async () => {
			for (let i = 0; i < total; i++) {
				puppet.say(`token ${i} `);
				if (i % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
			}
			puppet.finish();
		})();
		const follow = async (patience: number[]) => {
			const seen: SseEvent[] = [];
			for (let turn = 0; ; turn++) {
				const reader = await readSse(streamOf(runId), { "last-event-id": String(seen.length) });
				if (reader.response.status === 204) return seen;
				const most = patience[turn];
				if (most === undefined) await reader.ended;
				else await waitFor(() => reader.events.length >= most || reader.events.at(-1)?.event === "stream.end");
				reader.stop();
				await reader.ended;
				seen.push(...reader.events);
			}
		};
		const patience = fc.sample(fc.array(fc.nat({ max: 60 }), { minLength: 3, maxLength: 8 }), { numRuns: 6, seed: 7 });
		const all = await Promise.all(patience.map(follow));
		await feed;
		for (const seen of all) {
			expect(offsets(seen)).toEqual(upFrom(1, total + 2));
			const verifier = createVerifier();
			for (const { data } of seen) expect(verifier.push(decodeFrame(data))).toBeUndefined();
			expect(verifier.finish()).toBeUndefined();
		}
	});
});

describe("SSE of a session", () => {
	let rig: Rig;
	beforeEach(async () => {
		rig = await rigForTest();
	});
	const streamOf = (query = "") => `${rig.url}/v1/sessions/s/stream${query}`;
	const play = async (...tokens: string[]) => {
		const { runId, puppet } = await rig.start("s");
		puppet.say(...tokens);
		puppet.finish();
		await rig.settled(runId);
		return runId;
	};

	it("P6.2, mode D: waits for a session that has no run yet, then carries all its runs, and does not end", async () => {
		const reader = await readSse(streamOf());
		expect(reader.response.status).toBe(200);
		const runs = [await play("a"), await play("b", "c")];
		const events = await reader.until((seen) => seen.length === 7);
		expect(offsets(events)).toEqual(upFrom(1, 7));
		const begins = events.map(({ data }) => decodeFrame(data)).filter(({ type }) => type === "stream.begin");
		expect(begins.map((frame) => "run_id" in frame && frame.run_id)).toEqual(runs);
		expect(rig.edge.stats().sseReaders).toBe(1);
	});

	it("I4: chain offsets resume across runs and a restart", async () => {
		await play("a");
		await play("b", "c");
		await rig.restart();
		await play("d");
		const full = await (await readSse(streamOf())).until((seen) => seen.length === 10);
		for (let after = 0; after < 10; after++) {
			const reader = await readSse(streamOf(`?after=${after}`));
			expect(await reader.until((seen) => seen.length === 10 - after)).toEqual(full.slice(after));
			reader.stop();
		}
		await expectError(await rig.get("/v1/sessions/s/stream?after=11"), 400, "invalid");
	});

	it("P6.9: ?after=end is only what is new, and a reconnect still continues where it was", async () => {
		await play("a");
		const reader = await readSse(streamOf("?after=end"));
		await play("b");
		expect(offsets(await reader.until((seen) => seen.length === 3))).toEqual([4, 5, 6]);
		reader.stop();
		await play("c");
		const again = await readSse(streamOf("?after=end"), { "last-event-id": "6" });
		expect(offsets(await again.until((seen) => seen.length === 3))).toEqual([7, 8, 9]);
	});

	it("P6.9: without `after` it begins at the earliest kept record; before that is expired", async () => {
		const first = await play("a");
		await play("b");
		await removeUpTo(rig.bus, first);
		const reader = await readSse(streamOf());
		expect(offsets(await reader.until((seen) => seen.length === 3))).toEqual([4, 5, 6]);
		reader.stop();
		await expectError(await rig.get("/v1/sessions/s/stream?after=0"), 410, "expired");
	});

	it("P6.5: subscribing after stream_offset misses and repeats nothing", async () => {
		await play("a");
		const { runId, puppet } = await rig.start("s");
		puppet.say("b");
		await waitFor(() => rig.broker.live(runId)?.text === "b");
		const { stream_offset } = (await (await rig.get("/v1/sessions/s/turns")).json()) as { stream_offset: number };
		const reader = await readSse(streamOf(`?after=${stream_offset}`));
		const [begin] = await reader.until((seen) => seen.length === 2);
		expect(decodeFrame(begin!.data)).toMatchObject({ type: "stream.begin", run_id: runId });
	});
});
