/** Nodes that take their time: a model call is a job, an agent's turn a run of its session, a script a thread. */

import { NexusError } from "@nexus-stream/protocol";
import { follow } from "../../../bus/bus.ts";
import { defined } from "../../../std/defined.ts";
import type { Job, JobEvent, Jobs } from "../../jobs/port.ts";
import { jobEventOf } from "../../jobs/snapshot.ts";
import { recordedError } from "../../kit/durable-work.ts";
import type { Principal } from "../../kit/principal.ts";
import type { ScenarioSpec, Scenarios } from "../../scenarios/port.ts";
import type { PlannedNode } from "../plan.ts";
import type { AgentTurn, AgentTurns } from "../port.ts";
import type { NodeRun } from "../run/run-state.ts";
import type { NodeOutput } from "../run/status.ts";
import type { NodeReport } from "../run/step.ts";
import { fill, fillAll, newRoom, type Scope } from "./expressions.ts";
import type { WorkflowNodeKind } from "./kinds.ts";
import type { Scripts } from "./script.ts";

export interface PerformDeps {
	scenarios: Pick<Scenarios, "admit">;
	jobs: Pick<Jobs, "submit" | "find" | "cancel" | "cursor" | "settled">;
	agents: AgentTurns;
	scripts(): Promise<Scripts>;
}

export interface NodeAttempt {
	workflowId: string;
	appId: string;
	userId: string;
	principal: Principal;
	node: PlannedNode;
	/** As it was when the attempt began, or when the daemon died in the middle of it. */
	run: NodeRun;
	again: boolean;
	scope: Scope;
	/** Aborted with `LEAVE`: the daemon stops listening, and the work under way continues. With another reason it has to stop. */
	signal: AbortSignal;
	report(report: NodeReport): void;
}

/** Abort reason when the daemon stops: jobs and runs continue, and are looked up at the next start. */
export const LEAVE = Symbol("leave");

/** Resolves with its output; rejects with a NexusError, whose code says whether another attempt may help. */
export async function perform(deps: PerformDeps, attempt: NodeAttempt): Promise<NodeOutput> {
	const { node } = attempt;
	switch (node.kind) {
		case "AGENT_RUN":
			return runAgent(deps.agents, attempt, node.config);
		case "TRANSFORM_SCRIPT": {
			const scripts = await deps.scripts();
			const { appId, scope: inputs, signal } = attempt;
			const value = await scripts.run({ appId, code: node.config.code, inputs, deadlineMs: node.timeoutMs }, signal);
			return isObject(value) ? value : { value };
		}
		default:
			return runJob(deps, attempt);
	}
}

const isObject = (value: unknown): value is NodeOutput =>
	typeof value === "object" && value !== null && !Array.isArray(value);

/** The same for the same attempt: a repeated request gets the result of the first one. */
const keyOf = ({ workflowId, node, run }: NodeAttempt): string => `workflow/${workflowId}/${node.id}/${run.attempt}`;

async function runJob(deps: PerformDeps, attempt: NodeAttempt): Promise<NodeOutput> {
	const { jobs } = deps;
	const { principal, signal, report } = attempt;
	const job = await jobOf(deps, attempt);
	report({ type: "submitted", jobId: job.id });
	// Only the end shows whether the cancellation came in time: until then the job may still complete.
	const cancel = () => jobs.cancel(job.id, "the workflow does not need it any more", principal);
	return stoppable(signal, cancel, async () => {
		signal.throwIfAborted();
		const cursor = await jobs.cursor(job.id, undefined, principal);
		for await (const batch of follow(cursor, signal))
			for (const record of batch.records) tell(jobEventOf(record), attempt);
		signal.throwIfAborted();
		return outputOf(await jobs.settled(job.id));
	});
}

/** Calls `stop` when the attempt has to stop while it works; not when the daemon only stops listening. */
async function stoppable<T>(signal: AbortSignal, stop: () => Promise<unknown>, work: () => Promise<T>): Promise<T> {
	const stopped = () => {
		if (signal.reason !== LEAVE) stop().catch(() => {});
	};
	signal.addEventListener("abort", stopped, { once: true });
	if (signal.aborted) stopped();
	try {
		return await work();
	} finally {
		signal.removeEventListener("abort", stopped);
	}
}

/** Looks up a job that was submitted before the daemon died, and submits one only if none can have begun. */
async function jobOf({ jobs, scenarios }: PerformDeps, attempt: NodeAttempt): Promise<Job> {
	const { again, run, node, scope, principal, appId, userId, workflowId } = attempt;
	if (again && run.jobId !== undefined) {
		const known = await jobs.find(run.jobId, principal);
		if (known) return known;
		throw new NexusError("crashed", "the daemon died while it ran, and its job is gone");
	}
	const { spec, connectorId, model } = callOf(node, scope);
	const { timeoutMs } = node;
	const admitted = await scenarios.admit(
		{
			head: { appId, userId, connectorId, model, timeoutMs: timeoutMs > 0 ? timeoutMs : undefined },
			spec,
			metadata: () => undefined,
			durable: true,
			timeoutMsMax: timeoutMs > 0 ? timeoutMs : undefined,
		},
		principal,
	);
	return jobs.submit(admitted, { idempotencyKey: keyOf(attempt), workflow: { workflowId, nodeId: node.id } });
}

