/** The libraries get a provider's stream in whole events, none too long, and no two tool calls with one id. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EVENT_BYTES_MAX, repairedFetch } from "../../packages/daemon/src/engine/pi/wire.ts";
import { atEffort } from "../effort.ts";

/** Reads a body that comes in these pieces: the text, and how many pieces were read. */
async function read(pieces: readonly (string | Buffer)[]) {
	let asked = 0;
	const body = new ReadableStream<Uint8Array>(
		{
			pull(to) {
				const piece = pieces[asked++];
				if (piece === undefined) to.close();
				else to.enqueue(typeof piece === "string" ? Buffer.from(piece) : piece);
			},
		},
		{ highWaterMark: 0 },
	);
	const response = await repairedFetch(async () => new Response(body))("http://provider");
	const events: string[] = [];
	try {
		for await (const event of response.body!) events.push(Buffer.from(event).toString());
		return { events, asked };
	} catch (error) {
		return { events, asked, error };
	}
}

describe("I11: events", () => {
	test("an event that comes in many pieces is handed on as one: the library looks through it once", async () => {
		const line = `data: ${"x".repeat(1_000_000)}\n\n`;
		const pieces = line.match(/[\s\S]{1,16384}/g)!;
		const { events } = await read(["data: first\n\n", ...pieces, "data: last\n\n"]);
		expect(events).toEqual(["data: first\n\n", line, "data: last\n\n"]);
	});

	test("one that is too long ends the answer, and what follows is not read", async () => {
		const piece = Buffer.alloc(65_536, "x");
		const { events, asked, error } = await read(["data: first\n\n", ...Array.from({ length: 160 }, () => piece)]);
		expect(events).toEqual(["data: first\n\n"]);
		expect(error).toMatchObject({ message: expect.stringContaining(`more than ${EVENT_BYTES_MAX} bytes`) });
		expect(asked).toBe(2 + EVENT_BYTES_MAX / piece.length);
	});

	test("however a stream is cut, all of it comes, and each piece but the last ends with an event", async () => {
		const event = fc.tuple(fc.constantFrom("a", "é\nb", "data: {}"), fc.constantFrom("\n\n", "\r\n\r\n", "\r\r"));
		const streams = fc.tuple(fc.array(event, { maxLength: 6 }), fc.string({ maxLength: 3 }), fc.array(fc.nat(40)));
		await fc.assert(
			fc.asyncProperty(streams, async ([parts, rest, cuts]) => {
				const whole = Buffer.from(parts.flat().join("") + rest);
				const at = [0, ...cuts.map((cut) => Math.min(cut, whole.length)), whole.length].toSorted((a, b) => a - b);
				const pieces = at.slice(1).map((end, n) => whole.subarray(at[n], end));
				const { events } = await read(pieces);
				expect(events.join("")).toBe(whole.toString());
				for (const one of events.slice(0, -1)) expect(one).toMatch(/(\n\n|\r\r|\r\n\r\n)$/);
			}),
			{ numRuns: atEffort(400) },
		);
	});

	test("an answer that is refused is passed on as it is", async () => {
		const refused = new Response("no", { status: 429 });
		expect(await repairedFetch(async () => refused)("http://provider")).toBe(refused);
	});
});

describe("two tool calls with one id", () => {
	const line = (...calls: object[]) => `data: ${JSON.stringify({ choices: [{ delta: { tool_calls: calls } }] })}\n\n`;

	test("get ids of their own; everything else stays as it is, byte for byte", async () => {
		const first = line({ index: 0, id: "c", function: { name: "look" } });
		const more = 'data:  {"choices" : [{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}}]}\n\n';
		const odd = 'data: {"tool_calls": broken\n\n';
		const second = line({ index: 1, id: "c", function: { name: "find" } });
		const third = line({ index: 2, id: "c" }, { index: 3, id: "c_2" }, { index: 0, id: "c" }, { id: "c" });
		const { events } = await read([first, more, odd, second, third]);
		expect(events).toEqual([
			...[first, more, odd],
			line({ index: 1, id: "c_2", function: { name: "find" } }),
			line({ index: 2, id: "c_3" }, { index: 3, id: "c_2_2" }, { index: 0, id: "c" }, { id: "c" }),
		]);
	});
});
