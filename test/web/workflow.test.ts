/** Workflows and jobs on the page, as values: order, states in words, outputs within bounds. */

import { describe, expect, it } from "vitest";
import type {
	JobJson,
	WorkflowEventJson,
	WorkflowJson,
	WorkflowNodeStatusJson,
	WorkflowViewJson,
} from "../../packages/protocol/src/protocol.ts";
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
	isOver,
	jobDetail,
	jobWords,
	NEW_WORKFLOWS,
	pollDelay,
	sizeText,
	stateWords,
} from "../../packages/web/src/workflows/workflows.ts";

const node = (
	id: string,
	before: string[] = [],
	more: Partial<WorkflowNodeStatusJson> = {},
): WorkflowNodeStatusJson => ({
	node_id: id,
	kind: "TRANSFORM_TEMPLATE",
	state: "accepted",
	depends_on: before,
	attempt: 0,
	...more,
});

const workflow = (nodes: WorkflowNodeStatusJson[], more: Partial<WorkflowJson> = {}): WorkflowJson => ({
	workflow_id: "wf_1",
	app_id: "owner",
	user_id: "owner",
	name: "w",
	state: "running",
	progress_percent: 0,
	nodes,
	created_at: 1,
	...more,
});

const event = (nodes: WorkflowNodeStatusJson[], more: Partial<WorkflowJson> = {}): WorkflowEventJson => ({
	type: "node_progress",
	at: 1,
	workflow: workflow(nodes, more),
});

const read = (nodes: WorkflowNodeStatusJson[]): WorkflowViewJson => ({
	workflow: workflow(nodes),
	definition: { nodes: [] },
});

const job = (more: Partial<JobJson>): JobJson => ({
	job_id: "job_1",
	app_id: "owner",
	user_id: "owner",
	kind: "text",
	connector_id: "default",
	model: "demo",
	state: "running",
	progress_percent: -1,
	attempt: 1,
	attempts_max: 1,
	after_crash: false,
	queue_position: 0,
	created_at: 1,
	updated_at: 1,
	artifacts: [],
	demo: true,
	...more,
});

const DIAMOND = [
	node("end", ["left", "right", "start"]),
	node("right", ["start"]),
	node("left", ["start"]),
	node("start"),
];

