/** The drive with an agent made by hand: what it yields at once, and that it lets go of the agent however the answer ends. */

import { fauxAssistantMessage } from "@earendil-works/pi-ai";
import { describe, expect, test } from "vitest";
import { drive, type PiAgent } from "../../packages/daemon/src/engine/pi/drive.ts";
import type { PiEvent } from "../../packages/daemon/src/engine/pi/translate.ts";
import type { EngineYield } from "../../packages/protocol/src/engine.ts";
import { deaf } from "./pi-kit.ts";

const message = fauxAssistantMessage("");
const begin: PiEvent = { type: "message_start", message };
const piText = (delta: string): PiEvent => ({
	type: "message_update",
	message,
	assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta, partial: message },
});
const text = (delta: string) => ({ type: "text", delta });
const UNKNOWN = { type: "usage", input: -1, output: -1, cache_read: -1, cache_write: -1 };
const failure = { provider: "p", model: "m", keySource: "K", apiKey: "a separate key", section: "pi" };

const loopTurn = () => new Promise<void>((resolve) => setImmediate(resolve));

type Work = (say: (event: PiEvent) => void) => Promise<void>;

/** An agent that does the given work, and notes what was asked of it. */
function agentOf(work: Work, more: Partial<PiAgent> = {}) {
	const notes: string[] = [];
	const listeners = new Set<(event: PiEvent) => void>();
	const agent: PiAgent = {
		subscribe(listener) {
			listeners.add(listener);
			return () => listeners.delete(listener);
		},
		async start() {
			notes.push("start");
			await work((event) => {
				for (const listener of listeners) listener(event);
			});
		},
		stop: () => void notes.push("stop"),
		dispose: () => void notes.push("dispose"),
		...more,
	};
	return { agent, notes, listeners };
}

function driven(open: () => Promise<PiAgent>, abortSettleMs = 1) {
	const stop = new AbortController();
	const run = drive(open, { signal: stop.signal, failure, abortSettleMs });
	return { run, stop };
}

async function read(run: AsyncIterable<EngineYield>) {
	const yields: EngineYield[] = [];
	try {
		for await (const said of run) yields.push(said);
	} catch (error) {
		return { yields, error };
	}
	return { yields };
}

describe("bursts", () => {
	test("events reported before the loop turns are one yield, however many promises are in between", async () => {
		const { agent } = agentOf(async (say) => {
			say(begin);
			for (const delta of ["a", "b", "c"]) {
				for (let n = 0; n < 10; n++) await Promise.resolve();
				say(piText(delta));
			}
			await loopTurn();
			say(piText("d"));
			await loopTurn();
		});
		const { yields } = await read(driven(async () => agent).run);
		expect(yields).toEqual([[{ type: "message" }, text("a"), text("b"), text("c")], text("d"), UNKNOWN]);
	});
});

