import { describe, expect, test } from "vitest";
import { follow } from "../../../packages/daemon/src/bus/bus.ts";
import type { ScenarioRequest } from "../../../packages/daemon/src/services/scenarios/port.ts";
import type {
	NewWorkflow,
	WorkflowEventJson,
	WorkflowNodeJson,
	Workflows,
} from "../../../packages/daemon/src/services/workflows/port.ts";
import { createWorkflows } from "../../../packages/daemon/src/services/workflows/workflows.ts";
import type { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { tempFile } from "../../broker/rig.ts";
import { storeForTest, type TestStore } from "../../store.ts";
import { until } from "../../until.ts";
import { durableParts, rejectsWith } from "../parts.ts";
import {
	app,
	endLeftJobs,
	fakeAgents,
	fakeConnectors,
	fakeJobs,
	fakeScenarios,
	type JobScript,
	noop,
	owner,
	records,
} from "./fakes.ts";

const answer: JobScript = (_, { spec }) =>
	spec.kind === "text" ? { text: `answer to ${spec.messages.at(-1)!.text}`, usage: { input: 1, output: 2 } } : {};

const verifyUser = (token: string) => Promise.resolve(token.replace("token of ", ""));

/** A daemon as far as workflows know it; `restart` is another one on the same store, after a kill. */
function rig({
	script = answer,
	path = ":memory:",
	shared = false,
	limits = {},
}: {
	script?: JobScript;
	path?: string;
	/** Other daemons use the store, too. */
	shared?: boolean;
	limits?: object;
} = {}) {
	const dies = path !== ":memory:" && !shared;
	let store: TestStore = storeForTest({ path, connection: "none", dies, shared: shared || undefined });
	const jobs = fakeJobs(() => store.bus, script);
	const agents = fakeAgents();
	const admitted: ScenarioRequest[] = [];
	const scenarios: typeof fakeScenarios = {
		admit(request) {
			admitted.push(request);
			return fakeScenarios.admit(request);
		},
	};
	const create = (): Workflows =>
		createWorkflows({
			...durableParts(store),
			scenarios,
			jobs,
			agents,
			connectors: fakeConnectors,
			limits,
			verifyUser,
		});
	let workflows = create();
	return {
		jobs,
		agents,
		admitted,
		get bus() {
			return store.bus;
		},
		get workflows() {
			return workflows;
		},
		run: (sql: string) => store.file.db.exec(sql),
		/** The store as a process that died leaves it. */
		async restart() {
			store.file.close();
			store = storeForTest({ path, connection: "none" });
			jobs.crash();
			await endLeftJobs(store.bus, jobs);
			workflows = create();
			return workflows.recover();
		},
		async submit(nodes: WorkflowNodeJson[], fields: Partial<NewWorkflow> & { input?: object; edges?: object[] } = {}) {
			const { input = {}, edges = [], ...rest } = fields;
			const definition = { nodes, edges, input };
			return workflows.submit({ appId: "", userId: "", definition, ...rest }, owner);
		},
		get: async (id: string) => (await workflows.find(id, owner))!.workflow,
		async ended(id: string) {
			await records(store.bus, id);
			return this.get(id);
		},
		events: async (id: string, after = 0): Promise<WorkflowEventJson[]> => {
			const found: WorkflowEventJson[] = [];
			for await (const batch of follow(await workflows.cursor(id, after, owner)))
				found.push(...batch.records.map((record) => JSON.parse(record) as WorkflowEventJson));
			return found;
		},
	};
}

const call = (id: string, prompt: string, fields: Partial<WorkflowNodeJson> = {}): WorkflowNodeJson => ({
	id,
	kind: "AI_STREAM",
	config: { prompt },
	...fields,
});
const script = (code: string, fields: Partial<WorkflowNodeJson> = {}): WorkflowNodeJson => ({
	id: "s",
	kind: "TRANSFORM_SCRIPT",
	config: { code },
	...fields,
});
const agent: WorkflowNodeJson = { id: "ask", kind: "AGENT_RUN", config: { session: "s", text: "t" } };
const states = ({ nodes }: { nodes: { node_id: string; state: string }[] }) =>
	Object.fromEntries(nodes.map(({ node_id, state }) => [node_id, state]));

describe("a workflow", () => {
	test("carries what its nodes give to those that come after, through every kind that computes", async () => {
		const one = rig();
		const { workflow_id: id } = await one.submit(
			[
				call("draft", "Write about {{input.topic}}."),
				{ id: "title", kind: "TRANSFORM_TEMPLATE", depends_on: ["draft"], config: { template: "# {{draft.text}}" } },
				{ id: "count", kind: "TRANSFORM_SCRIPT", config: { code: "return { words: inputs.words.split(' ').length }" } },
				{ id: "words", kind: "TRANSFORM_EXTRACT", depends_on: ["count"], config: { path: "$.count.words" } },
				{
					id: "long",
					kind: "CONTROL_BRANCH",
					depends_on: ["words"],
					config: { condition: { path: "words.value", op: "gt", value: 3 }, true_target: "cut", false_target: "keep" },
				},
				{ id: "cut", kind: "TRANSFORM_TEMPLATE", config: { template: "cut" } },
				{ id: "keep", kind: "TRANSFORM_TEMPLATE", config: { template: "kept" } },
				{ id: "end", kind: "CONTROL_MERGE", depends_on: ["cut", "keep"], config: { mode: "ANY" } },
			],
			{
				input: { topic: "logs" },
				edges: [{ from_node: "draft", from_output: "text", to_node: "count", to_input: "words" }],
			},
		);
		const workflow = await one.ended(id);
		expect(workflow).toMatchObject({ state: "completed", progress_percent: 100 });
		expect(workflow.output).toEqual({
			title: { text: "# answer to Write about logs." },
			end: { from: "cut", value: { text: "cut" } },
		});
		expect(states(workflow)).toMatchObject({ keep: "skipped", cut: "completed" });
		const [draft] = workflow.nodes;
		expect(draft).toMatchObject({ job_id: expect.stringMatching(/^job_/), run_id: expect.stringMatching(/^run_of_/) });
		expect(draft!.output).toMatchObject({ text: "answer to Write about logs.", usage: { output_tokens: 2 } });
	});

	test("Z17: tells where an AI node's text can be read when the node starts; its events carry no outputs", async () => {
		const one = rig();
		const { workflow_id: id } = await one.submit([call("a", "hello")]);
		const events = await one.events(id);
		expect(events.map(({ type }) => type)).toEqual([
			"accepted",
			"started",
			"node_external_submitted",
			"node_started",
			"node_external_running",
			"node_external_completed",
			"node_completed",
			"completed",
		]);
		const started = events.find(({ type }) => type === "node_started")!;
		expect(started).toMatchObject({
			node_id: "a",
			workflow: { nodes: [{ state: "running", run_id: expect.any(String) }] },
		});
		expect(JSON.stringify(events)).not.toContain("answer to");
	});

	test("maps each kind of model call to its job", async () => {
		const artifact = {
			id: "art_1",
			appId: "owner",
			name: "a.png",
			mimeType: "image/png",
			sizeBytes: 3,
			createdAt: 1,
			expiresAt: 2,
			complete: true,
		};
		const script: JobScript = (_, { spec }) => {
			if (spec.kind === "embed") return { embeddings: spec.inputs.map((_each, n) => [n]) };
			return spec.kind === "transcribe" ? { text: "said" } : { artifacts: [artifact] };
		};
		const one = rig({ script });
		const { workflow_id: id } = await one.submit(
			[
				{ id: "image", kind: "AI_IMAGE", config: { prompt: "a {{input.what}}", size: "1x1", count: 1 } },
				{ id: "say", kind: "AI_TTS", config: { text: "hi", voice: "v", connector_id: "mine", model: "m" } },
				{
					id: "hear",
					kind: "AI_STT",
					depends_on: ["say"],
					config: { artifact_id: "{{say.artifact_id}}", language: "en" },
				},
				{ id: "list", kind: "AI_EMBED", config: { inputs: "{{input.lines}}" } },
				{ id: "one", kind: "AI_EMBED", config: { inputs: ["x {{input.what}}"] } },
				{
					id: "chat",
					kind: "AI_GENERATE",
					config: { messages: [{ role: "user", text: "{{input.what}}" }], system: "s", max_tokens: 5 },
				},
			],
			{ input: { what: "cat", lines: ["l1", "l2"] } },
		);
		const workflow = await one.ended(id);
		expect(workflow.state).toBe("completed");
		const specs = one.jobs.submitted.map(({ spec }) => spec);
		expect(specs).toEqual(
			expect.arrayContaining([
				{ kind: "image", prompt: "a cat", size: "1x1", count: 1 },
				{ kind: "speech", text: "hi", voice: "v" },
				{ kind: "transcribe", artifactId: "art_1", language: "en" },
				{ kind: "embed", inputs: ["l1", "l2"] },
				{ kind: "embed", inputs: ["x cat"] },
				{ kind: "text", messages: [{ role: "user", text: "cat" }], system: "s", maxTokens: 5 },
			]),
		);
		const outputs = Object.fromEntries(workflow.nodes.map(({ node_id, output }) => [node_id, output]));
		expect(outputs.image).toMatchObject({ artifact_id: "art_1", artifacts: [{ mime_type: "image/png" }] });
		expect(outputs.hear).toMatchObject({ text: "said" });
		expect(outputs.list).toMatchObject({ embeddings: [[0], [1]] });
		expect(one.jobs.submitted.find(({ spec }) => spec.kind === "speech")).toMatchObject({ model: "m" });
	});

	test("AGENT_RUN is a turn of a session, with an idempotency key of its attempt", async () => {
		const one = rig();
		const node: WorkflowNodeJson = {
			id: "ask",
			kind: "AGENT_RUN",
			config: { session: "work", text: "hi {{input.who}}" },
		};
		const { workflow_id: id } = await one.submit([node], { input: { who: "Ann" } });
		await until("its run has begun", () => one.agents.outcomes.size === 1);
		one.agents.outcomes.get("run_1")!.resolve({ status: "completed", text: "hello Ann" });
		const workflow = await one.ended(id);
		expect(workflow.nodes[0]).toMatchObject({ run_id: "run_1", output: { text: "hello Ann", run_id: "run_1" } });
		expect(one.agents.turns).toEqual([{ session: "work", text: "hi Ann", idempotencyKey: `workflow/${id}/ask/1` }]);
	});

	test("a failure is tried again with the next attempt's own key, and said with its reason when it stays", async () => {
		let calls = 0;
		const one = rig({
			script: () =>
				++calls < 3 ? { state: "failed", error: { code: "engine_failed", message: "odd" } } : { text: "ok" },
		});
		const retried = call("a", "x", { retry_max_attempts: 3, retry_backoff_ms: 1 });
		const { workflow_id: id } = await one.submit([retried]);
		expect((await one.ended(id)).nodes[0]).toMatchObject({ state: "completed", attempt: 3 });
		expect(one.jobs.all.size).toBe(3);
		const { workflow_id: other } = await one.submit(
			[call("a", "x", { config: { prompt: "x", connector_id: "{{input.connector}}" }, retry_max_attempts: 3 })],
			{ input: { connector: "missing" } },
		);
		expect(await one.ended(other)).toMatchObject({
			state: "failed",
			error: {
				code: "not_found",
				reason: "AI_CONNECTOR_NOT_FOUND",
				message: "node a failed: there is no connector missing",
			},
			nodes: [{ attempt: 1, state: "failed" }],
		});
	});

	test("a script that cannot be read and a connector that is not there are refused at submission", async () => {
		const one = rig();
		const refused = (nodes: WorkflowNodeJson[]) =>
			one.submit(nodes).then(
				() => "taken in",
				({ reason, message }: NexusError) => `${reason}: ${message}`,
			);
		expect(await refused([script("const a = 1;\nreturn a +;")])).toBe(
			"WORKFLOW_INVALID: node s: config.code: line 2: Unexpected token ';'",
		);
		expect(await refused([script("}); throw 1; (function () {")])).toMatch(/config.code: line 1: Unexpected token/);
		expect(await refused([script("with (inputs) return a")])).toMatch(/line 1: Strict mode code/);
		expect(await refused([script("return inputs.a?.b ?? 1")])).toBe("taken in");
		expect(await refused([call("a", "x", { config: { prompt: "x", connector_id: "missing" } })])).toBe(
			"WORKFLOW_INVALID: node a: there is no connector missing; create it, or correct connector_id",
		);
		const before = await one.submit([call("a", "x", { config: { prompt: "x", connector_id: "mine" } })]);
		expect(before.state).toBe("accepted");
	});

	test("a model call may take as long as its node, and as long as its kind where the node does not say", async () => {
		const one = rig();
		const hour = 60 * 60_000;
		await one.ended((await one.submit([call("a", "x", { timeout_ms: hour })])).workflow_id);
		await one.ended((await one.submit([call("a", "x")])).workflow_id);
		expect(one.admitted.map(({ head, timeoutMsMax }) => [head.timeoutMs, timeoutMsMax])).toEqual([
			[hour, hour],
			[undefined, undefined],
		]);
	});

	test("a node that takes longer than it may is stopped, with its job", async () => {
		const one = rig({ script: () => new Promise(() => {}) });
		const { workflow_id: id } = await one.submit([call("a", "x", { timeout_ms: 5 }), noop("b", "a")]);
		const workflow = await one.ended(id);
		expect(workflow).toMatchObject({ state: "failed", error: { code: "timeout" } });
		expect(states(workflow)).toEqual({ a: "failed", b: "skipped" });
		await until("its job is canceled", () => one.jobs.canceled.length === 1);
	});

	test("cancelling stops what is under way and is durable when it is answered; a second time changes nothing", async () => {
		const one = rig({ script: () => new Promise(() => {}) });
		const { workflow_id: id } = await one.submit([call("a", "x"), agent, noop("b", "a")]);
		await until("both run", () => one.jobs.all.size === 1 && one.agents.outcomes.size === 1);
		const canceled = await one.workflows.cancel(id, "enough", owner);
		expect(canceled).toMatchObject({ state: "canceled", error: { code: "aborted", message: "enough" } });
		expect(states(canceled)).toEqual({ a: "canceled", ask: "canceled", b: "canceled" });
		await until("job and run are stopped", () => one.jobs.canceled.length === 1 && one.agents.aborted.length === 1);
		expect(await one.workflows.cancel(id, "again", owner)).toEqual(canceled);
		expect((await one.events(id)).at(-1)!.type).toBe("canceled");
	});

	test("cancelling while a node's job is being submitted cancels the job, too", async () => {
		const one = rig({ script: () => new Promise(() => {}) });
		const gate = Promise.withResolvers<void>();
		const { submit } = one.jobs;
		one.jobs.submit = async (...args) => {
			await gate.promise;
			return submit(...args);
		};
		const { workflow_id: id } = await one.submit([call("a", "x")]);
		await until("it runs", async () => (await one.get(id)).state === "running");
		await one.workflows.cancel(id, "", owner);
		gate.resolve();
		await until("its job is canceled", () => one.jobs.canceled.length === 1);
	});

	test("cancelling takes back the message of an agent that waits for its session", async () => {
		const one = rig();
		one.agents.busy = new Promise(() => {});
		const { workflow_id: id } = await one.submit([agent]);
		await until("its message waits", () => one.agents.turns.length === 1);
		await one.workflows.cancel(id, "", owner);
		await until("it is taken back", () => one.agents.takenBack.length === 1);
		expect(one.agents.takenBack).toEqual([`workflow/${id}/ask/1`]);
		expect(one.agents.aborted).toEqual([]);
	});

	test("Z19: a script that fails, hangs or returns too much ends its node with words about it", async () => {
		const one = rig({ limits: { outputsBytesMax: 1000 } });
		const { workflow_id: id } = await one.submit([
			script("throw new Error('no')", { id: "throws" }),
			script("for (;;);", { id: "hangs", timeout_ms: 50 }),
			script("return 'x'.repeat(2000)", { id: "large" }),
			script("return [typeof process, typeof require, typeof fetch, typeof setTimeout].join()", { id: "blind" }),
		]);
		const { nodes } = await one.ended(id);
		const found = Object.fromEntries(nodes.map(({ node_id, error, output }) => [node_id, error ?? output]));
		expect(found).toMatchObject({
			throws: { code: "invalid", reason: "WORKFLOW_INVALID", message: "the script failed: Error: no" },
			hangs: { code: "timeout" },
			large: { code: "too_large", message: expect.stringContaining("keep large ones in artifacts") },
			blind: { value: "undefined,undefined,undefined,undefined" },
		});
	});

	test("hundreds of nodes that only compute take one commit, not one each", async () => {
		const one = rig();
		await one.submit([noop("warm")]);
		const before = one.bus.stats.commits;
		const chain = Array.from({ length: 100 }, (_, n) => noop(`n${n}`, ...(n === 0 ? [] : [`n${n - 1}`])));
		const { workflow_id: id } = await one.submit(chain);
		expect((await one.ended(id)).state).toBe("completed");
		expect(one.bus.stats.commits - before).toBeLessThanOrEqual(3);
	});
});

describe("the service", () => {
	test("I11: events are stored as changes, and each is read with the whole workflow from wherever a reader begins", async () => {
		const one = rig();
		const templates = Array.from(
			{ length: 128 },
			(_, n): WorkflowNodeJson => ({
				id: `n${n}`,
				kind: "TRANSFORM_TEMPLATE",
				config: { template: "x" },
				depends_on: n === 0 ? [] : [`n${n - 1}`],
			}),
		);
		const { workflow_id: id } = await one.submit(templates);
		const workflow = await one.ended(id);
		const events = await one.events(id);
		expect(events.map(({ type }) => type).filter((type) => type === "node_completed")).toHaveLength(128);
		expect(events.at(-1)!.workflow).toEqual({
			...workflow,
			output: undefined,
			nodes: workflow.nodes.map(({ output: _, ...node }) => node),
		});
		for (const [n, { type, node_id, workflow: told }] of events.entries()) {
			expect(told.nodes).toHaveLength(128);
			if (type === "node_completed") expect(states(told)[node_id!]).toBe("completed");
			expect(told.nodes.filter(({ state }) => state === "completed").length).toBeGreaterThanOrEqual(
				Math.floor((n - 2) / 2),
			);
		}
		const first = events.length - 1;
		for (const after of [1, 2, 255, 256, 257, first]) expect(await one.events(id, after)).toEqual(events.slice(after));
		// All of them as readers see them, and as they are stored.
		expect(JSON.stringify(events).length).toBeGreaterThan(4_000_000);
		expect((await one.bus.describe(id))!.bytes).toBeLessThan(120_000);
	});

	test("I11: an error that a node throws is cut, and reported once for each attempt", async () => {
		const one = rig({
			script: () => ({ state: "failed", error: { code: "engine_failed", message: "x".repeat(100_000) } }),
		});
		const calls = Array.from({ length: 20 }, (_, n) =>
			call(`n${n}`, "hello", { retry_max_attempts: 3, retry_backoff_ms: 1 }),
		);
		const { workflow_id: id } = await one.submit(calls);
		const { error, nodes } = await one.ended(id);
		expect(error!.message).toHaveLength(2000 + "node n0 failed: ".length);
		expect(nodes[7]!.error!.message).toMatch(/^x+…$/);
		// Sixty attempts, and one whole workflow for each 256 events.
		expect((await one.bus.describe(id))!.bytes).toBeLessThan(60 * (2000 + 2500) + 2 * 20 * 2500);
	});

	test("R4-50: a subscription begins with the newest snapshot, and of one that has ended with the terminal, whatever `after` is", async () => {
		const one = rig();
		const { workflow_id: id } = await one.submit([noop("a")]);
		const all = await one.events(id);
		const from = async (after?: number) => {
			const cursor = await one.workflows.cursor(id, after, owner);
			const batch = await cursor.next();
			return {
				first: batch!.first,
				ended: cursor.ended,
				types: batch!.text.split("\n").map((line) => JSON.parse(line).type),
			};
		};
		expect(await from()).toEqual({ first: all.length, ended: true, types: ["completed"] });
		expect(await from(all.length)).toEqual({ first: all.length, ended: true, types: ["completed"] });
		expect(await from(0)).toMatchObject({ first: 1, types: all.map(({ type }) => type) });
	});

	test("Z15: the same key gives the same workflow, another body under it is a mistake", async () => {
		const one = rig();
		const first = await one.submit([noop("a")], { idempotencyKey: "k" });
		const again = await one.submit([noop("a")], { idempotencyKey: "k" });
		expect(again.workflow_id).toBe(first.workflow_id);
		await expect(one.submit([noop("b")], { idempotencyKey: "k" })).rejects.toMatchObject({
			reason: "IDEMPOTENCY_CONFLICT",
		});
		expect(await one.workflows.list({ limit: 9 }, owner)).toHaveLength(1);
	});

	test("Z25: an application sees its own workflows only, and agents are the owner's", async () => {
		const one = rig();
		const definition = { nodes: [noop("a")] };
		const mine = await one.workflows.submit({ appId: "", userId: "", definition }, app("notes"));
		expect(mine.app_id).toBe("notes");
		const other = app("mail");
		expect(await one.workflows.find(mine.workflow_id, other)).toBeUndefined();
		expect(await one.workflows.list({ limit: 9 }, other)).toEqual([]);
		await rejectsWith(one.workflows.cancel(mine.workflow_id, "", other), "not_found");
		await rejectsWith(one.workflows.cursor(mine.workflow_id, undefined, other), "not_found");
		await rejectsWith(one.workflows.list({ appId: "notes", limit: 9 }, other), "forbidden");
		await rejectsWith(one.workflows.submit({ appId: "notes", userId: "", definition }, other), "forbidden");
		const agents = { nodes: [agent] };
		await rejectsWith(one.workflows.submit({ appId: "", userId: "", definition: agents }, other), "forbidden");
		expect(await one.workflows.list({ limit: 9 }, owner)).toHaveLength(1);
	});

	test("I11: a list reads no definition and plans nothing", async () => {
		const one = rig();
		const { workflow_id: id } = await one.submit([noop("a"), noop("b", "a")]);
		const { output: _, ...workflow } = await one.ended(id);
		one.run("UPDATE workflow SET definition = 'none'");
		const [listed] = await one.workflows.list({ limit: 10 }, owner);
		expect(listed).toEqual({ ...workflow, nodes: workflow.nodes.map(({ output: _output, ...node }) => node) });
		expect(listed!.nodes.map(({ kind, depends_on }) => [kind, depends_on])).toEqual([
			["CONTROL_NOOP", []],
			["CONTROL_NOOP", ["a"]],
		]);
	});

	test("I11: those that run and those that were listed before are not read again", async () => {
		const one = rig({ script: () => new Promise(() => {}) });
		const { workflow_id: over } = await one.submit([noop("a")]);
		await one.ended(over);
		const { workflow_id: live } = await one.submit([call("a", "x")]);
		await until("it runs", () => one.jobs.submitted.length === 1);
		const first = await one.workflows.list({ limit: 10 }, owner);
		expect(first.map(({ workflow_id }) => workflow_id)).toEqual([live, over]);
		one.run("UPDATE workflow_node SET status = 'none'");
		expect((await one.workflows.list({ limit: 10 }, owner)).map(({ state }) => state)).toEqual([
			"running",
			"completed",
		]);
	});

	test("a workflow of an older version is listed, too", async () => {
		const one = rig();
		const { workflow_id: id } = await one.submit([noop("a"), noop("b", "a")]);
		await one.ended(id);
		one.run("UPDATE workflow_node SET shape = NULL");
		const [listed] = await one.workflows.list({ limit: 10 }, owner);
		expect(listed!.nodes.map(({ kind, depends_on }) => [kind, depends_on])).toEqual([
			["CONTROL_NOOP", []],
			["CONTROL_NOOP", ["a"]],
		]);
	});

	test("as many run as may; the next one waits, is reported as waiting, and begins when there is room", async () => {
		const gate = Promise.withResolvers<object>();
		const one = rig({ script: () => gate.promise, limits: { workflowsRunningMax: 1, workflowsWaitingMax: 1 } });
		const first = await one.submit([call("a", "x")]);
		const second = await one.submit([noop("a")]);
		expect([first.state, second.state]).toEqual(["accepted", "queued"]);
		expect(one.workflows.counts).toEqual({ running: 1, waiting: 1 });
		await rejectsWith(one.submit([noop("a")]), "busy");
		gate.resolve({ text: "" });
		expect((await one.ended(second.workflow_id)).state).toBe("completed");
	});

	test("I11: many at once are no more than may run and wait", async () => {
		const one = rig({
			script: () => new Promise(() => {}),
			limits: { workflowsRunningMax: 1, workflowsWaitingMax: 1 },
		});
		const made = await Promise.allSettled(Array.from({ length: 5 }, () => one.submit([call("a", "x")])));
		expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
		expect(one.workflows.counts).toEqual({ running: 1, waiting: 1 });
	});

	test("closing starts nothing more, leaves the workflow as it is, and takes no further one", async () => {
		const gate = Promise.withResolvers<object>();
		const one = rig({ script: () => gate.promise });
		const { workflow_id: id } = await one.submit([call("a", "x"), noop("b", "a")]);
		await until("it runs", () => one.jobs.all.size === 1);
		const closing = one.workflows.close(10_000);
		await rejectsWith(one.submit([noop("a")]), "unavailable", "STOPPING");
		gate.resolve({ text: "done" });
		await closing;
		const workflow = await one.get(id);
		expect(workflow.state).toBe("running");
		expect(states(workflow)).toEqual({ a: "completed", b: "queued" });
	});
});

test("Z6: one that is taken in while the daemon stops is on record and not begun", async () => {
	const one = rig({ script: () => new Promise(() => {}) });
	const [created, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
	const create = one.bus.create.bind(one.bus);
	one.bus.create = async (...args) => {
		created.resolve();
		await gate.promise;
		return create(...args);
	};
	const submitting = one.submit([call("a", "x")]);
	await created.promise;
	await one.workflows.close(0);
	gate.resolve();
	const { workflow_id: id } = await submitting;
	expect(one.workflows.counts).toEqual({ running: 0, waiting: 0 });
	expect((await one.get(id)).state).toBe("accepted");
});

test("what another daemon runs is its own: it is neither taken over nor cancelled here", async () => {
	const path = tempFile();
	const gate = Promise.withResolvers<object>();
	const one = rig({ path, shared: true, script: () => gate.promise });
	const two = rig({ path, shared: true });
	const { workflow_id: id } = await one.submit([call("a", "x")]);
	await until("it runs", () => one.jobs.all.size === 1);
	expect(await two.workflows.recover()).toBe(0);
	await rejectsWith(two.workflows.cancel(id, "", owner), "unavailable");
	gate.resolve({ text: "" });
	expect((await one.ended(id)).state).toBe("completed");
});

describe("the submitter", () => {
	const definition = { nodes: [noop("a")] };
	const submit = (headers: Record<string, string>, userId = "") =>
		rig().workflows.submit({ appId: "notes", userId, definition, metadata: (name) => headers[name] }, owner);

	test("Z10: is the subject of the user token, or the owner", async () => {
		expect((await submit({})).user_id).toBe("owner");
		expect((await submit({}, "ann")).user_id).toBe("ann");
		expect((await submit({ "x-nexus-user-token": "token of bob" })).user_id).toBe("bob");
		const other = submit({ "x-nexus-user-token": "token of bob" }, "ann");
		await rejectsWith(other, "forbidden");
	});

	test("Z26: sends no credentials, because they could not survive a restart", async () => {
		for (const headers of [{ "x-nexus-provider-api-key": "sk" }, { "x-nexus-key-source": "inline" }])
			await expect(submit(headers as never)).rejects.toMatchObject({
				code: "precondition",
				reason: "AI_REQUEST_CREDENTIAL_CONFLICT",
				message: expect.not.stringContaining("sk"),
			});
	});
});

describe("Z18: after kill -9 a workflow continues", () => {
	test("completed nodes never run again, waiting ones continue, and a call that was running has crashed", async () => {
		const script: JobScript = (_, { spec }) =>
			spec.kind === "text" && spec.messages[0]!.text === "hang" ? new Promise(() => {}) : { text: "ok" };
		const one = rig({ script, path: tempFile() });
		const { workflow_id: id } = await one.submit([
			call("done", "x"),
			call("lost", "hang"),
			call("retried", "hang", { retry_max_attempts: 2, retry_backoff_ms: 1 }),
			noop("after-done", "done"),
			noop("after-lost", "lost"),
		]);
		const running = async () => states(await one.get(id));
		await until("it is in the middle", async () => {
			const { done, lost, retried } = await running();
			return done === "completed" && lost === "running" && retried === "running";
		});
		expect(one.jobs.submitted).toHaveLength(3);
		expect(await one.restart()).toBe(1);
		await until("the retry runs and the others have ended", async () => {
			const { lost, retried } = await running();
			return one.jobs.submitted.length === 4 && lost === "failed" && retried === "running";
		});
		const workflow = await one.get(id);
		expect(states(workflow)).toEqual({
			done: "completed",
			lost: "failed",
			retried: "running",
			"after-done": "completed",
			"after-lost": "skipped",
		});
		const byId = Object.fromEntries(workflow.nodes.map((node) => [node.node_id, node]));
		expect(byId.lost).toMatchObject({ attempt: 1, error: { code: "crashed" } });
		expect(byId.retried).toMatchObject({ attempt: 2, after_crash: true });
		expect(byId.done).toMatchObject({ attempt: 1, output: { text: "ok" } });
		await one.workflows.cancel(id, "", owner);
	});

	test("what had completed outside before the kill is taken over, not repeated", async () => {
		const one = rig({ path: tempFile() });
		const { workflow_id: id } = await one.submit([agent]);
		await until("its run is reported", async () => (await one.get(id)).nodes[0]!.run_id === "run_1");
		const restarted = one.restart();
		one.agents.outcomes.get("run_1")!.resolve({ status: "completed", text: "late" });
		await restarted;
		expect((await one.ended(id)).nodes[0]).toMatchObject({ state: "completed", output: { text: "late" }, attempt: 1 });
		expect(one.agents.turns).toHaveLength(1);
	});

	test("a script runs again, flagged; one that waited for its turn begins", async () => {
		const one = rig({ path: tempFile(), limits: { workflowsRunningMax: 1 } });
		const { workflow_id: first } = await one.submit([script("for (;;);", { timeout_ms: 400 })]);
		const { workflow_id: second } = await one.submit([noop("a")]);
		await until("the script runs", async () => (await one.get(first)).nodes[0]!.state === "running");
		expect(await one.restart()).toBe(2);
		expect((await one.ended(first)).nodes[0]).toMatchObject({
			after_crash: true,
			attempt: 1,
			error: { code: "timeout" },
		});
		expect((await one.ended(second)).state).toBe("completed");
	});

	test("P5.8: a script that an orderly stop cut off runs again, and no crash is made of it", async () => {
		const one = rig({ path: tempFile() });
		const { workflow_id: id } = await one.submit([script("for (;;);")]);
		const node = async () => (await one.get(id)).nodes[0]!;
		await until("the script runs", async () => (await node()).state === "running");
		await one.workflows.close(0);
		await one.bus.close();
		expect(await one.restart()).toBe(1);
		// Taken in order: it has run again before it is cancelled.
		await one.workflows.cancel(id, "", owner);
		const ended = (await one.ended(id)).nodes[0];
		expect(ended).toMatchObject({ state: "canceled", attempt: 1 });
		expect(ended?.after_crash).toBeUndefined();
	});
});

test("I11: one application's workflows leave room for those of others, which go first when it has had its share", async () => {
	const ends = new Map<string, () => void>();
	const script: JobScript = (job) =>
		new Promise((resolve) => ends.set(job.appId + ends.size, () => resolve({ text: "done" })));
	const limits = { workflowsRunningMax: 2, workflowsRunningPerAppMax: 1, workflowsWaitingPerAppMax: 1 };
	const one = rig({ script, limits });
	const submit = async (appId: string) => (await one.submit([call("a", "hello")], { appId })).workflow_id;
	const [shop, waits, till] = [await submit("shop"), await submit("shop"), await submit("till")];
	await rejectsWith(submit("shop"), "busy");
	expect(one.workflows.counts).toEqual({ waiting: 1, running: 2 });
	await until("two calls", () => ends.size === 2);
	for (const [name, end] of ends) if (name.startsWith("till")) end();
	await one.ended(till);
	// There is room, but the application that waits has its share.
	expect((await one.get(waits)).state).toBe("queued");
	for (const end of ends.values()) end();
	await one.ended(shop);
	await until("the call of the one that waited", () => ends.size === 3);
	for (const end of ends.values()) end();
	expect(await one.ended(waits)).toMatchObject({ state: "completed" });
});
