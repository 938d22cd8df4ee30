/** A disk that fills up during jobs, workflows and uploads: callers get an error, started work continues when there is room, nothing is lost. */

import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, describe, expect, it } from "vitest";
import {
	ScenarioJobState,
	type SubscribeScenarioJobEventsResponse,
} from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { WorkflowNodeKind, WorkflowState } from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { readStream } from "../edge/grpc/kit.ts";
import { atEffort, effort, FULL_EFFORT } from "../effort.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { smallDisk } from "./disk.ts";
import { type Clients, clientsOf, type RuntimeProcess, runtimeIn, textOf } from "./runtime.ts";

const DISK_MB = 64;
const PIECE_BYTES = 256 * 1024;
const UPLOAD_BYTES = 8 * 2 ** 20;
const ROOM_BYTES = 2 ** 20;
/** More than there is room for. */
const TOKENS = atEffort(40_000, 20_000);

const folder = mkdtempSync(join(tmpdir(), "nexus-full-work-"));
const disk = smallDisk(folder, DISK_MB);
let daemon: RuntimeProcess | undefined;

async function start(name: string): Promise<Clients> {
	await daemon?.stop();
	const own = join(disk.path, name);
	mkdirSync(own);
	disk.free();
	daemon = await runtimeIn(own, "jobs: { progressMs: 5 }\n");
	await daemon.start();
	return clientsOf(daemon.grpc);
}

afterAll(async () => {
	await daemon?.stop();
	disk.unmount();
	removeFolder(folder);
});

const isReady = async () => (await fetch(`${daemon!.url}/readyz`)).status === 200;

/** The error of a full disk, with what to do about it. */
function expectFull(error: ConnectError): void {
	expect([Code.Unavailable, Code.ResourceExhausted]).toContain(error.code);
	expect(error.message).toMatch(/space|disk|room/i);
}

describe.skipIf(!disk.mounted)("proof: a full disk (skipped where a tmpfs cannot be mounted: run as root)", () => {
	it("Z20: an upload is refused with the reason, keeps what it has, and is completed when there is room", async () => {
		const { local, ai } = await start("upload");
		const whole = Buffer.alloc(UPLOAD_BYTES, "upload");
		const sha256 = createHash("sha256").update(whole).digest("hex");
		const pieceAt = (at: number) => whole.subarray(at, at + PIECE_BYTES);
		const appId = "proof";
		const head = {
			appId,
			name: "a.bin",
			mimeType: "application/octet-stream",
			sizeBytes: BigInt(UPLOAD_BYTES),
		};
		const first = await local.uploadArtifact({ ...head, sha256, offset: 0n, chunk: pieceAt(0) });
		const { artifactId } = first.artifact!;
		disk.fill(ROOM_BYTES);
		let received = Number(first.receivedBytes);
		const send = async () => {
			const chunk = pieceAt(received);
			received = Number(
				(await local.uploadArtifact({ appId, artifactId, offset: BigInt(received), chunk })).receivedBytes,
			);
		};
		let refusal: ConnectError | undefined;
		while (!refusal) {
			expect(received, "the disk never was full").toBeLessThan(UPLOAD_BYTES);
			await send().catch((cause: unknown) => {
				refusal = ConnectError.from(cause);
			});
		}
		expectFull(refusal);
		disk.free();
		await until("the daemon recovers", isReady);
		while (received < UPLOAD_BYTES) await send();
		const parts: Uint8Array[] = [];
		for (let offset = 0; offset < UPLOAD_BYTES; ) {
			const { chunk, artifact } = await ai.getArtifact({ artifactId, offset: BigInt(offset) });
			expect(artifact!.complete).toBe(true);
			parts.push(chunk);
			offset += chunk.length;
		}
		expect(createHash("sha256").update(Buffer.concat(parts)).digest("hex")).toBe(sha256);
	});

	it("I1 I4: a job and a workflow wait for room, new ones are refused, and all are whole in the end", async () => {
		const clients = await start("work");
		const { ai, workflows } = clients;
		const prompt = `/demo tokens=${TOKENS} rate=20000`;
		const nodes = [
			{ nodeId: "a", kind: WorkflowNodeKind.AI_STREAM, config: { prompt } },
			{ nodeId: "b", kind: WorkflowNodeKind.CONTROL_NOOP, dependsOn: ["a"] },
		];
		disk.fill(ROOM_BYTES);
		const { job } = await ai.submitScenarioJob({ scenario: textOf(prompt) });
		const { workflow } = await workflows.submitWorkflow({ appId: "proof", definition: { name: "w", nodes } });
		const { jobId } = job!;
		const { workflowId } = workflow!;
		const seen: SubscribeScenarioJobEventsResponse[] = [];
		const followed = readStream(ai.subscribeScenarioJobEvents({ jobId, after: 0n }), (event) => void seen.push(event));
		const flow = readStream(workflows.subscribeWorkflowEvents({ workflowId, after: 0n }));
		await until("the daemon notices", async () => !(await isReady()));
		const begun = performance.now();
		const refusals = await Promise.all(
			[
				() => ai.submitScenarioJob({ scenario: textOf(`/demo tokens=1 rate=0 ${"long ".repeat(50_000)}`) }),
				() => ai.executeScenario({ scenario: textOf(`/demo tokens=1 rate=0 ${"long ".repeat(50_000)}`) }),
			].map((call) => call().then(() => undefined, ConnectError.from)),
		);
		// The caller gets an answer while it still waits, before the store gives up.
		if (effort >= FULL_EFFORT) expect(performance.now() - begun).toBeLessThan(5000);
		// A write that fits into the last room is taken; a larger one is refused with what to do.
		for (const refusal of refusals) if (refusal) expectFull(refusal);
		disk.free();
		await until("the daemon recovers", isReady);
		const { messages, error } = await followed;
		expect(error).toBeUndefined();
		expect([messages.at(-1)!.job!.reason, messages.at(-1)!.job!.state]).toEqual(["", ScenarioJobState.COMPLETED]);
		expect(messages.map(({ sequence }) => sequence)).toEqual(messages.map((_, at) => BigInt(at + 1)));
		const flowEnd = await flow;
		expect(flowEnd.error).toBeUndefined();
		expect(flowEnd.messages.at(-1)!.workflow!.state).toBe(WorkflowState.COMPLETED);
		// The text is the run's, however often it had to wait.
		const { runId } = messages.at(-1)!.job!;
		const run = await readStream(ai.streamScenario({ runId }));
		expect(run.messages.at(-1)!.done).toBe(true);
		const control = await ai.executeScenario({ scenario: textOf(prompt) });
		expect(run.messages.map(({ textDelta }) => textDelta).join("")).toBe(control.text);
	});

	it("what was saved is still there after a kill", async () => {
		const clients = clientsOf(daemon!.grpc);
		const before = await clients.ai.listScenarioJobs({});
		await daemon!.kill();
		await daemon!.start();
		const after = await clientsOf(daemon!.grpc).ai.listScenarioJobs({});
		expect(after.jobs.map(({ jobId, state }) => [jobId, state])).toEqual(
			before.jobs.map(({ jobId, state }) => [jobId, state]),
		);
	});
});