describe("the agent is let go", () => {
	test("when it has settled: it is not stopped", async () => {
		const { agent, notes, listeners } = agentOf(async (say) => say(piText("a")));
		expect(await read(driven(async () => agent).run)).toEqual({ yields: [[text("a"), UNKNOWN]] });
		expect(notes).toEqual(["start", "dispose"]);
		expect(listeners.size).toBe(0);
	});

	test("when it fails, after all that it said", async () => {
		const { agent, notes, listeners } = agentOf(async (say) => {
			say(piText("a"));
			throw new Error("broken");
		});
		const { yields, error } = await read(driven(async () => agent).run);
		expect(yields).toEqual([[text("a"), UNKNOWN]]);
		expect(error).toMatchObject({ code: "engine_failed", message: "broken" });
		expect(notes).toEqual(["start", "dispose"]);
		expect(listeners.size).toBe(0);
	});

	test("when an event cannot be read: the agent is stopped and never sees an exception", async () => {
		const { agent, notes } = agentOf(async (say) => {
			say(piText("a"));
			say(null as never);
			notes.push("goes on");
			await deaf();
		});
		const { yields, error } = await read(driven(async () => agent).run);
		expect(yields.flat()).toEqual([text("a"), UNKNOWN]);
		expect(error).toBeInstanceOf(TypeError);
		expect(notes).toEqual(["start", "stop", "dispose", "goes on"]);
	});

	test("I12: soon after an abort that it does not hear; what it says later is lost", async () => {
		const { agent, notes, listeners } = agentOf(async (say) => {
			say(piText("a"));
			stop.abort();
			say(piText("b"));
			await deaf();
		});
		const { run, stop } = driven(async () => agent);
		const { yields, error } = await read(run);
		expect(error).toBeUndefined();
		expect(yields.flat()).toEqual([text("a"), text("b"), UNKNOWN]);
		expect(notes).toEqual(["start", "stop", "stop", "dispose"]);
		expect(listeners.size).toBe(0);
	});

	test("I12: when it cannot be stopped, an aborted run ends at once and does not fail", async () => {
		const { agent } = agentOf(deaf, { stop: () => Promise.reject(new Error("cannot stop")) });
		const { run, stop } = driven(async () => agent, 600_000);
		const reading = read(run);
		await loopTurn();
		stop.abort();
		expect(await reading).toEqual({ yields: [UNKNOWN] });
	});

	test("when its reader leaves while it waits: at once, and the reader's last question is answered", async () => {
		const { agent, notes, listeners } = agentOf(deaf);
		const iterator = driven(async () => agent).run[Symbol.asyncIterator]();
		const waiting = iterator.next();
		await loopTurn();
		expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
		expect(notes).toEqual(["start", "stop", "dispose"]);
		expect(listeners.size).toBe(0);
		expect(await waiting).toEqual({ done: true, value: undefined });
	});

	test.each<[string, (iterator: AsyncIterator<EngineYield>, stop: AbortController) => unknown]>([
		["its reader leaves", (iterator) => iterator.return?.()],
		["the run is aborted", (_, stop) => stop.abort()],
	])("when %s before it is open: it is never started", async (_, leave) => {
		const { agent, notes } = agentOf(deaf);
		const opened = Promise.withResolvers<PiAgent>();
		const { run, stop } = driven(() => opened.promise, 600_000);
		const iterator = run[Symbol.asyncIterator]();
		const waiting = iterator.next();
		await leave(iterator, stop);
		opened.resolve(agent);
		await waiting;
		await loopTurn();
		expect(notes).toEqual(["dispose"]);
	});

	test("when it cannot be opened, the run fails with the reason", async () => {
		const { error } = await read(driven(() => Promise.reject(new Error("no such folder"))).run);
		expect(error).toMatchObject({ code: "engine_failed", message: "no such folder" });
	});

	test("nothing is opened before the first read, nor after an abort", async () => {
		let opened = 0;
		const { run, stop } = driven(async () => {
			opened++;
			return agentOf(async () => {}).agent;
		});
		await loopTurn();
		expect(opened).toBe(0);
		stop.abort();
		expect(await read(run)).toEqual({ yields: [] });
		expect(opened).toBe(0);
	});
});

describe("an agent that cannot be taken down", () => {
	const throwing = (more: Partial<PiAgent> = {}): Partial<PiAgent> => ({
		dispose() {
			throw new Error("cannot be disposed of");
		},
		...more,
	});

	test("does not fail an answer that has ended", async () => {
		const { agent } = agentOf(async (say) => {
			say(begin);
			say(piText("a"));
		}, throwing());
		expect((await read(driven(async () => agent).run)).error).toBeUndefined();
	});

	test("neither does one that throws when it is stopped: the answer ends in time, and nothing is uncaught", async () => {
		const stopFails = {
			stop() {
				throw new Error("cannot be stopped");
			},
		};
		const { agent } = agentOf(() => new Promise(() => {}), throwing(stopFails));
		const { run, stop } = driven(async () => agent);
		const reading = read(run);
		await loopTurn();
		stop.abort();
		expect((await reading).error).toBeUndefined();
	});
});
