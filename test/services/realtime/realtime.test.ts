/** Realtime sessions: input by text and voice, answers as text and speech, interruption, limits, and what a crash leaves. */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { describe, expect, it } from "vitest";
import type { RealtimeEvent } from "../../../packages/daemon/src/services/realtime/port.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { gate, type Play, tempFile, text } from "../../broker/rig.ts";
import { until } from "../../until.ts";
import { rejectsWith } from "../parts.ts";
import { appPrincipal, failing, OWNER, realtimeRig, textOf, typesOf } from "./rig.ts";

/** Repeats its input, in two tokens. */
const echo: Play = async function* ({ messages }) {
	yield text("You said: ");
	yield text(messages.findLast(({ role }) => role === "user")!.text);
	yield { type: "usage", input: 3, output: 5 };
};

/** Says the beginning and waits to be stopped or let go. */
function patient() {
	const asked: EngineRequest[] = [];
	const door = gate();
	const play: Play = async function* (request, signal) {
		asked.push(request);
		yield text("Here is the first sentence. ");
		const stopped = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
		await Promise.race([door.opened, stopped]);
		if (!signal.aborted) yield text("And here is the second.");
	};
	return { play, asked, door };
}

const ended = (events: readonly RealtimeEvent[]) => events.some(({ type }) => type === "completed");

describe("realtime: text", () => {
	it("Z21: input becomes a turn of the session; its answer is deltas and one COMPLETED with usage", async () => {
		const { open, say, heard, look } = realtimeRig(echo);
		const { id, session } = await open();
		const { eventId } = await say(id, "good morning");
		const events = await heard(id, ended);
		expect(typesOf(events)).toEqual(["opened", "text", "text", "completed"]);
		expect(textOf(events)).toBe("You said: good morning");
		expect(events.at(-1)).toMatchObject({ usage: { input: 3, output: 5 } });
		expect(look.event(eventId!)).toMatchObject({ session, text: "good morning" });
	});

	it("a label that no message could have is refused at once, and nothing of the session is there", async () => {
		const { open, realtime, bus } = realtimeRig(echo);
		for (const session of ["two words", "-dash", "x".repeat(129)]) await rejectsWith(open({ session }), "invalid");
		const long = { appId: "a".repeat(64), session: "y".repeat(100) };
		await rejectsWith(open(long, appPrincipal(long.appId)), "invalid");
		expect([realtime.live, await bus.list({ kind: "realtime" })]).toEqual([0, []]);
	});

	it("pieces of text wait for the commit; the same input_id is taken once", async () => {
		const { open, say, heard, look } = realtimeRig(echo);
		const { id, session } = await open();
		await say(id, "one ", { commit: false, inputId: "i1" });
		await say(id, "one ", { commit: false, inputId: "i1" });
		const [first, again] = await Promise.all([say(id, "two", { inputId: "i2" }), say(id, "two", { inputId: "i2" })]);
		expect(again).toEqual(first);
		expect(textOf(await heard(id, ended))).toBe("You said: one two");
		expect(look.events({ session, limit: 9 })).toHaveLength(1);
	});

	it("K-STREAM-010: closing ends the log; a closed session takes nothing and can still be read", async () => {
		const { open, say, heard, realtime } = realtimeRig(echo);
		const { id } = await open();
		await realtime.close(id, OWNER);
		await realtime.close(id, OWNER);
		expect(typesOf(await heard(id))).toEqual(["opened"]);
		await rejectsWith(say(id, "hello"), "precondition");
		expect(realtime.live).toBe(0);
	});

	it("Z3: a reader begins with now when it names no place, and strictly after the one that it names", async () => {
		const { open, realtime } = realtimeRig(echo);
		const { id } = await open();
		expect((await realtime.cursor(id, undefined, OWNER)).offset).toBe(1);
		expect((await realtime.cursor(id, 0, OWNER)).offset).toBe(0);
		await rejectsWith(realtime.cursor(id, 7, OWNER), "invalid");
	});

	it("a run that fails ends its answer with FAILED and a reason; the session continues", async () => {
		let isBroken = true;
		const { open, say, listenTo } = realtimeRig(async function* (...args) {
			yield text("so ");
			if (isBroken) throw new Error("out of order");
			yield* echo(...args);
		});
		const { id } = await open();
		const { events, has } = listenTo(id);
		await say(id, "one");
		await has("failed");
		expect(events.at(-1)).toMatchObject({ type: "failed", reason: "ENGINE_FAILED" });
		isBroken = false;
		await say(id, "two");
		await has("completed");
	});
});

