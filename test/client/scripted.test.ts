/** The stream client over bodies that a script writes and a clock that it moves. */

import { describe, expect, it } from "vitest";
import { createClient, type LinkState, type StreamOptions } from "../../packages/client/src/client.ts";
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
		clock,
		stream,
		offsets,
		connections,
		phases: () => states.map(({ phase }) => phase),
		live: () => until("the stream is live", () => stream.state.phase === "live"),
		say: (text: string) => connections.at(-1)!.enqueue(new TextEncoder().encode(text)),
	};
}

it("I4: receives a record that takes longer than the silence that is allowed", async () => {
	const { clock, stream, offsets, connections, live, say } = play();
	await live();
	for (const letter of event(1, true)) {
		const { receivedAt: heardAt } = stream.state;
		clock.advance(limits.silenceMs / 2);
		say(letter);
		await until("it is heard", () => stream.state.receivedAt > heardAt || stream.state.phase !== "live");
	}
	expect([offsets, stream.state.phase, connections.length]).toEqual([[1], "ended", 1]);
});

it("gives a silent connection up, and reads on over the next one", async () => {
	const { clock, stream, offsets, connections, phases, live, say } = play();
	await live();
	say(event(1));
	await until("the record was taken", () => offsets.length === 1);
	clock.advance(limits.silenceMs);
	await until("it connects again", () => {
		clock.advance(limits.retryMaxMs);
		return connections.length === 2;
	});
	say(event(2, true));
	await until("the stream is over", () => stream.state.phase === "ended");
	expect([offsets, phases()]).toEqual([[1, 2], expect.arrayContaining(["waiting"])]);
});

describe("a callback that fails stops the stream, and is not a cut connection", () => {
	const failure = new Error("the disk is full");
	const failed = { phase: "stopped", lastId: 1, error: { message: failure.message, cause: failure } };

	const throws = () => {
		throw failure;
	};
	const WAYS: [string, () => void][] = [
		["throws", throws],
		["rejects", () => Promise.reject(failure)],
	];

	it.each(WAYS)("onRecords %s", async (_how, onRecords) => {
		const { clock, stream, connections, phases, live, say } = play({ onRecords });
		await live();
		say(event(1) + event(2));
		await until("the stream is over", () => phases().at(-1) !== "live");
		clock.advance(60_000);
		expect(stream.state).toMatchObject({ ...failed, lastId: 2 });
		expect([phases(), connections.length]).toEqual([["connecting", "live", "stopped"], 1]);
	});

	it.each(WAYS)("onRecords %s before a record that is damaged", async (_how, onRecords) => {
		const { stream, phases, live, say } = play({ onRecords, onDamage() {} });
		await live();
		say(`${event(1)}id: 2\nevent: stream.chunk\ndata: nonsense\n\n`);
		await until("the stream is over", () => phases().at(-1) !== "live");
		expect(stream.state).toMatchObject({ phase: "stopped", error: { cause: failure } });
	});

	it("onRecords rejects the final record", async () => {
		const { stream, phases, live, say } = play({ onRecords: () => Promise.reject(failure) });
		await live();
		say(event(1, true));
		await until("the stream has stopped", () => phases().at(-1) === "stopped");
		expect(stream.state).toMatchObject(failed);
	});

	it("onState", () => {
		const { stream } = play({ onState: throws });
		expect(stream.state).toMatchObject({ ...failed, lastId: 0 });
	});

	it("onDamage", async () => {
		const { stream, live, say } = play({ onDamage: throws });
		await live();
		say("id: 1\nevent: stream.chunk\ndata: nonsense\n\n");
		await until("the stream is over", () => stream.state.phase !== "live");
		expect(stream.state).toMatchObject(failed);
	});

	it("follow throws what its onState threw", async () => {
		const client = createClient({ url: "http://nexus.test", fetch: () => new Promise(() => {}) });
		await expect(client.follow({ run: RUN }, { onState: throws }).next()).rejects.toMatchObject({ cause: failure });
	});
});

it("I6: reads no more while onRecords is pending, also for what stood before a damaged record", async () => {
	const { promise, resolve } = Promise.withResolvers<void>();
	const taken: number[] = [];
	const damage: string[] = [];
	const { live, say, stream, connections } = play({
		onRecords(records) {
			taken.push(...records.map(({ offset }) => offset));
			return taken.length === 1 ? promise : undefined;
		},
		onDamage: ({ message }) => void damage.push(message),
	});
	await live();
	say(`${event(1)}id: 2\nevent: stream.chunk\ndata: nonsense\n\n`);
	await until("the first was handed over", () => taken.length === 1);
	say(event(3, true));
	for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
	expect([taken, stream.state.phase]).toEqual([[1], "live"]);
	resolve();
	await until("the stream is over", () => stream.state.phase === "ended");
	expect([taken, connections.length]).toEqual([[1, 3], 1]);
	expect(damage).toEqual([expect.stringMatching(/^record 2 is not a frame: /)]);
});
