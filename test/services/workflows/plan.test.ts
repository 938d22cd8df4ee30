import { describe, expect, test } from "vitest";
import { planOf } from "../../../packages/daemon/src/services/workflows/plan.ts";
import type { WorkflowDefinitionJson, WorkflowNodeJson } from "../../../packages/daemon/src/services/workflows/port.ts";
import { WORKFLOW_LIMITS } from "../../../packages/daemon/src/services/workflows/port.ts";
import { noop } from "./fakes.ts";

const template = (id: string, text: string, ...depends_on: string[]): WorkflowNodeJson => ({
	id,
	kind: "TRANSFORM_TEMPLATE",
	depends_on,
	config: { template: text },
});
const plan = (...nodes: WorkflowNodeJson[]) => planOf({ nodes }, WORKFLOW_LIMITS);

describe("a definition", () => {
	test("becomes a plan in which every node comes after what it waits for", () => {
		const definition: WorkflowDefinitionJson = {
			nodes: [
				noop("end", "yes", "no"),
				noop("yes"),
				noop("no"),
				{
					id: "if",
					kind: "CONTROL_BRANCH",
					config: { condition: "start.value", true_target: "yes", false_target: ["no"] },
				},
				noop("start"),
			],
			edges: [{ from_node: "start", to_node: "if" }],
		};
		const { nodes, dependants } = planOf(definition, WORKFLOW_LIMITS);
		expect(nodes.map(({ id }) => id)).toEqual(["start", "if", "yes", "no", "end"]);
		expect(dependants("if")).toEqual(["yes", "no"]);
		expect(nodes.find(({ id }) => id === "if")!.dependsOn).toEqual(["start"]);
	});

	const many = Array.from({ length: WORKFLOW_LIMITS.nodesMax + 1 }, (_, n) => noop(`n${n}`));
	const edge = { from_node: "a", to_node: "b" };
	const branch = (config: object): WorkflowNodeJson => ({ id: "if", kind: "CONTROL_BRANCH", config: { ...config } });
	const merge = (config: object, ...depends_on: string[]): WorkflowNodeJson => ({
		id: "m",
		kind: "CONTROL_MERGE",
		config: { ...config },
		depends_on,
	});
	test.each<[what: string, definition: unknown, message: RegExp]>([
		["nothing", undefined, /the definition/],
		["no nodes", { nodes: [] }, /has no nodes; add one/],
		["too many nodes", { nodes: many }, /129 nodes; at most 128/],
		["too many edges", { nodes: [noop("a"), noop("b")], edges: Array.from({ length: 513 }, () => edge) }, /513 edges/],
		["too many bytes", { nodes: [noop("a")], input: { text: "x".repeat(200_000) } }, /bytes; at most 131072/],
		["an unknown field", { nodes: [{ ...noop("a"), colour: "red" }] }, /node a: .*colour/],
		["an unknown kind", { nodes: [{ id: "a", kind: "AI_DANCE" }] }, /node a: there is no kind AI_DANCE; known are AI_/],
		["a kind of every object", { nodes: [{ id: "a", kind: "toString" }] }, /node a: there is no kind toString/],
		["two nodes of one id", { nodes: [noop("a"), noop("a")] }, /node a: there are two of this id; rename one/],
		["an id that is not a name", { nodes: [noop("a b")] }, /node "a b": use 1 to 64 letters/],
		[
			"an id that begins with no letter",
			{ nodes: [noop("_a")] },
			/node "_a": use 1 to 64 letters.*begin with a letter/,
		],
		["an id that no object can have", { nodes: [noop("__proto__")] }, /node "__proto__": use 1 to 64 letters/],
		[
			"an input that no object can have",
			{ nodes: [noop("a")], input: JSON.parse('{"__proto__":1}') },
			/input: __proto__ is not a valid name; rename it/,
		],
		[
			"an edge with a name that no object can have",
			{ nodes: [noop("a"), noop("b")], edges: [{ ...edge, to_input: "__proto__" }] },
			/node b: __proto__ is not a valid name of an input/,
		],
		["an id that is taken", { nodes: [noop("input")] }, /node input: this is the name of the workflow's own input/],
		["a dependency that is not there", { nodes: [noop("a", "b")] }, /node a: there is no node b; add it/],
		[
			"a circle",
			{ nodes: [noop("a", "c"), noop("b", "a"), noop("c", "b")] },
			/node a: it waits for itself \(a → c → b → a\)/,
		],
		["a node that waits for itself", { nodes: [noop("a", "a")] }, /node a: it depends on itself/],
		["an edge to nowhere", { nodes: [noop("a")], edges: [edge] }, /node a: there is no node b/],
		["an edge from nowhere", { nodes: [noop("b")], edges: [edge] }, /node b: there is no node a/],
		[
			"a branch to nowhere",
			{ nodes: [branch({ condition: "input.x", true_target: "b" })] },
			/node if: there is no node b/,
		],
		["a branch that leads nowhere", { nodes: [branch({ condition: "input.x" })] }, /node if: config: set true_target/],
		["a merge of nothing", { nodes: [merge({ mode: "ALL" })] }, /node m: nothing leads to this merge; set depends_on/],
		[
			"a merge of more than there is",
			{ nodes: [noop("a"), merge({ mode: "N_OF_M", n: 2 }, "a")] },
			/node m: config.n is 2/,
		],
		["a merge without its number", { nodes: [noop("a"), merge({ mode: "N_OF_M" }, "a")] }, /node m: config: n belongs/],
		["no prompt", { nodes: [{ id: "a", kind: "AI_STREAM" }] }, /node a: config: set either prompt or messages/],
		["a field of another kind", { nodes: [{ ...noop("a"), config: { prompt: "x" } }] }, /node a: config: .*prompt/],
		[
			"a missing input",
			{ nodes: [noop("a"), template("b", "{{a.text}}")] },
			/node b: it has no input a; add a to depends_on/,
		],
		[
			"a missing input of the workflow",
			{ nodes: [template("a", "{{input.topic}}")] },
			/node a: the workflow has no input topic/,
		],
		["an invalid path", { nodes: [template("a", "{{a..b}}")] }, /node a: invalid path "a..b"/],
		[
			"too many attempts",
			{ nodes: [{ ...noop("a"), retry_max_attempts: 11 }] },
			/node a: retry_max_attempts is at most 10/,
		],
		[
			"too long a pause",
			{ nodes: [{ ...noop("a"), retry_backoff_ms: 300_001 }] },
			/node a: retry_backoff_ms is at most/,
		],
		[
			"too long a script",
			{ nodes: [{ id: "a", kind: "TRANSFORM_SCRIPT", config: { code: "return 1" }, timeout_ms: 60_001 }] },
			/node a: timeout_ms is at most 60000/,
		],
		[
			"two edges of one name",
			{ nodes: [noop("a"), noop("b")], edges: [edge, edge] },
			/node b: two edges lead to the input a/,
		],
		[
			"an edge with a taken name",
			{ nodes: [noop("a"), noop("b")], edges: [{ ...edge, to_input: "input" }] },
			/node b: the input input has/,
		],
	])("is refused with the node and what to do: %s", (_what, definition, message) => {
		expect(() => planOf(definition, WORKFLOW_LIMITS)).toThrow(
			expect.objectContaining({ code: "invalid", reason: "WORKFLOW_INVALID", message: expect.stringMatching(message) }),
		);
	});

	test("one that was accepted before keeps its names", () => {
		expect(planOf({ nodes: [noop("_a")] }, WORKFLOW_LIMITS, true).nodes).toHaveLength(1);
	});

	test("inputs come from dependencies, edges and the workflow; a default says that one may be missing", () => {
		expect(() =>
			planOf(
				{
					input: { topic: "logs" },
					nodes: [
						template("a", "{{ input.topic }}"),
						template("b", "{{words}} {{a.text}}"),
						{ id: "c", kind: "TRANSFORM_EXTRACT", config: { path: "$.input.maybe", default: null } },
					],
					edges: [{ from_node: "a", from_output: "text", to_node: "b", to_input: "words" }],
				},
				WORKFLOW_LIMITS,
			),
		).not.toThrow();
		expect(plan(noop("a"), template("b", "{{a.text}}", "a")).nodes).toHaveLength(2);
	});
});
