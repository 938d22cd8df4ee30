/** The procedures about jobs, artifacts and transfers, over real sockets. */

import { createHash } from "node:crypto";
import { join } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
	RuntimeAiService,
	ScenarioJobEventType,
	ScenarioJobState,
	type ScenarioSchema,
	type SubscribeScenarioJobEventsResponse,
} from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { LocalTransferState, RuntimeLocalService } from "../../../packages/client/src/gen/nexus/runtime/v1/local_pb.ts";
import type { Services } from "../../../packages/daemon/src/runtime/wiring/port.ts";
import { StoredArtifacts } from "../../../packages/daemon/src/services/artifacts/artifacts.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { admittedOf, jobsRig, OWNER } from "../../services/jobs-rig.ts";
import { until } from "../../until.ts";
import { errorOf, kitForTest, readStream, statusOf } from "./kit.ts";

async function started(options?: Parameters<typeof jobsRig>[0]) {
	const played = jobsRig(options);
	const artifacts = new StoredArtifacts({
		...played,
		dir: join(freshFolder(), "artifacts"),
		clock: systemClock,
	});
	const services = {
		jobs: played.jobs,
		artifacts,
		scenarios: { admit: async ({ spec, durable }: { spec: object; durable?: boolean }) => durable && admittedOf(spec) },
	} as unknown as Services;
	const kit = await kitForTest({ services });
	return { ...played, kit, artifacts, ai: kit.client(RuntimeAiService), local: kit.client(RuntimeLocalService) };
}

const SCENARIO = {
	head: { appId: "app" },
	spec: { case: "textEmbed", value: { inputs: ["a", "bcd"] } },
} satisfies MessageInitShape<typeof ScenarioSchema>;

const nameOf = (of: object, value: number) => Object.entries(of).find(([, other]) => other === value)?.[0];

const typesOf = (events: readonly SubscribeScenarioJobEventsResponse[]) =>
	events
		.map(({ eventType }) => nameOf(ScenarioJobEventType, eventType))
		// A slow machine has more of it.
		.filter((type) => type !== "PROGRESS");

describe("a job over gRPC", () => {
	it("I11: an oversized reason is refused: it would be stored with the job and make it unreadable", async () => {
		const { ai } = await started();
		const { job } = await ai.submitScenarioJob({ scenario: SCENARIO });
		const refused = await errorOf(ai.cancelScenarioJob({ jobId: job!.jobId, reason: "x".repeat(2 ** 20) }));
		expect(statusOf(refused)?.code).toBe("InvalidArgument");
	});

	it("R4-71: is watched to its terminal, then OK; and R4-50: again, from anywhere", async () => {
		const { ai, calls } = await started();
		const { job } = await ai.submitScenarioJob({ scenario: SCENARIO, idempotencyKey: "k" });
		const { jobId } = job!;
		await until("it runs", () => calls.length === 1);
		const seen: SubscribeScenarioJobEventsResponse[] = [];
		const reading = readStream(ai.subscribeScenarioJobEvents({ jobId }), (event) => void seen.push(event));
		await until("the snapshot", () => seen.length > 0);
		expect(seen[0]!.job!.state).toBe(ScenarioJobState.RUNNING);
		calls[0]!.answer();
		const { messages, error } = await reading;
		expect(error).toBeUndefined();
		const states = new Set(messages.map(({ job: snapshot }) => snapshot!.state));
		expect([...states]).toEqual([ScenarioJobState.RUNNING, ScenarioJobState.COMPLETED]);
		expect(messages.at(-1)!.job!.embeddings.map(({ values }) => values)).toEqual([[1], [3]]);
		const all = await readStream(ai.subscribeScenarioJobEvents({ jobId, after: 0n }));
		expect(typesOf(all.messages)).toEqual(["SUBMITTED", "RUNNING", "COMPLETED"]);
		const sequences = all.messages.map(({ sequence }) => sequence);
		expect(sequences).toEqual(sequences.map((_, n) => BigInt(n + 1)));
		for (const after of [undefined, sequences.at(-1), 99n]) {
			const { messages: again, error: cut } = await readStream(ai.subscribeScenarioJobEvents({ jobId, after }));
			expect([typesOf(again), cut], `after ${after}, Z5`).toEqual([["COMPLETED"], undefined]);
		}
		const repeated = await ai.submitScenarioJob({ scenario: SCENARIO, idempotencyKey: "k" });
		expect(repeated.job!.jobId).toBe(jobId);
		expect((await ai.getScenarioJob({ jobId })).job).toMatchObject({
			state: ScenarioJobState.COMPLETED,
			progressPercent: 100,
		});
	});

	it("is listed by pages and states, and cancelled", async () => {
		const { ai, calls } = await started({ limits: { runningMax: 2 } });
		const ids: string[] = [];
		for (let n = 0; n < 3; n++) ids.unshift((await ai.submitScenarioJob({ scenario: SCENARIO })).job!.jobId);
		await until("two run", () => calls.length === 2);
		const first = await ai.listScenarioJobs({ pageSize: 2 });
		expect(first.jobs.map(({ jobId }) => jobId)).toEqual(ids.slice(0, 2));
		expect(first).toMatchObject({
			running: 2,
			queued: 1,
			jobs: [{ state: ScenarioJobState.QUEUED, queuePosition: 0 }, {}],
		});
		const rest = await ai.listScenarioJobs({ pageSize: 2, pageToken: first.nextPageToken });
		expect([rest.jobs.map(({ jobId }) => jobId), rest.nextPageToken]).toEqual([ids.slice(2), ""]);
		const canceled = await ai.cancelScenarioJob({ jobId: ids[0]!, reason: "enough" });
		expect(canceled.job).toMatchObject({ state: ScenarioJobState.CANCELED, reason: "it was cancelled: enough" });
		const left = await ai.listScenarioJobs({ states: [ScenarioJobState.RUNNING] });
		expect(left.jobs.map(({ jobId }) => jobId)).toEqual(ids.slice(1));
		for (const call of [
			() => ai.getScenarioJob({ jobId: "job_none" }),
			() => ai.cancelScenarioJob({ jobId: "job_none" }),
		])
			expect(statusOf(await errorOf(call()))).toEqual({ code: "NotFound", reason: "REASON_CODE_NOT_FOUND" });
		const { error } = await readStream(ai.subscribeScenarioJobEvents({ jobId: "job_none" }));
		expect(statusOf(error)?.code).toBe("NotFound");
	});

	it("keeps audio that came with the request as an artifact, the same for a repeated request", async () => {
		const { ai, jobs, artifacts } = await started();
		const scenario = {
			head: { appId: "app" },
			spec: { case: "speechTranscribe", value: { audio: new Uint8Array([1, 2, 3]), mimeType: "audio/wav" } },
		} as const;
		const one = await ai.submitScenarioJob({ scenario, idempotencyKey: "k" });
		const two = await ai.submitScenarioJob({ scenario, idempotencyKey: "k" });
		expect(two.job!.jobId).toBe(one.job!.jobId);
		await jobs.settled(one.job!.jobId);
		expect(artifacts.transfers.list(OWNER)).toEqual([]);
	});
});

