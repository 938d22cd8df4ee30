/** The decisions of a workflow, for all graphs, failures, crashes and orders of events. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Plan, planOf } from "../../../packages/daemon/src/services/workflows/plan.ts";
import type { WorkflowDefinitionJson, WorkflowNodeJson } from "../../../packages/daemon/src/services/workflows/port.ts";
import { WORKFLOW_LIMITS } from "../../../packages/daemon/src/services/workflows/port.ts";
import {
	doneBefore,
	isOver,
	newRun,
	nextTickAt,
	percentOf,
	type WorkflowRun,
} from "../../../packages/daemon/src/services/workflows/run/run-state.ts";
import {
	type NodeCommand,
	step,
	type WorkflowEvent,
	type WorkflowInput,
} from "../../../packages/daemon/src/services/workflows/run/step.ts";
import { seededRandom } from "../../../packages/daemon/src/std/seed.ts";
import { atEffort } from "../../effort.ts";
import "../../seed.ts";
import { noop } from "./fakes.ts";

const crashed = { code: "crashed", message: "the daemon died" };
const broken = { code: "engine_failed", message: "broken" };

/** A workflow that is stepped by hand, with its clock. */
class Walk {
	run: WorkflowRun;
	now = 1000;
	readonly told: WorkflowEvent[] = [];
	readonly commands: NodeCommand[] = [];
	readonly plan: Plan;
	readonly #limits: { nodesRunningMax: number; backoffMsMax: number };

	constructor(plan: Plan, nodesRunningMax = 8) {
		this.plan = plan;
		this.#limits = { nodesRunningMax, backoffMsMax: 60_000 };
		this.run = newRun(plan, this.now);
	}

