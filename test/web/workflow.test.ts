/** Workflows and jobs on the page, as values: order, states in words, outputs within bounds. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
	ScenarioJobState as JobState,
	type ScenarioJob,
	ScenarioJobSchema,
} from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { ReasonCode } from "../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import {
	WorkflowNodeKind as Kind,
	WorkflowState as State,
	type Workflow,
	type WorkflowNodeStatus,
	WorkflowNodeStatusSchema,
	WorkflowSchema,
} from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { formatRoute, parseRoute } from "../../packages/web/src/app/route.ts";
import {
	adviceOf,
	attemptWords,
	graphOf,
	hasUnreadOutputs,
	layersOf,
	newWorkflowView,
	resultNodesOf,
	shownOutput,
	skippedWords,
	textRunsOf,
	withEvent,
	withRead,
} from "../../packages/web/src/workflows/workflow.ts";
import {
	isJobOver,
	jobDetail,
	jobWords,
	NEW_WORKFLOWS,
	pollDelay,
	sizeText,
	stateWords,
} from "../../packages/web/src/workflows/workflows.ts";

const node = (
	nodeId: string,
	dependsOn: string[] = [],
	more: MessageInitShape<typeof WorkflowNodeStatusSchema> = {},
): WorkflowNodeStatus =>
	create(WorkflowNodeStatusSchema, {
		nodeId,
		kind: Kind.TRANSFORM_TEMPLATE,
		state: State.ACCEPTED,
		dependsOn,
		...more,
	});

const workflow = (nodes: WorkflowNodeStatus[], more: MessageInitShape<typeof WorkflowSchema> = {}): Workflow =>
	create(WorkflowSchema, { workflowId: "wf_1", appId: "owner", name: "w", state: State.RUNNING, nodes, ...more });

const job = (more: MessageInitShape<typeof ScenarioJobSchema>): ScenarioJob =>
	create(ScenarioJobSchema, { jobId: "job_1", state: JobState.RUNNING, progressPercent: -1, attempt: 1, ...more });

const DIAMOND = [
	node("end", ["left", "right", "start"]),
	node("right", ["start"]),
	node("left", ["start"]),
	node("start"),
];

describe("the graph", () => {
	it("puts every node below all that it depends on, whatever the order of the definition", () => {
		expect(layersOf(DIAMOND).map((layer) => layer.map((each) => each.nodeId))).toEqual([
			["start"],
			["right", "left"],
			["end"],
		]);
		expect(layersOf([])).toEqual([]);
	});

	it("puts a node near what it depends on", () => {
		const nodes = [node("a"), node("b"), node("under-b", ["b"]), node("under-a", ["a"])];
		expect(layersOf(nodes)[1]!.map((each) => each.nodeId)).toEqual(["under-a", "under-b"]);
	});

	it("stands in the middle, and leaves out edges that others imply", () => {
		const { columns, rows, nodes, edges } = graphOf(DIAMOND);
		expect([columns, rows]).toEqual([2, 3]);
		expect(nodes.map((placed) => [placed.node.nodeId, placed.x, placed.y])).toEqual([
			["start", 0.5, 0],
			["right", 0, 1],
			["left", 1, 1],
			["end", 0.5, 2],
		]);
		expect(edges.map(({ from, to }) => `${from.node.nodeId} ${to.node.nodeId}`).toSorted()).toEqual([
			"left end",
			"right end",
			"start left",
			"start right",
		]);
	});

	it("knows whose output is the workflow's", () => {
		expect([...resultNodesOf([...DIAMOND, node("alone")])]).toEqual(["end", "alone"]);
	});
});

describe("a workflow that is followed (mode B)", () => {
	const writing = node("draft", [], { kind: Kind.AI_STREAM, state: State.RUNNING, runId: "run_1" });
	const done: WorkflowNodeStatus = { ...writing, state: State.COMPLETED };

	it("R4-50: an event's snapshot overwrites what was known, also by less", () => {
		const first = withEvent(newWorkflowView("wf_1"), workflow([done], { progressPercent: 50 }));
		const second = withEvent(first, workflow([writing], { progressPercent: 0 }));
		expect(second.workflow).toEqual(workflow([writing]));
	});

	it("takes states from a read until the first event, and outputs always", () => {
		const given = { ...done, output: { text: "all" } };
		const before = withRead(newWorkflowView("wf_1"), workflow([given]));
		expect(before.workflow?.nodes[0]?.state).toBe(State.COMPLETED);
		const followed = withRead(withEvent(newWorkflowView("wf_1"), workflow([writing])), workflow([given]));
		expect([followed.workflow?.nodes[0]?.state, followed.outputs]).toEqual([State.RUNNING, { draft: { text: "all" } }]);
	});

	it("knows what is still to be read: outputs of what completed, and the text of what has given none", () => {
		const following = withEvent(newWorkflowView("wf_1"), workflow([writing, node("other", [], { runId: "run_2" })]));
		expect([textRunsOf(following), hasUnreadOutputs(following)]).toEqual([["run_1"], false]);
		const ended = withEvent(following, workflow([done]));
		expect([textRunsOf(ended), hasUnreadOutputs(ended)]).toEqual([["run_1"], true]);
		const known = withRead(ended, workflow([{ ...done, output: { text: "all" } }]));
		expect([textRunsOf(known), hasUnreadOutputs(known)]).toEqual([[], false]);
		// A node without an output is not requested again.
		expect(hasUnreadOutputs(withRead(ended, workflow([done])))).toBe(false);
	});
});

describe("an output", () => {
	it("is shown within bounds, and says when something was left out", () => {
		const shown = shownOutput({ embeddings: [Array.from({ length: 64 }, (_, n) => n)], note: "x".repeat(5000) });
		expect(shown.cut).toBe(true);
		expect(shown.json).toContain('"… 56 more"');
		expect(shown.json!.length).toBeLessThan(6002);
		expect(shownOutput({ value: 3 })).toEqual({ json: '{\n  "value": 3\n}', artifacts: [], cut: false });
		const long = shownOutput({ text: "y".repeat(30_000) });
		expect([long.text!.length, long.cut, long.json]).toEqual([20_001, true, undefined]);
	});

	it("of a model call is its text and its files, with the model that answered", () => {
		const file = { artifact_id: "art_1", name: "speech.wav", mime_type: "audio/wav", size_bytes: 2048 };
		const usage = { input_tokens: 1, output_tokens: 7 };
		const given = { text: "hi", artifacts: [file], artifact_id: "art_1", usage, model: "m", demo: false };
		const { json, ...shown } = shownOutput(given);
		expect(json).toBeUndefined();
		const shownFile = { artifactId: "art_1", name: "speech.wav", sizeBytes: 2048 };
		expect(shown).toEqual({ text: "hi", facts: "m · 1 token in · 7 out", artifacts: [shownFile], cut: false });
		const unknown = { usage: { input_tokens: -1, output_tokens: -1 }, model: "m", demo: true };
		expect(shownOutput(unknown).facts).toBe("Demo, no model answered");
	});
});

describe("words", () => {
	it("say a state, and that a crash is not a failure of the node", () => {
		expect(stateWords(workflow([], { state: State.COMPLETED }))).toEqual({ tone: "good", text: "Done" });
		const failed = (reasonCode: ReasonCode) => stateWords(workflow([], { state: State.FAILED, reasonCode })).text;
		expect(failed(ReasonCode.PROTOCOL_ENVELOPE_INVALID)).toBe("Failed");
		expect(failed(ReasonCode.CRASHED)).toBe("Interrupted");
	});

	it("say which attempt it is, and that one followed a crash", () => {
		expect(attemptWords(node("a", [], { attempt: 1 }))).toBeUndefined();
		expect(attemptWords(node("a", [], { attempt: 2 }))).toBe("Attempt 2");
		expect(attemptWords(node("a", [], { attempt: 2, afterCrash: true }))).toBe("Attempt 2, after a crash");
		expect(attemptWords(node("a", [], { attempt: 1, afterCrash: true }))).toBe("After a crash");
	});

	it("say why a node was skipped", () => {
		const branch = node("is-long", [], { kind: Kind.CONTROL_BRANCH, state: State.COMPLETED });
		const failed = node("first", [], { state: State.FAILED });
		expect(skippedWords(node("keep", ["is-long"]), [branch])).toBe("The branch is-long went the other way.");
		expect(skippedWords(node("keep", ["is-long", "first"]), [branch, failed])).toBe("Nothing came from first.");
	});

	it("say what to do about an error, where that is known", () => {
		expect(adviceOf({ reasonCode: ReasonCode.AI_CONNECTOR_NOT_FOUND })).toContain("connector list");
		expect(adviceOf({ reasonCode: ReasonCode.CRASHED })).toContain("retry_max_attempts");
		expect(adviceOf({ reasonCode: ReasonCode.PROTOCOL_ENVELOPE_INVALID })).toBeUndefined();
	});

	it("say how a job is", () => {
		expect(jobWords(job({ state: JobState.SUBMITTED })).text).toBe("Queued");
		expect(jobWords(job({ state: JobState.TIMEOUT }))).toEqual({ tone: "bad", text: "Timed out" });
		const crashed = { state: JobState.FAILED, reasonCode: ReasonCode.CRASHED };
		expect(jobWords(job(crashed)).text).toBe("Interrupted");
		expect(jobDetail(job({ state: JobState.QUEUED, queuePosition: 3 }))).toBe("3 before it");
		expect(jobDetail(job({ progressPercent: 40, attempt: 2, retryMaxAttempts: 3, afterCrash: true }))).toBe(
			"40 % · attempt 2 of 3 · after a crash",
		);
		expect(jobDetail(job({}))).toBe("");
	});

	it("say a size", () => {
		expect([0, 335, 2048, 150 * 1024, 5_400_000].map(sizeText)).toEqual([
			"0 bytes",
			"335 bytes",
			"2.0 KiB",
			"150 KiB",
			"5.1 MiB",
		]);
	});
});

it("the lists are read often while something is under way", () => {
	const delays = [State.RUNNING, State.COMPLETED].map((state) =>
		pollDelay({ ...NEW_WORKFLOWS, workflows: [workflow([], { state })] }),
	);
	expect(delays[0]).toBeLessThan(delays[1]!);
	expect(pollDelay({ ...NEW_WORKFLOWS, queued: 1 })).toBe(delays[0]);
	expect([isJobOver({ state: JobState.TIMEOUT }), isJobOver({ state: JobState.QUEUED })]).toEqual([true, false]);
});

it("a workflow has its own address", () => {
	for (const hash of ["#/workflows", "#/workflow/wf_01JD"]) expect(formatRoute(parseRoute(hash))).toBe(hash);
	expect(parseRoute("#/workflow/")).toEqual({ name: "home" });
});
