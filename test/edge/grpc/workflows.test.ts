import { describe, expect, test } from "vitest";
import { ReasonCode } from "../../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import {
	RuntimeWorkflowService,
	WorkflowEventType,
	WorkflowNodeKind,
	WorkflowState,
} from "../../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import type { Workflows } from "../../../packages/daemon/src/services/workflows/port.ts";
import { createWorkflows } from "../../../packages/daemon/src/services/workflows/workflows.ts";
import { durableParts } from "../../services/parts.ts";
import { fakeAgents, fakeConnectors, fakeJobs, fakeScenarios, type JobScript } from "../../services/workflows/fakes.ts";
import { errorOf, type GrpcKit, kitForTest, readStream, statusOf } from "./kit.ts";

const answer: JobScript = () => ({ text: "hello", usage: { input: 1, output: 2 } });

/** An edge with the real workflows over jobs that the test has in hand. */
async function started(script = answer) {
	const services: { workflows?: Workflows } = {};
	const kit: GrpcKit = await kitForTest({ services });
	services.workflows = createWorkflows({
		...durableParts(kit.rig),
		scenarios: fakeScenarios,
		jobs: fakeJobs(() => kit.rig.bus, script),
		agents: fakeAgents(),
		connectors: fakeConnectors,
		verifyUser: (token: string) => Promise.resolve(token),
	});
	return { ...kit, workflows: kit.client(RuntimeWorkflowService) };
}

const NOOP = WorkflowNodeKind.CONTROL_NOOP;
const ai = { nodeId: "draft", kind: WorkflowNodeKind.AI_STREAM, config: { prompt: "hi {{input.who}}" } };
const definition = {
	name: "a draft",
	nodes: [ai, { nodeId: "end", kind: NOOP, dependsOn: ["draft"] }],
	input: { who: "Ann" },
};