describe("realtime: interruption", () => {
	it("Z21: new input stops the answer under way (INTERRUPTED) and is answered in its place", async () => {
		const { play, asked, door } = patient();
		const { open, say, listenTo } = realtimeRig(play);
		const { id } = await open();
		const { events, has } = listenTo(id);
		await say(id, "tell me");
		await has("text");
		await say(id, "no, something else");
		await until("the second run", () => asked.length === 2);
		await has("interrupted");
		door.open();
		await has("completed");
		const [first, second] = asked.map(({ runId }) => runId);
		expect(events.filter(({ type }) => type !== "text")).toMatchObject([
			{ type: "opened" },
			{ type: "interrupted", runId: first },
			{ type: "completed", runId: second },
		]);
	});

	it("what was said to the end and is still being spoken is silenced, too", async () => {
		const speaking = gate();
		const { open, say, listenTo, connectors } = realtimeRig(echo, {
			provider: {
				async speak({ text: said }, signal) {
					connectors.spoken.push(said);
					return { mimeType: "audio/test", audio: endless(speaking, signal) };
				},
			},
		});
		const { id } = await open({ speech: { connectorId: "voice" } });
		const { events, has } = listenTo(id);
		await say(id, "a long story");
		await has("audio");
		expect(typesOf(events)).not.toContain("completed");
		await say(id, "enough");
		await has("interrupted");
		expect(events.find(({ type }) => type === "interrupted")).toMatchObject({ runId: expect.stringMatching(/^run_/) });
	});

	it("a person who stops the run gives no new input: FAILED with ABORTED", async () => {
		const { play, asked } = patient();
		const { open, say, listenTo, broker } = realtimeRig(play);
		const { id } = await open();
		const { events, has } = listenTo(id);
		await say(id, "tell me");
		await has("text");
		await broker.abort(asked[0]!.runId);
		await has("failed");
		expect(events.at(-1)).toMatchObject({ type: "failed", reason: "ABORTED" });
	});
});

async function* endless(speaking: ReturnType<typeof gate>, signal: AbortSignal): AsyncIterable<Uint8Array> {
	yield Buffer.from("la");
	await Promise.race([speaking.opened, new Promise((resolve) => signal.addEventListener("abort", resolve))]);
	signal.throwIfAborted();
}