describe("artifacts over gRPC", () => {
	it("Z20: go up and down by pieces, watched by a feed that begins with what is so now", async () => {
		const { ai, local } = await started();
		const data = new Uint8Array(1_500_000).map((_, n) => n % 251);
		const sha256 = createHash("sha256").update(data).digest("hex");
		const piece = { appId: "app", name: "big.bin", sizeBytes: BigInt(data.length), sha256 };
		const first = await local.uploadArtifact({ ...piece, chunk: data.subarray(0, 1024 * 1024) });
		const { artifactId } = first.artifact!;
		const states: LocalTransferState[] = [];
		const stop = new AbortController();
		const watching = readStream(local.watchLocalTransfers({}, { signal: stop.signal }), ({ transfer }) => {
			states.push(transfer!.state);
		});
		await until("what is so now", () => states.length === 1);
		await local.pauseLocalTransfer({ transferId: first.transferId });
		const next = {
			...piece,
			artifactId,
			offset: first.receivedBytes,
			chunk: data.subarray(Number(first.receivedBytes)),
		};
		expect(statusOf(await errorOf(local.uploadArtifact(next)))?.code).toBe("FailedPrecondition");
		await local.resumeLocalTransfer({ transferId: first.transferId });
		expect((await local.uploadArtifact(next)).artifact).toMatchObject({ complete: true, sha256 });
		await until("its end", () => states.at(-1) === LocalTransferState.COMPLETED);
		stop.abort();
		await watching;
		expect(states[0]).toBe(LocalTransferState.RUNNING);
		expect(states).toContain(LocalTransferState.PAUSED);
		const parts: Uint8Array[] = [];
		for (let offset = 0; offset < data.length; ) {
			const { chunk } = await ai.getArtifact({ artifactId, offset: BigInt(offset) });
			expect(chunk.length).toBeLessThanOrEqual(1024 * 1024);
			parts.push(chunk);
			offset += chunk.length;
		}
		expect(Buffer.concat(parts).equals(data)).toBe(true);
		expect(
			statusOf(
				await errorOf(
					local.uploadArtifact({ ...piece, sha256: "0".repeat(64), chunk: data.subarray(0, 9), sizeBytes: 9n }),
				),
			),
		).toEqual({
			code: "InvalidArgument",
			reason: "REASON_CODE_CHECKSUM_MISMATCH",
		});
		const { transfers } = await local.listLocalTransfers({});
		expect(transfers.map(({ state }) => nameOf(LocalTransferState, state))).toEqual([
			"COMPLETED",
			"COMPLETED",
			"FAILED",
		]);
	});
});
