/** The stream client over bodies that a script writes and a clock that it moves. */

import { expect, it } from "vitest";
import { createClient, type LinkState, type StreamOptions } from "../../src/client/client.ts";
import { manualClock } from "../clock.ts";
import { until } from "../until.ts";

const RUN = "run_00000000000000000000000000";
const limits = { retryFirstMs: 10, retryMaxMs: 10, silenceMs: 1000 };

function event(offset: number, final = false): string {
	const chunk = { type: "stream.chunk", message_id: `${RUN}.1`, seq_no: offset, payload: "ü", is_partial: true, ts: 1 };
	const end = {
		type: "stream.end",
		message_id: `${RUN}.1`,
		total_chunks: offset - 1,
		checksum: "crc32:00000000",
		final: true,
		reason: "completed",
		ts: 1,
	};
	const frame = final ? end : chunk;
	return `id: ${offset}\nevent: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`;
}

/** A stream of the run, and each of its connections as a controller of what comes over it. */
function play(options: Partial<StreamOptions> = {}) {
	const clock = manualClock();
	const connections: ReadableStreamDefaultController<Uint8Array>[] = [];
	const client = createClient({
		url: "http://nexus.test",
		limits,
		clock,
		fetch: async () => new Response(new ReadableStream({ start: (controller) => void connections.push(controller) })),
	});
	const offsets: number[] = [];
	const states: LinkState[] = [];
	const stream = client.open(
		{ run: RUN },
		{
			onRecords: (records) => void offsets.push(...records.map(({ offset }) => offset)),
			onState: (state) => void states.push(state),
			...options,
		},
	);
	return {
		...{ clock, stream, offsets, connections, phases: () => states.map(({ phase }) => phase) },
		live: () => until("the stream is live", () => stream.state.phase === "live"),
		say: (text: string) => connections.at(-1)!.enqueue(new TextEncoder().encode(text)),
	};
}

it("I4: receives a record that takes longer than the silence that is allowed", async () => {
	const { clock, stream, offsets, connections, live, say } = play();
	await live();
	for (const letter of event(1, true)) {
		const { heardAt } = stream.state;
		clock.advance(limits.silenceMs / 2);
		say(letter);
		await until("it is heard", () => stream.state.heardAt > heardAt || stream.state.phase !== "live");
	}
	expect([offsets, stream.state.phase, connections.length]).toEqual([[1], "ended", 1]);
});