describe("realtime: voice", () => {
	it("Z21: answers are spoken sentence by sentence while the text comes", async () => {
		const { play, door } = patient();
		const { open, say, listenTo, connectors } = realtimeRig(play);
		const { id } = await open({ speech: { connectorId: "voice", voice: "anna" } });
		const { events, has } = listenTo(id);
		await say(id, "tell me");
		await has("audio");
		expect(connectors.spoken).toEqual(["Here is the first sentence."]);
		door.open();
		await has("completed");
		expect(connectors.spoken).toEqual(["Here is the first sentence.", "And here is the second."]);
		const audio = events.flatMap((event) => (event.type === "audio" ? [event] : []));
		expect(audio.map((event) => Buffer.from(event.audio, "base64").toString())).toEqual(connectors.spoken);
		expect(audio[0]).toMatchObject({ mimeType: "audio/test" });
		expect(typesOf(events).at(-1)).toBe("completed");
	});

	it("an answer that could not be spoken has its whole text, and ends with FAILED", async () => {
		const speak = async () => failing("no voice today")();
		const { open, say, listenTo } = realtimeRig(echo, { provider: { speak } });
		const { id } = await open({ speech: { connectorId: "voice" } });
		const { events, has } = listenTo(id);
		await say(id, "good morning");
		await has("failed");
		expect(textOf(events)).toBe("You said: good morning");
		expect(events.at(-1)).toMatchObject({ type: "failed", reason: "AI_PROVIDER_FAILED" });
	});

	it("Z21: audio waits for its commit, is transcribed and answered", async () => {
		const { open, speak, heard } = realtimeRig(echo);
		const { id } = await open({ transcription: { connectorId: "ear" } });
		expect(await speak(id, "good ", { commit: false })).toEqual({ audioBytes: 5 });
		expect(await speak(id, "evening", { commit: true })).toMatchObject({ audioBytes: 0 });
		const events = await heard(id, ended);
		expect(typesOf(events)).toEqual(["opened", "transcribed", "text", "text", "completed"]);
		expect(events[1]).toMatchObject({ text: "good evening" });
		expect(textOf(events)).toBe("You said: good evening");
	});

	it("a transcription that fails leaves nothing behind: the same call can be made again", async () => {
		let isBroken = true;
		const transcribe = async ({ audio }: { audio: { data: Uint8Array } }) =>
			isBroken ? failing("no ears")() : { text: Buffer.from(audio.data).toString() };
		const { open, speak, heard } = realtimeRig(echo, { provider: { transcribe } });
		const { id } = await open({ transcription: { connectorId: "ear" } });
		await speak(id, "first ", { commit: false });
		await expect(speak(id, "second", { inputId: "i1" })).rejects.toMatchObject({ reason: "AI_PROVIDER_FAILED" });
		isBroken = false;
		await speak(id, "second", { inputId: "i1" });
		expect(textOf(await heard(id, ended))).toBe("You said: first second");
	});

	it("a transcription that takes too long fails as a timeout", async () => {
		let isCalled = false;
		const transcribe = async (_: unknown, signal: AbortSignal): Promise<never> => {
			isCalled = true;
			await new Promise((resolve) => signal.addEventListener("abort", resolve));
			throw new Error("too late");
		};
		const { open, speak, clock } = realtimeRig(echo, { provider: { transcribe } });
		const { id } = await open({ transcription: { connectorId: "ear" } });
		const said = speak(id, "hello");
		const refused = expect(said).rejects.toMatchObject({ code: "timeout", reason: "AI_PROVIDER_TIMEOUT" });
		await until("the call", () => isCalled);
		clock.advance(90_000);
		await refused;
	});

	it.each([
		["nobody", { code: "not_found", reason: "AI_CONNECTOR_NOT_FOUND" }],
		["off", { code: "precondition", reason: "AI_CONNECTOR_DISABLED" }],
		["ear", { code: "precondition", reason: "AI_SCENARIO_UNSUPPORTED" }],
		["mine", { code: "not_found", reason: "AI_CONNECTOR_NOT_FOUND" }],
	] as const)("a speech connector that cannot be used is refused at the opening: %s", async (connectorId, refusal) => {
		const { open, realtime } = realtimeRig(echo);
		const opening = open({ appId: "b", speech: { connectorId } }, appPrincipal("b"));
		await expect(opening).rejects.toMatchObject(refusal);
		const asOwner = open({ appId: "b", speech: { connectorId } });
		await expect(asOwner).rejects.toMatchObject(refusal);
		expect(realtime.live).toBe(0);
	});
});

describe("realtime: limits", () => {
	it("an idle session closes after ten minutes, and says so; input and an answer under way put it off", async () => {
		const { play, door } = patient();
		const { open, say, listenTo, clock, realtime } = realtimeRig(play);
		const { id, idleClosesAt } = await open();
		expect(idleClosesAt - clock.now()).toBe(600_000);
		const { events, ended: over, has } = listenTo(id);
		clock.advance(599_000);
		await say(id, "tell me");
		await has("text");
		clock.advance(3_600_000);
		expect(realtime.live).toBe(1);
		door.open();
		await has("completed");
		clock.advance(1_200_000);
		await over;
		expect(events.at(-1)).toMatchObject({ type: "failed", reason: "TIMEOUT" });
		expect(realtime.live).toBe(0);
	});

	it("sessions, audio and text are limited", async () => {
		const limits = { sessionsMax: 3, sessionsPerAppMax: 2, audioBytesMax: 10, audioBytesTotalMax: 12, textCharsMax: 5 };
		const { open, say, speak } = realtimeRig(echo, { realtime: limits });
		const { id } = await open({ transcription: { connectorId: "ear" } });
		const other = await open({ transcription: { connectorId: "ear" } });
		await rejectsWith(open(), "busy");
		await open({ appId: "b" });
		await rejectsWith(open({ appId: "c" }), "busy");
		await rejectsWith(say(id, "too long"), "too_large");
		await speak(id, "12345678", { commit: false });
		await rejectsWith(speak(id, "901", { commit: false }), "too_large");
		await rejectsWith(speak(other.id, "12345", { commit: false }), "busy");
		await rejectsWith(say(other.id, " "), "invalid");
	});

	it("I11: many that are opened at once are no more than may be open", async () => {
		const { open, realtime } = realtimeRig(echo, { realtime: { sessionsMax: 3, sessionsPerAppMax: 2 } });
		const opened = await Promise.allSettled(["a", "a", "a", "b", "c"].map((appId) => open({ appId })));
		expect(opened.map(({ status }) => status === "fulfilled")).toEqual([true, true, false, true, false]);
		expect(realtime.live).toBe(3);
	});

	it("a log that is full closes its session", async () => {
		const { open, say, listenTo } = realtimeRig(echo, { realtime: { logBytesMax: 100 } });
		const { id } = await open();
		const { events, ended: over } = listenTo(id);
		await say(id, "x".repeat(200));
		await over;
		expect(events.at(-1)).toMatchObject({ type: "failed", reason: "QUOTA_EXCEEDED" });
	});
});

