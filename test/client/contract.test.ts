/** The client against a real edge, over connections that break anywhere: what is folded is what was produced, each frame once. */

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createClient, type Fetch, type FollowedRecord, type LinkState } from "../../packages/client/src/client.ts";
import { createFold, decodeFrame, NexusError, type RunView } from "../../packages/protocol/src/protocol.ts";
import { removeUpTo } from "../bus/remove.ts";
import { manualClock } from "../clock.ts";
import { createRig, type Rig, TOKEN } from "../edge/rig.ts";
import { atEffort } from "../effort.ts";
import { until } from "../until.ts";

let rig: Rig;
beforeAll(async () => {
	rig = await createRig();
});
afterAll(() => rig.close());

const quick = { retryFirstMs: 0, retryMaxMs: 20 };
/** Asked for every request: after a restart the port is another one. */
const locate = async () => ({ url: rig.url, token: TOKEN });
const clientWith = (get: Fetch = fetch) => createClient({ locate, fetch: get, limits: quick });

/** Cuts the body of each stream after so many bytes; those that come later are left whole. */
function cutting(cuts: readonly number[]): Fetch {
	let streams = 0;
	return async (url, init) => {
		const response = await fetch(url, init);
		const cut = url.includes("/stream") ? cuts[streams++] : undefined;
		if (cut === undefined || !response.body) return response;
		let left = cut;
		const cutter = new TransformStream<Uint8Array, Uint8Array>({
			transform(bytes, controller) {
				controller.enqueue(bytes.subarray(0, left));
				left -= bytes.length;
				if (left <= 0) controller.error(new TypeError("cut by the test"));
			},
		});
		return new Response(response.body.pipeThrough(cutter), { status: response.status, headers: response.headers });
	};
}

/** Changes the text of every stream on its way. */
const changing =
	(change: (text: string) => string): Fetch =>
	async (url, init) => {
		const response = await fetch(url, init);
		if (!url.includes("/stream") || !response.body) return response;
		const changer = new TransformStream<string, string>({
			transform: (text, controller) => controller.enqueue(change(text)),
		});
		const body = response.body
			.pipeThrough(new TextDecoderStream())
			.pipeThrough(changer)
			.pipeThrough(new TextEncoderStream());
		return new Response(body, { status: response.status, headers: response.headers });
	};

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
	const found: T[] = [];
	for await (const item of items) found.push(item);
	return found;
}

const WORDS = ["Grüße, ", "世界 ", "👩‍👩‍👧 ", "plain words ", 'a "quoted"\nline '];

/** Says a run with text, reasoning, a tool and a card, to its end. */
async function answered(session: string): Promise<string> {
	const { runId, puppet } = await rig.start(session);
	puppet.yield({ type: "reasoning", delta: "hm … " });
	puppet.say(...WORDS);
	puppet.yield(
		{ type: "tool", callId: "c1", name: "search", status: "started" },
		{ type: "tool", callId: "c1", name: "search", status: "completed", summary: "ok" },
		{ type: "part", modality: "card", contentType: "application/json", payload: '{"title":"ü"}' },
	);
	puppet.say(...WORDS, ...WORDS);
	puppet.finish();
	await until(`${runId} settles`, async () => (await rig.ledger.turns.get(runId)) !== undefined);
	return runId;
}

const framesOf = (runId: string) => all(clientWith().api.frames(runId));

function foldOf(frames: readonly string[]): RunView {
	const fold = createFold();
	for (const text of frames) fold.push(decodeFrame(text));
	return fold.view();
}

const texts = (records: readonly FollowedRecord[]) => records.map(({ text }) => text);
const offsets = (records: readonly FollowedRecord[]) => records.map(({ offset }) => offset);
const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

