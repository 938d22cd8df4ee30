/** Many readers of one run that never read: what the process holds for each of them is one batch, however long the log becomes (I6). */

import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { createBus } from "../../../packages/daemon/src/bus/bus.ts";
import type { StreamFormat } from "../../../packages/daemon/src/edge/stream/dialect.ts";
import { createReaders, Flusher, SSE } from "../../../packages/daemon/src/edge/stream/stream.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { quiet } from "../../quiet.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { waitFor, watchCursors } from "../rig.ts";

const READERS = 50;
const RECORD = "x".repeat(4096);
/** The bytes that one HTTP chunk adds to a batch. */
const CHUNK_BYTES_MAX = 16;

/** SSE, and the longest text that it made of one batch. */
function measuredSse() {
	const longest = { bytes: 0 };
	const dialect: StreamFormat = {
		headers: SSE.headers,
		shared: true,
		open() {
			const encoder = SSE.open();
			return {
				text(batch) {
					const text = encoder.text(batch);
					longest.bytes = Math.max(longest.bytes, text?.length ?? 0);
					return text;
				},
			};
		},
	};
	return { dialect, longest };
}

it("I6: 50 SSE readers that never read hold one batch each, and no more when the log grows", async () => {
	const bus = createBus({ ...quiet, storage: memoryStorage() });
	const log = await bus.create({ log: "run", kind: "run" }, ["begin"]);
	const readers = createReaders(silentLog, new Flusher({ flushMsMax: 0, log: silentLog }));
	const cursors = watchCursors(bus);
	const { dialect, longest } = measuredSse();
	const server = createServer((_, response) => {
		void bus.cursor({ log: "run" }, 0).then((cursor) => readers.open(response, { cursor, dialect, closes: "A" }));
	});
	const sockets: Socket[] = [];
	server.on("connection", (socket) => sockets.push(socket));
	// The kernel takes less for such a socket than for TCP.
	const path = join(freshFolder(), "http");
	await new Promise<void>((resolve) => server.listen(path, resolve));
	const clients = Array.from({ length: READERS }, () => {
		const client = connect(path);
		client.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
		return client.on("error", () => {});
	});
	onTestFinished(async () => {
		readers.cut();
		for (const client of clients) client.destroy();
		server.close();
		await bus.close();
	});
	await waitFor(() => readers.count === READERS);
	/** Commits each record separately, so that each is a separate batch. */
	const say = async (records: number) => {
		for (let n = 0; n < records; n++) {
			log.append(RECORD);
			await log.flushed();
		}
	};
	const held = () => sockets.map(({ writableLength }) => writableLength);
	await waitFor(async () => {
		await say(100);
		return held().every((bytes) => bytes > 0);
	});
	const heldBefore = held();
	const readBefore = cursors.map(({ offset }) => offset);
	expect(readBefore).toHaveLength(READERS);
	for (const bytes of heldBefore) expect(bytes).toBeLessThanOrEqual(longest.bytes + CHUNK_BYTES_MAX);
	await say(500);
	expect(held()).toEqual(heldBefore);
	expect(cursors.map(({ offset }) => offset)).toEqual(readBefore);
	expect(readers.count).toBe(READERS);
});
