/** The stream client against a real server that behaves badly in every way a network can. */

import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createClient, type LinkState, type Stream } from "../../packages/client/src/client.ts";
import { until } from "../until.ts";

const RUN = "run_00000000000000000000000000";
const TOTAL = 40;
const limits = { retryFirstMs: 5, retryMaxMs: 20, silenceMs: 60_000 };

function event(offset: number): string {
	const frame =
		offset === TOTAL
			? {
					type: "stream.end",
					message_id: `${RUN}.1`,
					total_chunks: TOTAL,
					checksum: "crc32:00000000",
					final: true,
					reason: "completed",
					ts: 1,
				}
			: {
					type: "stream.chunk",
					message_id: `${RUN}.1`,
					seq_no: offset,
					payload: `ü${offset} `,
					is_partial: true,
					ts: 1,
				};
	return `id: ${offset}\nevent: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`;
}

describe("the stream client", () => {
	let server: Server;
	let url: string;
	let asked: number[];
	let answer: (after: number, response: ServerResponse) => void;
	let stream: Stream | undefined;

	beforeEach(async () => {
		asked = [];
		server = createServer((request, response) => {
			const after = Number(new URL(request.url ?? "", "http://x").searchParams.get("after"));
			asked.push(after);
			answer(after, response);
		});
		server.listen(0, "127.0.0.1");
		await once(server, "listening");
		url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	});
	afterEach(async () => {
		stream?.send({ type: "stop" });
		server.closeAllConnections();
		server.close();
		await once(server, "close");
	});

	async function read(silenceMs = limits.silenceMs) {
		const offsets: number[] = [];
		const states: LinkState[] = [];
		const damage: string[] = [];
		stream = createClient({ url, limits: { ...limits, silenceMs } }).open(
			{ run: RUN },
			{
				onRecords: (records) => void offsets.push(...records.map(({ offset }) => offset)),
				onState: (state) => void states.push(state),
				onDamage: (error) => void damage.push(error.message),
			},
		);
		await until("the stream is over", () => ["ended", "refused"].includes(stream?.state.phase ?? ""));
		return { offsets, states, damage };
	}

	const everything = Array.from({ length: TOTAL }, (_, index) => index + 1);
	const open = (response: ServerResponse) => response.writeHead(200, { "content-type": "text/event-stream" });
	const write = (response: ServerResponse, from: number, to: number) => {
		for (let offset = from; offset <= Math.min(to, TOTAL); offset += 1) response.write(event(offset));
	};

	it("I4: reads through cut connections, each record once", async () => {
		answer = (after, response) => {
			open(response);
			write(response, after + 1, after + 7);
			response.write(event(after + 8).slice(0, 30), () => response.destroy());
		};
		expect((await read()).offsets).toEqual(everything);
		expect(asked[0]).toBe(0);
		expect(asked.length).toBeGreaterThan(3);
	});

	it("I4: is not confused by a server that repeats or skips", async () => {
		answer = (after, response) => {
			open(response);
			write(response, Math.max(1, after - 3), after + 5);
			if (asked.length % 2 === 1) write(response, after + 9, after + 12);
			else write(response, after + 6, TOTAL);
		};
		expect((await read()).offsets).toEqual(everything);
	});

	it("gives a silent connection up and tries again", async () => {
		answer = (after, response) => {
			open(response);
			if (asked.length === 1) write(response, 1, 5);
			else write(response, after + 1, TOTAL);
		};
		const { offsets, states } = await read(300);
		expect(offsets).toEqual(everything);
		expect(states.map(({ phase }) => phase)).toContain("waiting");
	});

	it("waits while the server starts, and stops asking when there is nothing more", async () => {
		answer = (after, response) => {
			if (asked.length < 3) return response.writeHead(503).end();
			if (asked.length === 3) {
				open(response);
				write(response, after + 1, 10);
				return response.end();
			}
			return response.writeHead(204).end();
		};
		expect((await read()).offsets).toEqual(everything.slice(0, 10));
		expect(asked).toEqual([0, 0, 0, 10]);
	});

	it("does not insist when it is refused", async () => {
		answer = (_after, response) => response.writeHead(401).end();
		const { states } = await read();
		expect(states.at(-1)).toMatchObject({ phase: "refused", error: { code: "unauthenticated" } });
		expect(asked).toEqual([0]);
	});

	it("skips a record that is not a frame, and reports it", async () => {
		answer = (_after, response) => {
			open(response);
			response.write(event(1));
			response.write('id: 2\nevent: stream.chunk\ndata: {"type":"nonsense"}\n\n');
			write(response, 3, TOTAL);
		};
		const { offsets, damage } = await read();
		expect(offsets).toEqual(everything.filter((offset) => offset !== 2));
		expect(damage).toEqual([expect.stringMatching(/^record 2 is not a frame: /)]);
	});
});