/** Texts and speech can be read while they come. */
const HAS_RUN: ReadonlySet<WorkflowNodeKind> = new Set(["AI_GENERATE", "AI_STREAM", "AI_TTS"] as const);

function tell({ job }: JobEvent, { node, report }: NodeAttempt): void {
	// A reader that sees the node start can read its text: report the start only when the run is known (Z17).
	if (job.state !== "running" || (HAS_RUN.has(node.kind) && job.runId === undefined)) return;
	report({ type: "running", jobId: job.id, runId: job.runId });
	if (job.progress >= 0) report({ type: "progress", percent: Math.floor(job.progress) });
}

/** Answers with the configured model where a node names no connector. */
const CONNECTOR = "default";

function callOf(node: PlannedNode, scope: Scope) {
	const room = newRoom();
	const text = (template: string) => fill(template, scope, room);
	const { connector_id: connectorId = CONNECTOR, model } = node.config as { connector_id?: string; model?: string };
	return { spec: specOf(node, text, scope), connectorId: text(connectorId), model: model && text(model) };
}

function specOf(node: PlannedNode, text: (template: string) => string, scope: Scope): ScenarioSpec {
	switch (node.kind) {
		case "AI_GENERATE":
		case "AI_STREAM": {
			const { prompt, messages, system, temperature, max_tokens: maxTokens } = node.config;
			const turns = messages ?? [{ role: "user" as const, text: prompt! }];
			return {
				kind: "text",
				messages: turns.map((turn) => ({ role: turn.role, text: text(turn.text) })),
				system: system === undefined ? undefined : text(system),
				temperature,
				maxTokens,
			};
		}
		case "AI_EMBED": {
			const inputs = fillAll(node.config.inputs, scope);
			return { kind: "embed", inputs: (Array.isArray(inputs) ? inputs : [inputs]).map(asText) };
		}
		case "AI_IMAGE": {
			const { prompt, size, count } = node.config;
			return { kind: "image", prompt: text(prompt), size, count };
		}
		case "AI_TTS": {
			const { text: spoken, voice, mime_type: mimeType } = node.config;
			return { kind: "speech", text: text(spoken), voice, mimeType };
		}
		case "AI_STT": {
			const { artifact_id: artifactId, mime_type: mimeType, language } = node.config;
			return { kind: "transcribe", artifactId: text(artifactId), mimeType, language };
		}
		default:
			throw new NexusError("internal", `${node.kind} calls no model`);
	}
}

const asText = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

function outputOf(job: Job): NodeOutput {
	const { state } = job;
	const code = state === "timeout" ? "timeout" : state === "canceled" ? "aborted" : "engine_failed";
	if (state !== "completed") throw recordedError(job.error, code, `its job ended as ${state}`);
	const { text, embeddings, usage, model } = job;
	const artifacts = job.artifacts.map(({ id, name, mimeType, sizeBytes }) => ({
		artifact_id: id,
		name,
		mime_type: mimeType,
		size_bytes: sizeBytes,
	}));
	return {
		...defined({ text, embeddings }),
		...(artifacts[0] && { artifact_id: artifacts[0].artifact_id, artifacts }),
		...(usage && { usage: { input_tokens: usage.input, output_tokens: usage.output } }),
		model,
		...(job.demo && { demo: true }),
	};
}

async function runAgent(
	agents: AgentTurns,
	attempt: NodeAttempt,
	config: { session: string; text: string },
): Promise<NodeOutput> {
	const { scope, signal, report, run, again } = attempt;
	const turn = again && run.runId !== undefined ? await existingTurn(agents, run.runId) : await begin();
	return stoppable(
		signal,
		() => turn.stop(),
		async () => {
			const runId = await orAborted(turn.begun, signal);
			report({ type: "running", runId });
			const { status, text, error } = await orAborted(turn.outcome, signal);
			if (status === "completed") return { text, run_id: runId };
			throw recordedError(error, "engine_failed", `its run ended as ${status}`);
		},
	);

	function begin() {
		const [session, text] = [fill(config.session, scope), fill(config.text, scope)];
		return agents.start({ session, text, idempotencyKey: keyOf(attempt) });
	}
}

async function existingTurn(agents: AgentTurns, runId: string): Promise<AgentTurn> {
	const outcome = await agents.outcomeOf(runId);
	if (outcome)
		return { begun: Promise.resolve(runId), outcome: Promise.resolve(outcome), stop: () => agents.abort(runId) };
	throw new NexusError("crashed", "the daemon died while it ran");
}

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
	return new Promise((resolve, reject) => {
		const aborted = () => reject(new NexusError("aborted", "stopped"));
		if (signal.aborted) aborted();
		signal.addEventListener("abort", aborted, { once: true });
		work.then(resolve, reject).finally(() => signal.removeEventListener("abort", aborted));
	});
}

/** It would fail in the same way again. */
const FINAL: ReadonlySet<string> = new Set([
	"invalid",
	"unauthenticated",
	"forbidden",
	"not_found",
	"precondition",
	"config",
	"too_large",
	"aborted",
]);

export const isRetryable = ({ code }: NexusError): boolean => !FINAL.has(code);