describe("realtime: whose it is", () => {
	it("Z25: another application finds nothing; the owner finds everything", async () => {
		const { open, say, realtime } = realtimeRig(echo);
		const { id } = await open({ appId: "a" }, appPrincipal("a"));
		const other = appPrincipal("b");
		await rejectsWith(say(id, "hello", {}, other), "not_found");
		await rejectsWith(realtime.cursor(id, 0, other), "not_found");
		await rejectsWith(realtime.close(id, other), "not_found");
		await say(id, "hello", {}, appPrincipal("a"));
		await realtime.close(id, OWNER);
	});

	it("Z25: an application's sessions are its own, and its words reach what a guest's do", async () => {
		const asked: EngineRequest[] = [];
		const { open, say } = realtimeRig(async function* (request) {
			asked.push(request);
			yield text("yes");
		});
		const { id, session } = await open({ appId: "a", session: "main" }, appPrincipal("a"));
		expect(session).toBe("app:a:main");
		await say(id, "hello", {}, appPrincipal("a"));
		await until("the run", () => asked.length === 1);
		expect(asked[0]).toMatchObject({ session, owner: false, deniedTools: expect.arrayContaining(["bash"]) });
	});

	it("a run's id or another log is not a realtime session", async () => {
		const { submit, realtime } = realtimeRig(echo);
		const { runId } = await submit({ session: "main", text: "hello" });
		await rejectsWith(realtime.cursor(runId!, 0, OWNER), "not_found");
	});
});

describe("realtime: the daemon's end", () => {
	it("stopping closes all of them, and says why", async () => {
		const { open, heard, realtime } = realtimeRig(echo);
		const { id } = await open();
		await realtime.stop();
		expect(await heard(id)).toMatchObject([{ type: "opened" }, { type: "failed", reason: "STOPPING" }]);
		await rejectsWith(open(), "unavailable");
	});

	it("Z6: one that is opened while the daemon stops is closed with the others", async () => {
		const { realtime, open, heard } = realtimeRig(echo);
		const opening = open();
		await realtime.stop();
		const { id } = await opening;
		expect(await heard(id)).toMatchObject([{ type: "opened" }, { type: "failed", reason: "STOPPING" }]);
		expect(realtime.live).toBe(0);
	});

	it("one that cannot be closed keeps no daemon from starting", async () => {
		const path = tempFile();
		await realtimeRig(echo, { path, dies: true }).open();
		const next = realtimeRig(echo, { path });
		next.bus.reopen = () => Promise.reject(new NexusError("data_loss", "its end is damaged"));
		expect(await next.realtime.recover()).toBe(0);
	});

	it("I3: what a dead daemon left is closed by the next start, and readers find the end", async () => {
		const path = tempFile();
		const dead = realtimeRig(echo, { path, dies: true });
		const { id } = await dead.open();
		const next = realtimeRig(echo, { path });
		expect(await next.realtime.recover()).toBe(1);
		expect(await next.heard(id)).toMatchObject([{ type: "opened" }, { type: "failed", reason: "CRASHED" }]);
		await rejectsWith(next.say(id, "hello"), "precondition");
		expect(await next.realtime.recover()).toBe(0);
	});
});