describe("the client", () => {
	it("I4: through connections cut at any byte, follows a run to its end, each frame once, and folds what was produced", async () => {
		const runId = await answered("cuts");
		const frames = await framesOf(runId);
		const view = foldOf(frames);
		await fc.assert(
			fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 3000 }), { maxLength: 12 }), async (cuts) => {
				const records = await all(clientWith(cutting(cuts)).follow({ run: runId }));
				expect(texts(records)).toEqual(frames);
				expect(offsets(records)).toEqual(upTo(frames.length));
				expect(records.at(-1)).toMatchObject({ runId, end: { final: true, reason: "completed" } });
				expect((await all(clientWith(cutting(cuts)).watch({ run: runId }))).at(-1)).toEqual(view);
			}),
			{ numRuns: atEffort(200, 15) },
		);
		expect(view.messages.map(({ verified }) => verified)).not.toContain(false);
	});

	it("I4: continues live when it is cut while the answer is being written", async () => {
		const { runId, puppet } = await rig.start("live");
		const phases: string[] = [];
		let seen = 0;
		const reading = (async () => {
			const records: FollowedRecord[] = [];
			const followed = clientWith(cutting([700, 1, 300, 40])).follow(
				{ run: runId },
				{ onState: ({ phase }) => void phases.push(phase) },
			);
			for await (const record of followed) {
				records.push(record);
				seen = records.length;
			}
			return records;
		})();
		for (let said = 0; said < 30; said += 1) {
			puppet.say(WORDS[said % WORDS.length]!);
			const expected = said;
			await until("the word was read", () => seen > expected);
		}
		puppet.finish();
		expect(texts(await reading)).toEqual(await framesOf(runId));
		expect(phases.filter((phase) => phase === "waiting")).toHaveLength(4);
		expect(phases.at(-1)).toBe("ended");
	});

	it("I3 I4: follows a run over a restart of the daemon, to the end that recovery wrote", async () => {
		const { runId, puppet } = await rig.start("restart");
		puppet.say(...WORDS);
		const phases = new Set<string>();
		let seen = 0;
		const reading = (async () => {
			const records: FollowedRecord[] = [];
			for await (const record of clientWith().follow(
				{ run: runId },
				{ onState: ({ phase }) => void phases.add(phase) },
			)) {
				records.push(record);
				seen = records.length;
			}
			return records;
		})();
		await until("the words were read", () => seen > WORDS.length);
		await rig.restart();
		const records = await reading;
		expect(texts(records)).toEqual(await framesOf(runId));
		expect(records.at(-1)?.end).toMatchObject({ final: true });
		expect(phases).toContain("waiting");
	});

	it("I4: follows the runs of a session from where its turns end, and does not end with one", async () => {
		const client = clientWith(cutting([900, 50, 400]));
		await answered("chat");
		const { stream_offset: after } = await client.api.turns("chat");
		const abort = new AbortController();
		const ended: string[] = [];
		const following = (async () => {
			for await (const record of client.follow({ session: "chat" }, { after, signal: abort.signal }))
				if (record.end) ended.push(record.runId);
		})();
		const runs = [await answered("chat"), await answered("chat")];
		await until("both runs were read", () => ended.length === 2);
		expect(ended).toEqual(runs);
		abort.abort(new Error("enough"));
		await expect(following).rejects.toThrow("enough");
	});

	it("reads a session from the earliest stored record, and gets an error for an expired offset", async () => {
		const first = await answered("kept");
		const second = await answered("kept");
		await removeUpTo(rig.bus, first);
		const abort = new AbortController();
		const found: string[] = [];
		const reading = (async () => {
			for await (const view of clientWith().watch({ session: "kept" }, { signal: abort.signal }))
				if (view.final && view.runId !== undefined) found.push(view.runId);
		})();
		await until("what is kept was read", () => found.length === 1);
		abort.abort();
		await expect(reading).rejects.toThrow();
		expect(found).toEqual([second]);
		await expect(all(clientWith().follow({ session: "kept" }, { after: 0 }))).rejects.toMatchObject({
			code: "expired",
		});
		await expect(all(clientWith().follow({ run: first }))).rejects.toMatchObject({ code: "expired" });
	});

	it("I2: a changed payload is a failure that names the rule, after all of the answer was given", async () => {
		const runId = await answered("damage");
		const client = clientWith(changing((text) => text.replace("plain words", "plain sword")));
		const records: FollowedRecord[] = [];
		const reading = async () => {
			for await (const record of client.follow({ run: runId })) records.push(record);
		};
		await expect(reading()).rejects.toMatchObject({
			code: "data_loss",
			message: expect.stringMatching(/^the answer is damaged: .*checksum.* \(P1\.10\)$/),
		});
		expect(records).toHaveLength((await framesOf(runId)).length);
		expect(records.at(-1)).toMatchObject({ end: { final: true }, violation: { kind: "wrong_checksum" } });
		const views: RunView[] = [];
		await expect(
			(async () => {
				for await (const view of client.watch({ run: runId })) views.push(view);
			})(),
		).rejects.toMatchObject({ code: "data_loss" });
		expect(views.at(-1)?.messages.some(({ verified }) => verified === false)).toBe(true);
	});

	it("a record that is not a frame is a failure, after all that came before it", async () => {
		const runId = await answered("no-frame");
		const client = clientWith(changing((text) => text.replace('"seq_no":2,', '"seq_no":"two",')));
		const records: FollowedRecord[] = [];
		const reading = async () => {
			for await (const record of client.follow({ run: runId })) records.push(record);
		};
		await expect(reading()).rejects.toMatchObject({ code: "data_loss", message: expect.stringContaining("seq_no") });
		expect(offsets(records)).toEqual(upTo(records.length));
		expect(records.length).toBeGreaterThan(0);
	});

	it("I3: a stream that is over without a final end is a failure", async () => {
		const client = clientWith(async () => new Response(null, { status: 204 }));
		const failure = { code: "data_loss", message: "the stream of run_x ended without its final end (P1.12)" };
		await expect(all(client.follow({ run: "run_x" }))).rejects.toMatchObject(failure);
		await expect(all(client.watch({ run: "run_x" }))).rejects.toMatchObject(failure);
	});

	it("from the middle of a run, gives the rest without a verdict on what it did not see", async () => {
		const runId = await answered("middle");
		const frames = await framesOf(runId);
		const records = await all(clientWith().follow({ run: runId }, { after: 4 }));
		expect(texts(records)).toEqual(frames.slice(4));
		expect(records.some(({ violation }) => violation)).toBe(false);
		expect(await all(clientWith().follow({ run: runId }, { after: frames.length }))).toEqual([]);
	});
});

