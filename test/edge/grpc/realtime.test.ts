/** Realtime sessions over the wire, read with the runtime's client. */

import { Code } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, it, onTestFinished } from "vitest";
import {
	type ReadRealtimeEventsResponse,
	RuntimeRealtimeService,
	RealtimeEventType as Type,
} from "../../../packages/client/src/gen/nexus/runtime/v1/realtime_pb.ts";
import { createRuntime, ReasonCode, reasonCodeOf } from "../../../packages/client/src/runtime/runtime-client.ts";
import type { Services } from "../../../packages/daemon/src/runtime/wiring/port.ts";
import { createRealtime } from "../../../packages/daemon/src/services/realtime/realtime.ts";
import { cuttingProxy } from "../../runtime-client/cutting-proxy.ts";
import { durableParts } from "../../services/parts.ts";
import { playedConnectors } from "../../services/realtime/rig.ts";
import { until } from "../../until.ts";
import { TOKEN } from "../rig.ts";
import { errorOf, PROTOCOLS, type Protocol, startGrpcKit } from "./kit.ts";

async function start(protocol: Protocol = "grpc") {
	const services: Partial<Services> = {};
	const kit = await startGrpcKit({ services });
	const { rig } = kit;
	const realtime = createRealtime({
		...durableParts(rig),
		connectors: playedConnectors(),
		async submit({ session, text }) {
			const { runId, eventId, puppet } = await rig.start(session, text);
			puppet.say("You said: ", text);
			puppet.yield({ type: "usage", input: 3, output: 5 });
			puppet.finish();
			return { eventId, disposition: { state: "started", runId } };
		},
	});
	Object.assign(services, { realtime });
	onTestFinished(async () => {
		runtime.close();
		await realtime.stop();
		await kit.close();
	});
	const runtime = createRuntime({ transport: kit.transport(protocol) });
	return { kit, runtime, realtime };
}

it.each(PROTOCOLS)(
	"Z21: a turn by voice over %s: transcribed, answered, spoken; closing ends the events with OK",
	async (protocol) => {
		const { runtime } = await start(protocol);
		const connectors = { transcriptionConnectorId: "ear", speechConnectorId: "voice" };
		const opened = await runtime.realtime.openRealtimeSession({ appId: "app", ...connectors });
		const { realtimeSessionId, session } = opened;
		expect(session).toBe(`realtime:${realtimeSessionId}`);
		expect(Number(opened.idleClosesAt!.seconds)).toBeGreaterThan(Date.now() / 1000 + 500);

		const events: ReadRealtimeEventsResponse[] = [];
		const reading = (async () => {
			for await (const event of runtime.realtime.readRealtimeEvents({ realtimeSessionId, after: 0n }))
				events.push(event);
		})();
		const audioChunk = Buffer.from("good morning everybody");
		const taken = await runtime.realtime.appendRealtimeInput({ realtimeSessionId, audioChunk, commit: true });
		expect(taken.eventId).toMatch(/^evt_/);
		await until("the answer", () => events.some(({ eventType }) => eventType === Type.COMPLETED));
		await runtime.realtime.closeRealtimeSession({ realtimeSessionId });
		await reading;

		expect(events.map(({ sequence }) => Number(sequence))).toEqual(events.map((_, index) => index + 1));
		const kinds = events.map(({ eventType }) => eventType);
		expect([kinds[0], kinds[1], kinds.at(-1)]).toEqual([Type.OPENED, Type.TRANSCRIBED, Type.COMPLETED]);
		expect(events[1]!.transcript).toBe("good morning everybody");
		expect(events.map(({ textDelta }) => textDelta).join("")).toBe("You said: good morning everybody");
		const audio = events.filter(({ eventType }) => eventType === Type.AUDIO_CHUNK);
		expect(Buffer.concat(audio.map((event) => event.audioChunk)).toString()).toBe("You said: good morning everybody");
		expect(audio[0]!.mimeType).toBe("audio/test");
		expect(events.at(-1)!.usage).toMatchObject({ inputTokens: 3n, outputTokens: 5n });
	},
);

it("Z21: audio without a transcription connector is FAILED_PRECONDITION; an unknown session is NOT_FOUND", async () => {
	const { runtime } = await start();
	const { realtimeSessionId } = await runtime.realtime.openRealtimeSession({ appId: "app" });
	const audioChunk = Buffer.from("hello");
	const refused = await errorOf(runtime.realtime.appendRealtimeInput({ realtimeSessionId, audioChunk, commit: true }));
	expect([refused.code, reasonCodeOf(refused)]).toEqual([Code.FailedPrecondition, ReasonCode.AI_CONNECTOR_ID_REQUIRED]);
	const missing = await errorOf(runtime.realtime.closeRealtimeSession({ realtimeSessionId: "rt_none" }));
	expect(missing.code).toBe(Code.NotFound);
	const reading = runtime.realtime.readRealtimeEvents({ realtimeSessionId: "rt_none" });
	await expect(reading.next()).rejects.toMatchObject({ code: Code.NotFound });
});

it("Z3: a stream from now on says where it begins before its first event", async () => {
	const { kit, runtime } = await start();
	const { realtimeSessionId } = await runtime.realtime.openRealtimeSession({ appId: "app" });
	const client = kit.client(RuntimeRealtimeService);
	const leaving = new AbortController();
	const began = new Promise<string | null>((resolve) => {
		const onHeader = (header: Headers) => resolve(header.get("x-nexus-after"));
		const stream = client.readRealtimeEvents({ realtimeSessionId }, { signal: leaving.signal, onHeader });
		void stream[Symbol.asyncIterator]()
			.next()
			.catch(() => {});
	});
	expect(await began).toBe("1");
	leaving.abort();
});

it("S-RUNTIME-028: a subscription that is open again and has nothing to say is connected, too", async () => {
	const { kit, runtime } = await start();
	const { realtimeSessionId } = await runtime.realtime.openRealtimeSession({ appId: "app" });
	const proxy = await cuttingProxy(kit.grpcUrl, 10);
	const cut = createRuntime({ transport: createGrpcTransport({ baseUrl: proxy.url }), token: TOKEN });
	const types: string[] = [];
	for (const type of ["runtime.disconnected", "runtime.reconnected"] as const) cut.on(type, () => types.push(type));
	const next = cut.realtime.readRealtimeEvents({ realtimeSessionId }).next();
	await until("both events", () => types.length === 2);
	expect(types).toEqual(["runtime.disconnected", "runtime.reconnected"]);
	cut.close();
	expect(await next).toEqual({ done: true, value: undefined });
});