	give(input: WorkflowInput): NodeCommand[] {
		const { run, events: told, commands } = step(this.plan, this.run, input, this.now, this.#limits);
		this.run = run;
		this.told.push(...told);
		this.commands.push(...commands);
		return commands;
	}

	report(node: string, report: Extract<WorkflowInput, { type: "node" }>["report"]): NodeCommand[] {
		return this.give({ type: "node", node, attempt: this.run.nodes.get(node)!.attempt, report });
	}

	nextTick(): number | undefined {
		return nextTickAt(this.run, this.#limits.nodesRunningMax);
	}

	states(): Record<string, string> {
		return Object.fromEntries([...this.run.nodes].map(([id, { state }]) => [id, state]));
	}
}

const walk = (definition: WorkflowDefinitionJson, nodesRunningMax?: number): Walk => {
	const one = new Walk(planOf(definition, WORKFLOW_LIMITS), nodesRunningMax);
	one.give({ type: "begin" });
	return one;
};

const call = (id: string, fields: Partial<WorkflowNodeJson> = {}): WorkflowNodeJson => ({
	id,
	kind: "AI_STREAM",
	config: { prompt: "p" },
	...fields,
});
const merge = (id: string, config: object, ...depends_on: string[]): WorkflowNodeJson => ({
	id,
	kind: "CONTROL_MERGE",
	config: { ...config },
	depends_on,
});
const branch = (id: string, yes: string[], no: string[], ...depends_on: string[]): WorkflowNodeJson => ({
	id,
	kind: "CONTROL_BRANCH",
	depends_on,
	config: { condition: "input", true_target: yes, false_target: no },
});

describe("a step", () => {
	test("nodes start as their inputs allow, as many as may run at a time", () => {
		const one = walk({ nodes: [noop("a"), noop("b"), noop("c"), noop("d", "a", "b")] }, 2);
		expect(one.commands).toMatchObject([{ node: "a" }, { node: "b" }]);
		expect(one.report("a", { type: "completed" })).toMatchObject([{ node: "c" }]);
		expect(one.report("b", { type: "completed" })).toMatchObject([{ type: "perform", node: "d", attempt: 1 }]);
		expect(percentOf(one.run)).toBe(50);
	});

	test("the side of a branch that is not taken is skipped, unless an ANY joins it again", () => {
		const nodes = [
			branch("if", ["yes"], ["no"]),
			noop("yes"),
			noop("no"),
			noop("after-no", "no"),
			merge("any", { mode: "ANY" }, "yes", "after-no"),
			merge("all", { mode: "ALL" }, "yes", "after-no"),
			noop("beyond", "all"),
		];
		const one = walk({ nodes });
		one.report("if", { type: "completed", taken: true });
		one.report("yes", { type: "completed" });
		one.report("any", { type: "completed" });
		const skipped = { no: "skipped", "after-no": "skipped", all: "skipped", beyond: "skipped" };
		expect(one.states()).toEqual({ if: "completed", yes: "completed", any: "completed", ...skipped });
		expect(one.run.state).toBe("completed");
		expect(doneBefore(one.plan, one.run, one.plan.node("any"))).toEqual(["yes"]);
	});

	test("a branch may lead straight to a merge: the way that is not taken does not count", () => {
		const one = walk({ nodes: [branch("if", ["fix"], ["join"]), noop("fix"), merge("join", { mode: "ANY" }, "fix")] });
		one.report("if", { type: "completed", taken: true });
		expect(one.states()).toMatchObject({ fix: "running", join: "accepted" });
		one.report("fix", { type: "failed", error: broken, retryable: false });
		expect(one.states()).toEqual({ if: "completed", fix: "failed", join: "skipped" });
	});

	test("N_OF_M continues with n, and is skipped when there cannot be n any more", () => {
		const nodes = [noop("a"), noop("b"), noop("c"), merge("two", { mode: "N_OF_M", n: 2 }, "a", "b", "c")];
		const one = walk({ nodes });
		one.report("a", { type: "completed" });
		one.report("b", { type: "failed", error: broken, retryable: false });
		expect(one.states().two).toBe("accepted");
		expect(one.report("c", { type: "completed" })).toMatchObject([{ node: "two" }]);
		const other = walk({ nodes });
		other.report("a", { type: "failed", error: broken, retryable: false });
		other.report("b", { type: "failed", error: broken, retryable: false });
		expect(other.states().two).toBe("skipped");
	});

	test("a failure skips who depends on it; the others go on, and then the workflow has failed", () => {
		const one = walk({ nodes: [noop("a"), noop("b", "a"), noop("c")] });
		one.report("a", { type: "failed", error: broken, retryable: false });
		expect(one.run.state).toBe("running");
		one.report("c", { type: "completed" });
		expect(one.states()).toEqual({ a: "failed", b: "skipped", c: "completed" });
		expect(one.run).toMatchObject({
			state: "failed",
			error: { code: "engine_failed", message: "node a failed: broken" },
		});
	});

	test("a failure that a merge makes up for does not fail the workflow", () => {
		const nodes = [noop("a"), noop("a2", "a"), noop("b"), merge("m", { mode: "ANY" }, "a2", "b"), noop("end", "m")];
		const one = walk({ nodes });
		one.report("a", { type: "failed", error: broken, retryable: false });
		for (const node of ["b", "m", "end"]) one.report(node, { type: "completed" });
		expect(one.states()).toMatchObject({ a: "failed", a2: "skipped", end: "completed" });
		expect(one.run.state).toBe("completed");
	});

	test("attempts follow with growing pauses, as many as are allowed, and only where they can help", () => {
		const one = walk({ nodes: [call("a", { retry_max_attempts: 3, retry_backoff_ms: 100 })] });
		one.report("a", { type: "failed", error: broken, retryable: true });
		expect(one.run.nodes.get("a")).toMatchObject({ state: "queued", attempt: 1, dueAt: 1100 });
		expect(one.nextTick()).toBe(1100);
		one.now = 1099;
		expect(one.give({ type: "tick" })).toEqual([]);
		one.now = 1100;
		expect(one.give({ type: "tick" })).toMatchObject([{ node: "a", attempt: 2 }]);
		one.report("a", { type: "failed", error: broken, retryable: true });
		expect(one.nextTick()).toBe(1300);
		one.now = 1300;
		one.give({ type: "tick" });
		one.report("a", { type: "failed", error: broken, retryable: true });
		expect(one.states().a).toBe("failed");
		const other = walk({ nodes: [call("a", { retry_max_attempts: 3 })] });
		other.report("a", { type: "failed", error: broken, retryable: false });
		expect(other.run.state).toBe("failed");
	});

	test("an attempt that takes too long is stopped, and what it says afterwards does not count", () => {
		const one = walk({ nodes: [call("a", { timeout_ms: 50, retry_max_attempts: 2, retry_backoff_ms: 1 })] });
		expect(one.nextTick()).toBeUndefined();
		one.report("a", { type: "running", runId: "run_1", jobId: "job_1" });
		expect(one.nextTick()).toBe(1050);
		one.now = 1050;
		expect(one.give({ type: "tick" })).toEqual([{ type: "stop", node: "a", attempt: 1 }]);
		one.now = 1051;
		one.give({ type: "tick" });
		one.give({ type: "node", node: "a", attempt: 1, report: { type: "completed" } });
		expect(one.run.nodes.get("a")).toMatchObject({ state: "queued", attempt: 2, active: true });
		expect(one.run.nodes.get("a")!.runId).toBeUndefined();
	});

	test("cancelling ends everything at once and stops what is under way", () => {
		const one = walk({ nodes: [call("a"), noop("b", "a")] });
		expect(one.give({ type: "cancel", reason: "no need" })).toEqual([{ type: "stop", node: "a", attempt: 1 }]);
		expect(one.run).toMatchObject({ state: "canceled", error: { code: "aborted", message: "no need" } });
		expect(one.states()).toEqual({ a: "canceled", b: "canceled" });
		expect(percentOf(one.run)).toBe(0);
		expect(one.give({ type: "cancel", reason: "again" })).toEqual([]);
	});

	test("a model's call is reported from its job's submission to its end, each event with the workflow of that moment", () => {
		const one = walk({ nodes: [call("a")] });
		one.report("a", { type: "submitted", jobId: "job_1" });
		one.report("a", { type: "running", runId: "run_1", jobId: "job_1" });
		one.report("a", { type: "progress", percent: 40 });
		one.report("a", { type: "progress", percent: 40 });
		one.report("a", { type: "completed" });
		const seen = one.told.map(({ type, run }) => [type, run.nodes.get("a")!.state, run.state]);
		expect(seen).toEqual([
			["started", "accepted", "running"],
			["node_external_submitted", "queued", "running"],
			["node_started", "running", "running"],
			["node_external_running", "running", "running"],
			["node_progress", "running", "running"],
			["node_external_completed", "completed", "running"],
			["node_completed", "completed", "running"],
			["completed", "completed", "completed"],
		]);
		expect(one.told[2]!.run.nodes.get("a")).toMatchObject({ runId: "run_1", jobId: "job_1" });
	});

	test("Z18: after a crash every attempt under way is looked up again; what only computes runs again, flagged", () => {
		const script: WorkflowNodeJson = { id: "s", kind: "TRANSFORM_SCRIPT", config: { code: "return 1" } };
		const one = walk({ nodes: [call("a", { retry_max_attempts: 2, retry_backoff_ms: 10 }), script, noop("done")] });
		one.report("a", { type: "running", jobId: "job_1", runId: "run_1" });
		one.report("done", { type: "completed" });
		one.now = 9000;
		expect(one.give({ type: "recover" })).toEqual([
			{ type: "perform", node: "a", attempt: 1, again: true },
			{ type: "perform", node: "s", attempt: 1, again: true },
		]);
		expect(one.run.nodes.get("s")).toMatchObject({ afterCrash: true });
		// Its thread keeps the time of a script.
		expect(one.run.nodes.get("s")!.deadlineAt).toBeUndefined();
		expect(one.run.nodes.get("a")!.afterCrash).toBeUndefined();
		one.report("a", { type: "failed", error: crashed, retryable: true });
		one.now = 9010;
		expect(one.give({ type: "tick" })).toEqual([{ type: "perform", node: "a", attempt: 2 }]);
		expect(one.run.nodes.get("a")).toMatchObject({ attempt: 2, afterCrash: true });
	});

	test("after an orderly stop a script runs again without a flag; a crash of the next daemon is flagged", () => {
		const script: WorkflowNodeJson = { id: "s", kind: "TRANSFORM_SCRIPT", config: { code: "return 1" } };
		const one = walk({ nodes: [script] });
		const again = [{ type: "perform", node: "s", attempt: 1, again: true }];
		expect(one.give({ type: "stopping" })).toEqual([]);
		expect(one.give({ type: "recover" })).toEqual(again);
		expect(one.run.nodes.get("s")!.afterCrash).toBeUndefined();
		expect(one.give({ type: "recover" })).toEqual(again);
		expect(one.run.nodes.get("s")).toMatchObject({ afterCrash: true });
		one.give({ type: "stopping" });
		one.report("s", { type: "completed" });
		expect(one.run.nodes.get("s")!.stopping).toBeUndefined();
	});
});

/** Acyclic by construction: a node may only depend on earlier ones. */
const graphs = fc
	.array(
		fc.record({
			kind: fc.constantFrom("noop", "call", "script", "branch", "any", "all", "n"),
			before: fc.array(fc.nat(), { maxLength: 4 }),
			side: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
			attempts: fc.integer({ min: 1, max: 3 }),
			n: fc.nat(),
			timeout_ms: fc.constantFrom(0, 500),
		}),
		{ minLength: 1, maxLength: 12 },
	)
	.map((drawn): WorkflowDefinitionJson => {
		const branches = new Map<number, { true_target: string[]; false_target: string[] }>();
		const nodes = drawn.map(({ kind, before, side, attempts, n, timeout_ms }, at): WorkflowNodeJson => {
			const depends = [...new Set(at === 0 ? [] : before.map((one) => one % at))];
			for (const [place, one] of depends.entries()) {
				const targets = branches.get(one);
				if (targets && side[place]) targets[side[(place + 1) % 4] ? "true_target" : "false_target"].push(`n${at}`);
			}
			const common = {
				id: `n${at}`,
				depends_on: depends.map((one) => `n${one}`),
				retry_max_attempts: attempts,
				timeout_ms,
			};
			if (kind === "call") return { ...common, kind: "AI_STREAM", config: { prompt: "p" } };
			if (kind === "script") return { ...common, kind: "TRANSFORM_SCRIPT", config: { code: "return 1" } };
			if (kind === "branch") {
				const targets = { true_target: [], false_target: [] };
				branches.set(at, targets);
				return { ...common, kind: "CONTROL_BRANCH", config: { condition: "input", ...targets } };
			}
			if (kind === "noop" || depends.length === 0) return { ...common, kind: "CONTROL_NOOP" };
			const config = { any: { mode: "ANY" }, all: { mode: "ALL" }, n: { mode: "N_OF_M", n: 1 + (n % depends.length) } };
			return { ...common, kind: "CONTROL_MERGE", config: config[kind] };
		});
		// A branch that leads nowhere is refused.
		for (const node of nodes) {
			const { true_target: yes = [], false_target: no = [] } = (node.config ?? {}) as {
				true_target?: [];
				false_target?: [];
			};
			if (node.kind === "CONTROL_BRANCH" && yes.length + no.length === 0) {
				node.kind = "CONTROL_NOOP";
				node.config = {};
			}
		}
		return { nodes };
	});

type Chance = () => number;

/** Lets everything happen that can, in any order, and notes what was performed. */
function play(definition: WorkflowDefinitionJson, chance: Chance, room: number) {
	const one = new Walk(planOf(definition, WORKFLOW_LIMITS), room);
	const performed: NodeCommand[] = [];
	const open: NodeCommand[] = [];
	const problems: string[] = [];
	const take = (commands: NodeCommand[]) => {
		for (const command of commands) {
			if (command.type === "stop") {
				open.splice(0, open.length, ...open.filter((other) => other.node !== command.node));
				continue;
			}
			performed.push(command);
			open.push(command);
			if (!command.again) checkStart(one, command.node, problems);
		}
		if ([...one.run.nodes.values()].filter(({ active }) => active).length > room) problems.push("too many at a time");
	};
	take(one.give({ type: "begin" }));
	let steps = 0;
	for (; !isOver(one.run) && steps < 2000; steps++) {
		const draw = chance();
		if (draw < 0.03) {
			open.length = 0;
			take(one.give({ type: "recover" }));
		} else if (open.length > 0 && draw < 0.9) {
			const command = open[Math.floor(chance() * open.length)]!;
			const { node, attempt } = command;
			const fate = chance();
			const said = (report: Extract<WorkflowInput, { type: "node" }>["report"]) =>
				take(one.give({ type: "node", node, attempt, report }));
			if (fate < 0.2) said({ type: "running", runId: `run-${node}-${attempt}` });
			else {
				open.splice(open.indexOf(command), 1);
				if (fate < 0.45) said({ type: "failed", error: fate < 0.3 ? crashed : broken, retryable: fate < 0.4 });
				else said({ type: "completed", taken: one.plan.node(node).targets && chance() < 0.5 });
			}
		} else {
			one.now = Math.max(one.now + 1, one.nextTick() ?? 0);
			take(one.give({ type: "tick" }));
		}
	}
	return { one, performed, problems, steps };
}

/** No node runs before its inputs. */
function checkStart({ plan, run }: Walk, node: string, problems: string[]): void {
	const planned = plan.node(node);
	const done = doneBefore(plan, run, planned).length;
	if (done < (planned.needs ?? planned.dependsOn.length)) problems.push(`${node} ran before its inputs`);
}

describe("for all graphs and all failures", () => {
	const games = fc.tuple(graphs, fc.integer(), fc.integer({ min: 1, max: 8 }));
	const numRuns = atEffort(10_000);

	test("a workflow ends, each node runs at most as often as allowed and never before its inputs, and every rule holds at the end", () => {
		fc.assert(
			fc.property(games, ([definition, seed, room]) => {
				const { one, performed, problems } = play(definition, seededRandom(seed), room);
				expect(problems).toEqual([]);
				expect(isOver(one.run)).toBe(true);
				for (const { id, attemptsMax } of one.plan.nodes) {
					const own = performed.filter(({ node, type }) => node === id && type === "perform");
					expect(new Set(own.map(({ attempt }) => attempt)).size).toBeLessThanOrEqual(attemptsMax);
					// The same attempt comes twice only when it is looked up again after a crash.
					const fresh = own.filter((command) => !("again" in command));
					expect(new Set(fresh.map(({ attempt }) => attempt)).size).toBe(fresh.length);
				}
				checkEnd(one);
				expect(one.told.at(-1)!.type).toBe(one.run.state);
				expect(percentOf(one.run)).toBe(100);
			}),
			{ numRuns },
		);
	});

	test("a workflow that is canceled at any moment has ended, and so have its nodes", () => {
		fc.assert(
			fc.property(games, fc.nat({ max: 30 }), ([definition, , room], count) => {
				const one = new Walk(planOf(definition, WORKFLOW_LIMITS), room);
				let open = one.give({ type: "begin" });
				for (let n = 0; n < count && open[0]; n++) {
					const [{ node, attempt }, ...rest] = open;
					open = [...rest, ...one.give({ type: "node", node, attempt, report: { type: "completed", taken: true } })];
				}
				const active = [...one.run.nodes].flatMap(([id, { active: is }]) => (is ? [id] : []));
				const stopped = one.give({ type: "cancel", reason: "" });
				expect(isOver(one.run)).toBe(true);
				expect([...one.run.nodes.values()].every(isOver)).toBe(true);
				expect(stopped.map(({ node }) => node)).toEqual(active);
			}),
			{ numRuns },
		);
	});
});

/** Completed, failed and skipped are exactly what the states of the nodes before say. */
function checkEnd({ plan, run }: Walk): void {
	for (const node of plan.nodes) {
		const { state } = run.nodes.get(node.id)!;
		const done = doneBefore(plan, run, node).length;
		const enough = done >= (node.needs ?? node.dependsOn.length);
		if (state === "skipped") expect(enough, `${node.id} was skipped`).toBe(false);
		else expect(enough, `${node.id} is ${state}`).toBe(true);
	}
	const failed = [...run.nodes.values()].some(({ state }) => state === "failed");
	if (run.state === "completed") return;
	expect(run.state).toBe("failed");
	expect(failed).toBe(true);
	expect(run.error?.message).toMatch(/^node n\d+ failed: /);
}