describe("the graph", () => {
	it("puts every node below all that it depends on, whatever the order of the definition", () => {
		expect(layersOf(DIAMOND).map((layer) => layer.map((each) => each.node_id))).toEqual([
			["start"],
			["right", "left"],
			["end"],
		]);
		expect(layersOf([])).toEqual([]);
	});

	it("puts a node near what it depends on", () => {
		const nodes = [node("a"), node("b"), node("under-b", ["b"]), node("under-a", ["a"])];
		expect(layersOf(nodes)[1]!.map((each) => each.node_id)).toEqual(["under-a", "under-b"]);
	});

	it("stands in the middle, and leaves out edges that others imply", () => {
		const { columns, rows, nodes, edges } = graphOf(DIAMOND);
		expect([columns, rows]).toEqual([2, 3]);
		expect(nodes.map((placed) => [placed.node.node_id, placed.x, placed.y])).toEqual([
			["start", 0.5, 0],
			["right", 0, 1],
			["left", 1, 1],
			["end", 0.5, 2],
		]);
		expect(edges.map(({ from, to }) => `${from.node.node_id} ${to.node.node_id}`).toSorted()).toEqual([
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
	const writing = node("draft", [], { kind: "AI_STREAM", state: "running", run_id: "run_1" });
	const done: WorkflowNodeStatusJson = { ...writing, state: "completed" };

	it("R4-50: an event's snapshot overwrites what was known, also by less", () => {
		const first = withEvent(newWorkflowView("wf_1"), event([done], { progress_percent: 50 }));
		const second = withEvent(first, event([writing], { progress_percent: 0 }));
		expect(second.workflow).toEqual(event([writing]).workflow);
	});

	it("takes states from a read until the first event, and outputs always", () => {
		const given = { ...done, output: { text: "all" } };
		const before = withRead(newWorkflowView("wf_1"), read([given]));
		expect(before.workflow?.nodes[0]?.state).toBe("completed");
		const followed = withRead(withEvent(newWorkflowView("wf_1"), event([writing])), read([given]));
		expect([followed.workflow?.nodes[0]?.state, followed.outputs]).toEqual(["running", { draft: { text: "all" } }]);
	});

	it("knows what is still to be read: outputs of what completed, and the text of what has given none", () => {
		const following = withEvent(newWorkflowView("wf_1"), event([writing, node("other", [], { run_id: "run_2" })]));
		expect([textRunsOf(following), hasUnreadOutputs(following)]).toEqual([["run_1"], false]);
		const ended = withEvent(following, event([done]));
		expect([textRunsOf(ended), hasUnreadOutputs(ended)]).toEqual([["run_1"], true]);
		const known = withRead(ended, read([{ ...done, output: { text: "all" } }]));
		expect([textRunsOf(known), hasUnreadOutputs(known)]).toEqual([[], false]);
		// One that gave nothing is not asked for again and again.
		expect(hasUnreadOutputs(withRead(ended, read([done])))).toBe(false);
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

	it("of a model call is its text and its files; who answered stands beside it", () => {
		const file = { artifact_id: "art_1", name: "speech.wav", mime_type: "audio/wav", size_bytes: 2048 };
		const usage = { input_tokens: 1, output_tokens: 7 };
		const given = { text: "hi", artifacts: [file], artifact_id: "art_1", usage, model: "m", demo: false };
		const { json, ...shown } = shownOutput(given);
		expect(json).toBeUndefined();
		expect(shown).toEqual({ text: "hi", facts: "m · 1 token in · 7 out", artifacts: [file], cut: false });
		const unknown = { usage: { input_tokens: -1, output_tokens: -1 }, model: "m", demo: true };
		expect(shownOutput(unknown).facts).toBe("Demo, no model answered");
	});
});

describe("words", () => {
	it("say a state, and that a crash is no failure of the node", () => {
		expect(stateWords({ state: "completed" })).toEqual({ tone: "good", text: "Done" });
		expect(stateWords({ state: "failed", error: { code: "invalid", message: "" } }).text).toBe("Failed");
		expect(stateWords({ state: "failed", error: { code: "crashed", message: "" } }).text).toBe("Interrupted");
	});

	it("say which attempt it is, and that one followed a crash", () => {
		expect(attemptWords(node("a", [], { attempt: 1 }))).toBeUndefined();
		expect(attemptWords(node("a", [], { attempt: 2 }))).toBe("Attempt 2");
		expect(attemptWords(node("a", [], { attempt: 2, after_crash: true }))).toBe("Attempt 2, after a crash");
		expect(attemptWords(node("a", [], { attempt: 1, after_crash: true }))).toBe("After a crash");
	});

	it("say why a node was skipped", () => {
		const branch = node("is-long", [], { kind: "CONTROL_BRANCH", state: "completed" });
		const failed = node("first", [], { state: "failed" });
		expect(skippedWords(node("keep", ["is-long"]), [branch])).toBe("The branch is-long went the other way.");
		expect(skippedWords(node("keep", ["is-long", "first"]), [branch, failed])).toBe("Nothing came from first.");
	});

	it("say what to do about an error, where that is known", () => {
		expect(adviceOf({ code: "not_found", message: "", reason: "AI_CONNECTOR_NOT_FOUND" })).toContain("connector list");
		expect(adviceOf({ code: "crashed", message: "" })).toContain("retry_max_attempts");
		expect(adviceOf({ code: "invalid", message: "" })).toBeUndefined();
	});

	it("say how a job is", () => {
		expect(jobWords(job({ state: "submitted" })).text).toBe("Queued");
		expect(jobWords(job({ state: "timeout" }))).toEqual({ tone: "bad", text: "Timed out" });
		const crashed = { code: "crashed", message: "" };
		expect(jobWords(job({ state: "failed", error: crashed })).text).toBe("Interrupted");
		expect(jobDetail(job({ state: "queued", queue_position: 3 }))).toBe("3 before it");
		expect(jobDetail(job({ progress_percent: 40, attempt: 2, attempts_max: 3, after_crash: true }))).toBe(
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
	const delays = (["running", "completed"] as const).map((state) =>
		pollDelay({ ...NEW_WORKFLOWS, workflows: [workflow([], { state })] }),
	);
	expect(delays[0]).toBeLessThan(delays[1]!);
	expect(pollDelay({ ...NEW_WORKFLOWS, queued: 1 })).toBe(delays[0]);
	expect([isOver({ state: "timeout" }), isOver({ state: "queued" })]).toEqual([true, false]);
});

it("a workflow has an address of its own", () => {
	for (const hash of ["#/workflows", "#/workflow/wf_01JD"]) expect(formatRoute(parseRoute(hash))).toBe(hash);
	expect(parseRoute("#/workflow/")).toEqual({ name: "home" });
});