describe("the client's connection", () => {
	it("is closed when the reader stops, by leaving the loop and by its signal", async () => {
		const { runId, puppet } = await rig.start("leave");
		puppet.say("one");
		for await (const record of clientWith().follow({ run: runId })) if (record.offset === 2) break;
		await until("the edge has no reader", () => rig.edge.stats().sseReaders === 0);
		const abort = new AbortController();
		const reading = all(clientWith().follow({ run: runId }, { signal: abort.signal }));
		await until("the edge has a reader", () => rig.edge.stats().sseReaders === 1);
		abort.abort();
		await expect(reading).rejects.toMatchObject({ name: "AbortError" });
		await until("the edge has no reader", () => rig.edge.stats().sseReaders === 0);
		await expect(all(clientWith().follow({ run: runId }, { signal: abort.signal }))).rejects.toThrow();
		// Leaving does not stop the run: stopping is a separate request.
		expect((await clientWith().api.run(runId)).status).toBe("running");
		expect(await clientWith().api.abort(runId)).toEqual({ run_id: runId, status: "aborted" });
	});

	it.each([
		["unauthenticated", () => createClient({ url: rig.url, token: "a-wrong-token-0123456789" })],
		["not_found", () => clientWith()],
	] as const)("refused as %s, does not ask again", async (code, client) => {
		await expect(all(client().follow({ run: "run_none" }))).rejects.toMatchObject({ code });
	});

	it("waits while the daemon starts (503) and while it is away, then reads on", async () => {
		const runId = await answered("busy");
		let asked = 0;
		const starting: Fetch = async (url, init) => {
			asked += 1;
			if (asked === 1) throw new TypeError("fetch failed");
			if (asked < 4) return new Response("starting", { status: 503 });
			return fetch(url, init);
		};
		const states: LinkState[] = [];
		const records = await all(
			clientWith(starting).follow({ run: runId }, { onState: (state) => void states.push(state) }),
		);
		expect(texts(records)).toEqual(await framesOf(runId));
		expect(states.filter(({ phase }) => phase === "waiting").map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
	});

	it("gives up after giveUpMs with what went wrong last", async () => {
		const clock = manualClock();
		let tries = 0;
		const client = createClient({
			url: "http://nexus.test",
			fetch: async () => {
				tries += 1;
				throw new TypeError("connection refused");
			},
			clock,
			limits: { retryFirstMs: 1000, retryMaxMs: 1000, giveUpMs: 10_000 },
		});
		const reading = all(client.follow({ run: "run_x" }));
		let failure: unknown;
		reading.catch((cause: unknown) => (failure = cause));
		await until("it has given up", () => {
			clock.advance(500);
			return failure !== undefined;
		});
		expect(failure).toMatchObject({
			code: "unavailable",
			message: "cannot reach the daemon at http://nexus.test (connection refused)",
		});
		expect(tries).toBeGreaterThan(9);
	});

	it("I6: a reader that takes its time reads no further meanwhile, and is not taken for a dead connection", async () => {
		const runId = await answered("slow");
		const clock = manualClock();
		const taken = Promise.withResolvers<void>();
		const seen: number[] = [];
		const phases: string[] = [];
		const stream = createClient({ locate, clock }).open(
			{ run: runId },
			{
				onRecords(records) {
					seen.push(...records.map(({ offset }) => offset));
					return taken.promise;
				},
				onState: ({ phase }) => void phases.push(phase),
			},
		);
		onTestFinished(() => stream.send({ type: "stop" }));
		await until("something was read", () => seen.length > 0);
		clock.advance(10 * 60_000);
		expect(phases).not.toContain("waiting");
		taken.resolve();
		await until("it was read to its end", () => stream.state.phase === "ended");
		expect(seen).toEqual(upTo((await framesOf(runId)).length));
	});

	it("takes an address with a slash at its end", async () => {
		expect(await createClient({ url: `${rig.url}/`, token: TOKEN }).api.pairings()).toEqual({ pairings: [] });
	});

	it("rewords failures for its reader", async () => {
		const reworded = createClient({
			...(await locate()),
			reword: (error, response) => new NexusError(error.code, `${response?.status}: ${error.code}`),
		});
		await expect(reworded.api.run("run_none")).rejects.toThrow("404: not_found");
	});
});
