/** Server-sent events under pressure (PROTOCOL §6): heartbeat, readers that do not read, and many of them. */

import { describe, expect, it } from "vitest";
import { expectError, rawClient, readSse, rigForTest, TOKEN, waitFor, watchCursors } from "./rig.ts";

const streamRequest = (path: string) =>
	`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`;

describe("SSE under pressure", () => {
	it("I6: a reader that does not read holds up no other, causes no further reads, and can finish later", async () => {
		const rig = await rigForTest();
		const { runId, puppet } = await rig.start("s");
		const path = `/v1/runs/${runId}/stream`;
		const cursors = watchCursors(rig.bus);
		const slow = rawClient(rig.port, streamRequest(path));
		await waitFor(() => slow.received().includes("stream.begin"));
		slow.socket.pause();
		const reader = await readSse(rig.url + path);
		const [slowCursor, readerCursor] = cursors;
		const total = 20_000;
		let pulledAtHalf = 0;
		for (let said = 0; said < total; said += 500) {
			puppet.say(...Array.from({ length: 500 }, () => "x".repeat(1000)));
			await reader.until((events) => events.length > said + 500);
			expect(readerCursor!.offset).toBe(said + 501);
			if (said === total / 2) pulledAtHalf = slowCursor!.offset;
		}
		// Kernel buffers take some megabytes; beyond them not one batch is pulled.
		expect(pulledAtHalf).toBeLessThan(total / 2);
		expect(slowCursor!.offset).toBe(pulledAtHalf);
		puppet.finish();
		expect(await reader.ended).toBe("clean");
		slow.socket.resume();
		await waitFor(() => slow.received().endsWith("0\r\n\r\n"));
		expect(slow.received().match(/\nevent: stream\.chunk\n/g)).toHaveLength(total);
	});

	it("I11: a reader that takes nothing for stalledReaderMs is disconnected; an idle one is not", async () => {
		const rig = await rigForTest({ limits: { stalledReaderMs: 3000, heartbeatMs: 100 } });
		const { runId, puppet } = await rig.start("s");
		const path = `/v1/runs/${runId}/stream`;
		const idle = await rig.start("t");
		const idleReader = await readSse(`${rig.url}/v1/runs/${idle.runId}/stream`);
		const stalled = rawClient(rig.port, streamRequest(path));
		await waitFor(() => stalled.received().includes("stream.begin"));
		stalled.socket.pause();
		for (let i = 0; i < 20_000; i++) puppet.say("x".repeat(1000));
		await waitFor(() => rig.edge.stats().stalledReaders === 1);
		await waitFor(() => rig.edge.stats().sseReaders === 1);
		await waitFor(() => idleReader.comments.length > 3);
	});

	it("I11: no more than streamsMax streams, and a place is free again when one goes", async () => {
		const rig = await rigForTest({ limits: { streamsMax: 2 } });
		const { runId } = await rig.start("s");
		const path = `/v1/runs/${runId}/stream`;
		const readers = [await readSse(rig.url + path), await readSse(rig.url + path)];
		await expectError(await rig.get(path), 429, "busy");
		await expectError(await rig.get(`/v1/runs/${runId}/frames`), 429, "busy");
		readers[0]!.stop();
		await waitFor(() => rig.edge.stats().sseReaders === 1);
		const next = await readSse(rig.url + path);
		expect(next.response.status).toBe(200);
	});

	it("I11: streams that open at the same time are no more than streamsMax either", async () => {
		const rig = await rigForTest({ limits: { streamsMax: 2 } });
		const { runId } = await rig.start("s");
		const release = Promise.withResolvers<void>();
		const open = rig.bus.cursor.bind(rig.bus);
		let checking = 0;
		rig.bus.cursor = async (source, after) => {
			const cursor = await open(source, after);
			const check = cursor.check.bind(cursor);
			cursor.check = async () => {
				checking++;
				await release.promise;
				return check();
			};
			return cursor;
		};
		const answers = [1, 2, 3, 4].map(() => readSse(`${rig.url}/v1/runs/${runId}/stream`));
		await waitFor(() => checking === 4);
		release.resolve();
		const readers = await Promise.all(answers);
		expect(readers.map(({ response }) => response.status).toSorted((a, b) => a - b)).toEqual([200, 200, 429, 429]);
	});
});
