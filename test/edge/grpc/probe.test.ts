/** Health and reflection, which tools and probes request from every gRPC server (Z12). */

import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import {
	Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../../packages/client/src/gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as Alpha } from "../../../packages/client/src/gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { SERVICES } from "../../../packages/daemon/src/edge/rpc/routes.ts";
import { stateFeed } from "../../../packages/daemon/src/runtime/compose.ts";
import { createRuntimeHealth } from "../../../packages/daemon/src/services/health/health.ts";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import type { DaemonState } from "../../../packages/protocol/src/gen/api.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { waitFor } from "../rig.ts";
import { errorOf, following, kitForTest, readStream, statusOf } from "./kit.ts";

const feedOf = (state: () => DaemonState, clock: Clock) =>
	stateFeed(
		createRuntimeHealth({
			status: () => ({ status: state() }),
			work: () => ({ queueDepth: 0, activeWorkflows: 0, activeInferenceJobs: 0, activeRuns: 0 }),
			usage: () => ({ cpuMicros: 0, memoryBytes: 0 }),
			clock,
			log: silentLog,
		}),
	);

async function start(state: () => DaemonState = () => "READY") {
	const clock = manualClock();
	const health = feedOf(state, clock);
	const kit = await kitForTest({ deps: { health } });
	return { ...kit, health, clock };
}

it("P8.4, Z12, Y10: a watcher gets the current status first, then changes, and DEGRADED is NOT_SERVING", async () => {
	let state: DaemonState = "READY";
	const { client, clock } = await start(() => state);
	const probe = client(Health, "grpc", "");
	const { seen } = following((signal) => probe.watch({ service: "" }, { signal }));
	await waitFor(() => seen.length === 1);
	// No event reports the change: the daemon polls once a second while a client watches.
	state = "DEGRADED";
	clock.advance(999);
	expect((await probe.check({})).status).toBe(Status.NOT_SERVING);
	clock.advance(1);
	await waitFor(() => seen.length === 2);
	state = "READY";
	clock.advance(1000);
	await waitFor(() => seen.length === 3);
	expect(seen.map(({ status }) => status)).toEqual([Status.SERVING, Status.NOT_SERVING, Status.SERVING]);
});

it("P8.4, Z12: an unknown service is NOT_FOUND to a check; a watch says so and stays open", async () => {
	const { client, rig } = await start();
	const probe = client(Health, "grpc", "");
	expect(statusOf(await errorOf(probe.check({ service: "x.Y" })))?.code).toBe("NotFound");
	const { seen, ended, stop } = following((signal) => probe.watch({ service: "x.Y" }, { signal }));
	await waitFor(() => seen.length === 1);
	expect([seen[0]!.status, rig.edge.stats().grpcStreams]).toEqual([Status.SERVICE_UNKNOWN, 1]);
	stop();
	expect((await ended).error?.code).toBe(1);
	for (const { typeName } of SERVICES) expect((await probe.check({ service: typeName })).status).toBe(Status.SERVING);
	expect(Object.keys((await probe.list({})).statuses).toSorted()).toEqual(
		["", ...SERVICES.map(({ typeName }) => typeName)].toSorted(),
	);
});

it("the state is not polled while no client watches", () => {
	let looks = 0;
	const clock = manualClock();
	const health = feedOf(() => {
		looks++;
		return "READY";
	}, clock);
	const stop = health.subscribe(() => {});
	clock.advance(3000);
	stop();
	const before = looks;
	clock.advance(10_000);
	expect(looks).toBe(before);
	expect(before).toBeGreaterThanOrEqual(3);
});

it.each([ServerReflection, Alpha])(
	"Z12: $typeName lists the services and gives the files of a symbol; it needs the token",
	async (service) => {
		const { client } = await start();
		const reflection = client(service as typeof ServerReflection);
		const ask = async function* () {
			yield { messageRequest: { case: "listServices", value: "" } } as const;
			yield { messageRequest: { case: "fileContainingSymbol", value: "nexus.runtime.v1.RuntimeAiService" } } as const;
			yield {
				messageRequest: { case: "fileContainingSymbol", value: "nexus.runtime.v1.RuntimeAiService.GetArtifact" },
			} as const;
			yield { messageRequest: { case: "fileByFilename", value: "google/protobuf/timestamp.proto" } } as const;
			yield { messageRequest: { case: "fileContainingSymbol", value: "no.Such" } } as const;
			yield { messageRequest: { case: "allExtensionNumbersOfType", value: "x" } } as const;
		};
		const { messages, error } = await readStream(reflection.serverReflectionInfo(ask()));
		expect(error).toBeUndefined();
		const answers = messages.map(({ messageResponse }) => messageResponse);
		expect(answers[0]).toMatchObject({ value: { service: SERVICES.map(({ typeName }) => ({ name: typeName })) } });
		const filesOf = (answer: (typeof answers)[number] | undefined) =>
			answer?.case === "fileDescriptorResponse"
				? answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name)
				: [];
		expect(filesOf(answers[1])).toEqual(
			expect.arrayContaining(["nexus/runtime/v1/ai.proto", "google/protobuf/timestamp.proto"]),
		);
		expect(filesOf(answers[1])[0]).toBe("nexus/runtime/v1/ai.proto");
		expect(filesOf(answers[2])).toEqual(filesOf(answers[1]));
		expect(filesOf(answers[3])).toEqual(["google/protobuf/timestamp.proto"]);
		expect(answers.slice(4)).toMatchObject([{ value: { errorCode: 5 } }, { value: { errorCode: 5 } }]);
		const stranger = client(service as typeof ServerReflection, "grpc", "");
		const refused = await readStream(stranger.serverReflectionInfo(ask()));
		expect(statusOf(refused.error)?.code).toBe("Unauthenticated");
	},
);
