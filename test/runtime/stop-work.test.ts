/** A whole daemon stops while a job and a node of a workflow run: their runs, the job and the node all say STOPPING. */

import { expect, test } from "vitest";
import { ScenarioJobState as State } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { ReasonCode } from "../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import type { Daemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { asking, clientOf } from "../ai-client.ts";
import { readStream } from "../edge/grpc/kit.ts";
import { submissionOf } from "../submission.ts";
import { until } from "../until.ts";
import { callJson, daemonForTest } from "./daemon.ts";
import { freshFolder } from "./folder.ts";

interface Node {
	run_id: string;
	state: string;
}

const LONG = "/demo tokens=100000 rate=20";

const start = (data: string) => daemonForTest({ data, stopDeadlineMs: 2000, broker: { abortGraceMs: 1000 } });

test("P5.8: one stop has one reason, in the logs of runs, in jobs and in nodes of workflows; no crash is made of it", async () => {
	const data = freshFolder();
	const first = await start(data);
	const ai = clientOf(first);
	const submit = async (retryMaxAttempts: number) =>
		(await ai.submitScenarioJob({ scenario: asking(LONG), retryMaxAttempts })).job!.jobId;
	const [once, again] = [await submit(1), await submit(2)];
	const node = { id: "say", kind: "AI_GENERATE" as const, config: { prompt: LONG } };
	const submission = submissionOf({ name: "w", nodes: [node] });
	const workflow = await callJson<{ workflow_id: string }>(first, "/v1/workflows", submission);
	const runs = new Map<string, string>();
	for (const jobId of [once, again])
		await until("its run is known", async () => {
			const { job } = await ai.getScenarioJob({ jobId });
			runs.set(jobId, job!.runId);
			return job!.text !== "";
		});
	const shown = (daemon: Daemon) =>
		callJson<{ workflow: { nodes: Node[] } }>(daemon, `/v1/workflows/${workflow.workflow_id}`).then(
			(it) => it.workflow.nodes[0]!,
		);
	await until("the node runs", async () => (await shown(first)).run_id !== "");
	const nodeRun = (await shown(first)).run_id;
	await first.close();

	const next = await start(data);
	const client = clientOf(next);
	for (const runId of [runs.get(once)!, runs.get(again)!, nodeRun]) {
		const { messages } = await readStream(client.streamScenario({ runId, after: 0n }));
		expect(messages.at(-1)).toMatchObject({ done: true, reasonCode: ReasonCode.STOPPING });
	}
	const { job: ended } = await client.getScenarioJob({ jobId: once });
	expect(ended).toMatchObject({ state: State.FAILED, reasonCode: ReasonCode.STOPPING, afterCrash: false });
	expect(ended!.text).not.toBe("");
	const { job: begun } = await client.getScenarioJob({ jobId: again });
	expect(begun).toMatchObject({ attempt: 2, afterCrash: false });
	expect([State.QUEUED, State.RUNNING]).toContain(begun!.state);
	await until("the node has failed", async () => (await shown(next)).state === "WORKFLOW_STATE_FAILED");
	expect(await shown(next)).toMatchObject({ reason_code: "REASON_CODE_STOPPING" });
});
