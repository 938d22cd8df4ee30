/** Realtime sessions of a whole daemon, offline: the demonstration answers, speaks and listens. */

import { expect, it, onTestFinished } from "vitest";
import {
	type ReadRealtimeEventsResponse,
	RealtimeEventType as Type,
} from "../../packages/client/src/gen/nexus/runtime/v1/realtime_pb.ts";
import { createRuntime, ReasonCode } from "../../packages/client/src/runtime/runtime-client.ts";
import { until } from "../until.ts";
import { daemonForTest } from "./daemon.ts";
import { freshFolder } from "./folder.ts";

const TOKEN = "a-token-of-a-realtime-session";

async function start(data = freshFolder()) {
	const daemon = await daemonForTest({ data, token: TOKEN, stopDeadlineMs: 2000 });
	const runtime = createRuntime({ url: daemon.url, token: TOKEN });
	onTestFinished(() => runtime.close());
	const { realtime } = runtime;
	/** Reads everything in the background. */
	function listenTo(realtimeSessionId: string) {
		const events: ReadRealtimeEventsResponse[] = [];
		const ended = (async () => {
			for await (const event of realtime.readRealtimeEvents({ realtimeSessionId, after: 0n })) events.push(event);
		})();
		const has = (type: Type) => until(`an event ${type}`, () => events.some(({ eventType }) => eventType === type));
		return { events, ended, has };
	}
	return { daemon, data, realtime, listenTo };
}

it("Z21: the demonstration answers in text and voice, and new input interrupts it", async () => {
	const { realtime, listenTo } = await start();
	const speaking = { appId: "app", speechConnectorId: "default" };
	const { realtimeSessionId } = await realtime.openRealtimeSession(speaking);
	const { events, ended, has } = listenTo(realtimeSessionId);
	const say = (text: string) => realtime.appendRealtimeInput({ realtimeSessionId, text, commit: true });
	await say("/demo tokens=60 rate=0 stall_after=30");
	await has(Type.TEXT_DELTA);
	await say("/demo tokens=20 rate=0");
	await has(Type.INTERRUPTED);
	await has(Type.COMPLETED);
	await realtime.closeRealtimeSession({ realtimeSessionId });
	await ended;
	const completed = events.find(({ eventType }) => eventType === Type.COMPLETED)!;
	const audio = events.filter(({ eventType, runId }) => eventType === Type.AUDIO_CHUNK && runId === completed.runId);
	expect(audio.length).toBeGreaterThan(0);
	expect(audio[0]!.audioChunk.length).toBeGreaterThan(0);
	expect(completed.usage).toBeDefined();
});

it("I3: a daemon that stops closes its realtime sessions, and the next one still tells how they ended", async () => {
	const first = await start();
	const { realtimeSessionId } = await first.realtime.openRealtimeSession({ appId: "app" });
	await first.daemon.close();
	const second = await start(first.data);
	const { events, ended } = second.listenTo(realtimeSessionId);
	await ended;
	expect(events).toMatchObject([
		{ eventType: Type.OPENED },
		{ eventType: Type.FAILED, runId: "", reasonCode: ReasonCode.STOPPING },
	]);
});