describe("RuntimeWorkflowService", () => {
	test("K-STREAM-005: a subscription shows every event with its snapshot, then the terminal, then OK", async () => {
		const { workflows } = await started();
		const { workflow } = await workflows.submitWorkflow({ appId: "notes", definition });
		expect(workflow).toMatchObject({
			appId: "notes",
			subjectUserId: "owner",
			name: "a draft",
			state: WorkflowState.ACCEPTED,
		});
		const { workflowId } = workflow!;
		const { messages, error } = await readStream(workflows.subscribeWorkflowEvents({ workflowId, after: 0n }));
		expect(error).toBeUndefined();
		expect(messages.map(({ eventType }) => eventType)).toEqual([
			WorkflowEventType.ACCEPTED,
			WorkflowEventType.STARTED,
			WorkflowEventType.NODE_EXTERNAL_SUBMITTED,
			WorkflowEventType.NODE_STARTED,
			WorkflowEventType.NODE_EXTERNAL_RUNNING,
			WorkflowEventType.NODE_EXTERNAL_COMPLETED,
			WorkflowEventType.NODE_COMPLETED,
			WorkflowEventType.NODE_STARTED,
			WorkflowEventType.NODE_COMPLETED,
			WorkflowEventType.COMPLETED,
		]);
		expect(messages.map(({ sequence }) => sequence)).toEqual(messages.map((_, n) => BigInt(n + 1)));
		const draft = messages[3]!.workflow!.nodes[0]!;
		expect(draft).toMatchObject({ nodeId: "draft", state: WorkflowState.RUNNING, attempt: 1 });
		expect(draft.runId).toMatch(/^run_of_job_/);
		expect(messages.at(-1)!.workflow).toMatchObject({ state: WorkflowState.COMPLETED, progressPercent: 100 });
		expect(messages.at(-1)!.workflow!.nodes.some(({ output }) => output !== undefined)).toBe(false);
	});

	test("Z15: Submit and Cancel are idempotent; Get has outputs and the definition; List has pages by application and state", async () => {
		const { workflows } = await started();
		const submitted = { appId: "notes", definition, idempotencyKey: "k" };
		const { workflowId } = (await workflows.submitWorkflow(submitted)).workflow!;
		expect((await workflows.submitWorkflow(submitted)).workflow!.workflowId).toBe(workflowId);
		await readStream(workflows.subscribeWorkflowEvents({ workflowId }));
		const found = await workflows.getWorkflow({ workflowId });
		expect(found.workflow).toMatchObject({ output: { end: {} }, nodes: [{ output: { text: "hello" } }, {}] });
		expect(found.definition).toMatchObject({
			name: "a draft",
			input: { who: "Ann" },
			nodes: [{ nodeId: "draft", config: ai.config }, {}],
		});
		const other = await workflows.submitWorkflow({ appId: "mail", definition });
		const first = await workflows.listWorkflows({ pageSize: 1 });
		expect(first).toMatchObject({ workflows: [{ workflowId: other.workflow!.workflowId }] });
		const second = await workflows.listWorkflows({ pageSize: 1, pageToken: first.nextPageToken });
		expect(second).toMatchObject({ workflows: [{ workflowId }] });
		const mine = await workflows.listWorkflows({ appId: "notes", states: [WorkflowState.COMPLETED] });
		expect(mine.workflows.map((each) => each.workflowId)).toEqual([workflowId]);
		expect((await workflows.listWorkflows({ appId: "notes", states: [WorkflowState.FAILED] })).workflows).toEqual([]);
		expect((await workflows.cancelWorkflow({ workflowId })).workflow!.state).toBe(WorkflowState.COMPLETED);
	});

	test("cancelling ends the subscription with the terminal and OK", async () => {
		const { workflows } = await started(() => new Promise(() => {}));
		const { workflow } = await workflows.submitWorkflow({ appId: "notes", definition });
		const { workflowId } = workflow!;
		const running = Promise.withResolvers<void>();
		const reading = readStream(workflows.subscribeWorkflowEvents({ workflowId, after: 0n }), ({ eventType }) => {
			if (eventType === WorkflowEventType.NODE_STARTED) running.resolve();
		});
		await running.promise;
		const canceled = await workflows.cancelWorkflow({ workflowId, reason: "enough" });
		expect(canceled.workflow).toMatchObject({
			state: WorkflowState.CANCELED,
			reasonCode: ReasonCode.ABORTED,
			reason: "enough",
		});
		const { messages, error } = await reading;
		expect(error).toBeUndefined();
		expect(messages.at(-1)!.eventType).toBe(WorkflowEventType.CANCELED);
	});

	test("what is wrong is refused with its reason, and names the node", async () => {
		const { workflows } = await started();
		const submit = (given: object, appId = "notes") =>
			errorOf(workflows.submitWorkflow({ appId, definition: given as never }));
		const invalid = { code: "InvalidArgument", reason: "REASON_CODE_WORKFLOW_INVALID" };
		const circle = await submit({
			nodes: [
				{ nodeId: "a", kind: NOOP, dependsOn: ["b"] },
				{ nodeId: "b", kind: NOOP, dependsOn: ["a"] },
			],
		});
		expect(statusOf(circle)).toEqual(invalid);
		expect(circle.rawMessage).toContain("node a: it waits for itself (a → b → a)");
		const unknown = await submit({ nodes: [{ nodeId: "a", kind: 99 }] });
		expect(statusOf(unknown)).toEqual(invalid);
		expect(unknown.rawMessage).toContain("node a: there is no kind 99");
		expect((await submit({ nodes: [{ nodeId: "a" }] })).rawMessage).toContain("node a: it has no kind that is known");
		expect(statusOf(await errorOf(workflows.submitWorkflow({ appId: "notes" })))).toEqual(invalid);
		expect(statusOf(await submit(definition, ""))).toEqual({
			code: "InvalidArgument",
			reason: "REASON_CODE_APP_ID_REQUIRED",
		});
		expect(statusOf(await errorOf(workflows.getWorkflow({ workflowId: "wf_0" })))).toMatchObject({ code: "NotFound" });
		expect(statusOf((await readStream(workflows.subscribeWorkflowEvents({ workflowId: "wf_0" }))).error)).toMatchObject(
			{ code: "NotFound" },
		);
		const inline = { headers: { "x-nexus-provider-api-key": "sk-secret" } };
		expect(statusOf(await errorOf(workflows.submitWorkflow({ appId: "notes", definition }, inline)))).toEqual({
			code: "FailedPrecondition",
			reason: "REASON_CODE_AI_REQUEST_CREDENTIAL_CONFLICT",
		});
	});
});

describe("/v1/workflows", () => {
	const json = {
		nodes: [
			{ node_id: "draft", kind: "WORKFLOW_NODE_KIND_AI_STREAM", config: { prompt: "hi" } },
			{ node_id: "end", kind: "WORKFLOW_NODE_KIND_CONTROL_NOOP", depends_on: ["draft"] },
		],
	};

	test("P5.3: the stream begins with the newest snapshot, resumes by Last-Event-ID, and is over after the terminal", async () => {
		const { rig } = await started();
		const { workflow_id: id } = (await (
			await rig.post("/v1/workflows", { definition: json, app_id: "notes" })
		).json()) as {
			workflow_id: string;
		};
		const events = async (path: string, headers = {}) => {
			const response = await rig.get(`/v1/workflows/${id}/stream${path}`, headers);
			const text = await response.text();
			return { status: response.status, ids: [...text.matchAll(/^id: (\d+)$/gm)].map(([, n]) => Number(n)), text };
		};
		const all = await events("?after=0");
		expect(all.ids).toEqual(all.ids.map((_, n) => n + 1));
		expect(all.text).toContain('"event_type":"WORKFLOW_EVENT_TYPE_NODE_STARTED"');
		const last = all.ids.at(-1)!;
		expect((await events("")).ids).toEqual([last]);
		expect((await events("", { "last-event-id": "3" })).ids[0]).toBe(4);
		expect(await events("", { "last-event-id": String(last) })).toMatchObject({ status: 204, ids: [] });
	});
});
