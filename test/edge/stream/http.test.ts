/** Streams on a real HTTP server: dialects with state and an end of their own, and who leaves data unread. */

import { createServer, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Bus, createBus, type LogWriter } from "../../../packages/daemon/src/bus/bus.ts";
import type { StreamFormat } from "../../../packages/daemon/src/edge/stream/formats.ts";
import { createReaders, Flusher, type Readers, SSE } from "../../../packages/daemon/src/edge/stream/stream.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import type { CloseMode } from "../../../packages/protocol/src/protocol.ts";
import { memoryStorage } from "../../bus/memory.ts";
import { quiet } from "../../quiet.ts";
import { rawClient, waitFor } from "../rig.ts";

/** Numbers what it shows, reader by reader, and does not show records that begin with `#`. */
const NUMBERED: StreamFormat = {
	headers: { "Content-Type": "text/event-stream; dialect=numbered" },
	open() {
		let shown = 0;
		return {
			open: () => "data: [OPEN]\n\n",
			text({ records }) {
				const lines = records.filter((record) => !record.startsWith("#"));
				return lines.map((line) => `data: ${++shown} ${line}\n\n`).join("");
			},
			end: () => `data: [DONE] ${shown} ✓\n\n`,
		};
	},
};

const shownBy = (text: string) => [...text.matchAll(/^data: (.*)$/gm)].map(([, line]) => line);

describe("HTTP answers", () => {
	let bus: Bus;
	let log: LogWriter;
	let readers: Readers;
	let server: Server;
	let port: number;
	let connections: Socket[];
	let dialect: StreamFormat;
	let closes: CloseMode;
	beforeEach(async () => {
		bus = createBus({ ...quiet, storage: memoryStorage() });
		log = await bus.create({ log: "run", kind: "run" }, ["begin"]);
		readers = createReaders(silentLog, new Flusher({ flushMsMax: 0, log: silentLog }));
		dialect = NUMBERED;
		closes = "A";
		server = createServer((request, response) => {
			const after = Number(new URL(request.url ?? "", "http://localhost").searchParams.get("after"));
			void bus.cursor({ log: "run" }, after).then((cursor) => readers.open(response, { cursor, dialect, closes }));
		});
		connections = [];
		server.on("connection", (socket) => connections.push(socket));
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		port = (server.address() as AddressInfo).port;
	});
	afterEach(async () => {
		readers.cut();
		server.closeAllConnections();
		server.close();
		await bus.close();
	});
	const get = (after = 0) => fetch(`http://127.0.0.1:${port}/?after=${after}`);
	/** Commits each record separately, so that each is a separate batch. */
	const say = async (...records: string[]) => {
		for (const record of records) {
			log.append(record);
			await log.flushed();
		}
	};

	it("each reader has its own encoder, whose end comes before a clean close", async () => {
		const live = await get();
		expect(live.headers.get("content-type")).toBe("text/event-stream; dialect=numbered");
		await say("héllo 🌍");
		const late = await get(1);
		await say("#hidden", "#hidden too", "there");
		await log.seal(["end"]);
		expect(shownBy(await live.text())).toEqual(["[OPEN]", "1 begin", "2 héllo 🌍", "3 there", "4 end", "[DONE] 4 ✓"]);
		expect(shownBy(await late.text())).toEqual(["[OPEN]", "1 héllo 🌍", "2 there", "3 end", "[DONE] 3 ✓"]);
		expect(readers.count).toBe(0);
		expect(bus.stats.cursors).toBe(0);
	});

	it("I3: a reader that is cut gets no end, and neither does one of mode D", async () => {
		closes = "D";
		const client = rawClient(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
		await log.seal(["end"]);
		await waitFor(() => client.received().includes("data: 2 end"));
		expect(readers.count).toBe(1);
		readers.cut();
		await client.closed;
		expect(client.received()).not.toContain("[DONE]");
		expect(client.received()).not.toContain("\r\n0\r\n\r\n");
	});

	it("I6: a shared dialect has one encoder for all readers, another one an encoder each", async () => {
		const opened = { own: 0, shared: 0 };
		const counting = (name: keyof typeof opened): StreamFormat => ({
			headers: {},
			open() {
				opened[name]++;
				return { text: ({ text }) => `${text}\n` };
			},
		});
		const shared: StreamFormat = { ...counting("shared"), shared: true };
		const own = counting("own");
		await log.seal(["end"]);
		for (let i = 0; i < 3; i++) {
			for (dialect of [shared, own]) expect(await (await get()).text()).toBe("begin\nend\n");
		}
		expect(opened).toEqual({ own: 3, shared: 1 });
	});

	it("I11: a reader that leaves even a little unread is stalled, whatever heartbeats say; one that reads is not", async () => {
		dialect = SSE;
		server.timeout = 300;
		const idle = rawClient(port, "GET /?after=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
		await waitFor(() => idle.received().includes("retry"));
		const stuck = rawClient(port, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
		await waitFor(() => stuck.received().includes("data: begin"));
		stuck.socket.pause();
		const [, socket] = connections;
		let unreadMost = 0;
		await waitFor(async () => {
			// Kernels take some megabytes, and may take more later.
			for (let i = 0; i < 1000 && socket!.writableLength === 0; i++) await say("x".repeat(1000));
			readers.heartbeat();
			unreadMost = Math.max(unreadMost, socket!.writableLength);
			return readers.stalled > 0;
		});
		expect(unreadMost).toBeLessThan(2000);
		expect(readers.stalled).toBe(1);
		await waitFor(() => readers.count === 1);
	});
});
