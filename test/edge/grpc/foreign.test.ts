/** What one application has made, against the token of another: it is not there, whatever the procedure or the route. */

import type { DescService } from "@bufbuild/protobuf";
import { createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, it, onTestFinished } from "vitest";
import { RuntimeAiService } from "../../../src/gen/nexus/runtime/v1/ai_pb.ts";
import { RuntimeLocalService } from "../../../src/gen/nexus/runtime/v1/local_pb.ts";
import { RuntimeWorkflowService, WorkflowNodeKind } from "../../../src/gen/nexus/runtime/v1/workflow_pb.ts";
import { startDaemon } from "../../../src/runtime/runtime.ts";
import { silentLog } from "../../../src/std/log.ts";
import { freshFolder } from "../../runtime/folder.ts";
import { TOKEN } from "../rig.ts";
import { errorOf, readStream, statusOf } from "./kit.ts";

async function start() {
	const daemon = await startDaemon({ data: freshFolder(), port: 0, token: TOKEN, engine: "demo", logger: silentLog });
	onTestFinished(() => daemon.close());
	const add = async (app_id: string) => {
		const answer = await fetch(`${daemon.url}/v1/apps`, {
			method: "POST",
			headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
			body: JSON.stringify({ app_id }),
		});
		const { token } = (await answer.json()) as { token: string };
		const authorization = `Bearer ${token}`;
		const named: Interceptor = (next) => (request) => {
			request.header.set("authorization", authorization);
			return next(request);
		};
		const transport = createGrpcTransport({ baseUrl: daemon.grpc!, interceptors: [named] });
		const client = <S extends DescService>(service: S) => createClient(service, transport);
		return {
			ai: client(RuntimeAiService),
			workflows: client(RuntimeWorkflowService),
			local: client(RuntimeLocalService),
			get: async (path: string, method = "GET") => fetch(daemon.url + path, { method, headers: { authorization } }),
		};
	};
	return { mine: await add("mine"), other: await add("other") };
}

type Caller = Awaited<ReturnType<typeof start>>["mine"];

const scenario = (appId = "") => ({
	head: { appId, connectorId: "default" },
	spec: {
		case: "textGenerate" as const,
		value: { messages: [{ role: "user", text: "/demo tokens=3 rate=1000" }] },
	},
});
const node = { nodeId: "a", kind: WorkflowNodeKind.CONTROL_NOOP };

/** Something of each kind. */
async function make({ ai, workflows, local }: Caller) {
	const { runId } = await ai.executeScenario({ scenario: scenario() });
	const { job } = await ai.submitScenarioJob({ scenario: scenario() });
	const { workflow } = await workflows.submitWorkflow({ definition: { name: "w", nodes: [node] } });
	const upload = { name: "a.txt", mimeType: "text/plain", sizeBytes: 2n, chunk: Buffer.from("hi") };
	const { artifact, transferId } = await local.uploadArtifact(upload);
	return { runId, jobId: job!.jobId, workflowId: workflow!.workflowId, artifactId: artifact!.artifactId, transferId };
}

it("Z25: another application's runs, jobs, workflows and artifacts are not found, and not listed", async () => {
	const { mine, other } = await start();
	const { runId, jobId, workflowId, artifactId, transferId } = await make(mine);
	const { ai, workflows, local, get } = other;
	const refusals = {
		stream: (await readStream(ai.streamScenario({ runId }))).error,
		getJob: await errorOf(ai.getScenarioJob({ jobId })),
		cancelJob: await errorOf(ai.cancelScenarioJob({ jobId })),
		jobEvents: (await readStream(ai.subscribeScenarioJobEvents({ jobId }))).error,
		artifact: await errorOf(ai.getArtifact({ artifactId })),
		upload: await errorOf(local.uploadArtifact({ artifactId, offset: 0n, chunk: Buffer.from("hi") })),
		pause: await errorOf(local.pauseLocalTransfer({ transferId })),
		resume: await errorOf(local.resumeLocalTransfer({ transferId })),
		cancelTransfer: await errorOf(local.cancelLocalTransfer({ transferId })),
		getWorkflow: await errorOf(workflows.getWorkflow({ workflowId })),
		cancelWorkflow: await errorOf(workflows.cancelWorkflow({ workflowId })),
		workflowEvents: (await readStream(workflows.subscribeWorkflowEvents({ workflowId }))).error,
	};
	for (const [what, refusal] of Object.entries(refusals))
		expect([what, statusOf(refusal)?.code]).toEqual([what, "NotFound"]);
	expect((await ai.listScenarioJobs({})).jobs).toEqual([]);
	expect((await workflows.listWorkflows({})).workflows).toEqual([]);
	expect((await local.listLocalTransfers({})).transfers).toEqual([]);
	const paths = [
		`jobs/${jobId}`,
		`jobs/${jobId}/stream`,
		`workflows/${workflowId}`,
		`workflows/${workflowId}/stream`,
		`artifacts/${artifactId}`,
	];
	for (const path of paths) expect([path, (await get(`/v1/${path}`)).status]).toEqual([path, 404]);
	expect(await (await get("/v1/jobs")).json()).toMatchObject({ jobs: [] });
	// They are there for whom they belong to.
	expect((await mine.ai.getScenarioJob({ jobId })).job?.appId).toBe("mine");
	expect((await mine.get(`/v1/artifacts/${artifactId}`)).status).toBe(200);
	expect((await mine.workflows.listWorkflows({})).workflows).toHaveLength(1);
});

it("Z25: to name another application is refused", async () => {
	const { other } = await start();
	const { ai, workflows, local } = other;
	const refusals = {
		execute: await errorOf(ai.executeScenario({ scenario: scenario("mine") })),
		stream: (await readStream(ai.streamScenario({ scenario: scenario("mine") }))).error,
		submit: await errorOf(ai.submitScenarioJob({ scenario: scenario("mine") })),
		listJobs: await errorOf(ai.listScenarioJobs({ appId: "mine" })),
		workflow: await errorOf(workflows.submitWorkflow({ appId: "mine", definition: { name: "w", nodes: [node] } })),
		listWorkflows: await errorOf(workflows.listWorkflows({ appId: "mine" })),
		upload: await errorOf(local.uploadArtifact({ appId: "mine", name: "a", mimeType: "text/plain", sizeBytes: 1n })),
		transfers: await errorOf(local.listLocalTransfers({ appId: "mine" })),
		watch: (await readStream(local.watchLocalTransfers({ appId: "mine" }))).error,
	};
	for (const [what, refusal] of Object.entries(refusals))
		expect([what, statusOf(refusal)?.code]).toEqual([what, "PermissionDenied"]);
});
