/** Jobs and agents that do what the test says, on the store that the workflows are on. */

import { type Bus, follow, type LogWriter } from "../../../packages/daemon/src/bus/bus.ts";
import type { ConnectorInfo, Provider } from "../../../packages/daemon/src/services/connectors/port.ts";
import type { Job, JobEvent, Jobs } from "../../../packages/daemon/src/services/jobs/port.ts";
import type { AdmittedScenario, ScenarioRequest } from "../../../packages/daemon/src/services/scenarios/port.ts";
import type {
	AgentOutcome,
	AgentTurns,
	WorkflowNodeJson,
} from "../../../packages/daemon/src/services/workflows/port.ts";
import { NexusError, newId } from "../../../packages/protocol/src/protocol.ts";

export { appPrincipal as app, OWNER as owner } from "../parts.ts";

export const noop = (id: string, ...depends_on: string[]): WorkflowNodeJson => ({
	id,
	kind: "CONTROL_NOOP",
	depends_on,
});

/** The outcome of a job, by its request. */
export type JobScript = (job: Job, request: AdmittedScenario) => Promise<Partial<Job>> | Partial<Job>;

/** The test ended before its jobs. */
const storeClosed = (cause: unknown) => {
	if (!(cause instanceof NexusError) || cause.code !== "unavailable") throw cause;
};

export interface FakeJobs extends Pick<Jobs, "submit" | "find" | "cancel" | "cursor" | "settled"> {
	readonly all: Map<string, Job>;
	readonly submitted: AdmittedScenario[];
	readonly canceled: string[];
	/** A daemon that died while these ran: they end as crashed. */
	crash(): void;
}

export function fakeJobs(bus: () => Bus, script: JobScript): FakeJobs {
	const all = new Map<string, Job>();
	const keys = new Map<string, string>();
	const logs = new Map<string, LogWriter>();
	const settling = new Map<string, PromiseWithResolvers<Job>>();
	const submitted: AdmittedScenario[] = [];
	const canceled: string[] = [];
	const change = (id: string, type: JobEvent["type"], fields: Partial<Job>, last = false) => {
		const job = { ...all.get(id)!, ...fields };
		all.set(id, job);
		const record = JSON.stringify({ type, at: 1, job } satisfies JobEvent);
		if (!last) return logs.get(id)!.append(record);
		void logs.get(id)!.seal([record]).catch(storeClosed);
		settling.get(id)!.resolve(job);
	};
	const isLive = (id: string) => ["queued", "running"].includes(all.get(id)!.state);
	const run = async (id: string, request: AdmittedScenario) => {
		const runId = request.spec.kind === "text" ? { runId: `run_of_${id}` } : {};
		change(id, "running", { state: "running", ...runId });
		const result = await script(all.get(id)!, request);
		if (!isLive(id)) return;
		const state = result.state ?? "completed";
		change(id, state === "completed" ? "completed" : "failed", { ...result, state }, true);
	};
	return {
		all,
		submitted,
		canceled,
		async submit(request, { idempotencyKey = "", workflow } = {}) {
			const known = keys.get(idempotencyKey);
			if (known) return all.get(known)!;
			const { appId, userId, spec, model } = request;
			const job: Job = {
				id: newId("job"),
				appId,
				userId,
				kind: spec.kind,
				connectorId: "default",
				model,
				state: "queued",
				progress: -1,
				attempt: 1,
				attemptsMax: 1,
				backoffMs: 0,
				afterCrash: false,
				queuePosition: 0,
				createdAt: 1,
				updatedAt: 1,
				artifacts: [],
				demo: true,
				...workflow,
			};
			all.set(job.id, job);
			keys.set(idempotencyKey, job.id);
			submitted.push(request);
			settling.set(job.id, Promise.withResolvers());
			const record = JSON.stringify({ type: "queued", at: 1, job } satisfies JobEvent);
			logs.set(job.id, await bus().create({ log: job.id, kind: "job" }, [record]));
			run(job.id, request).catch(storeClosed);
			return job;
		},
		find: async (id) => all.get(id),
		async cancel(id) {
			canceled.push(id);
			if (isLive(id)) change(id, "canceled", { state: "canceled" }, true);
			return all.get(id)!;
		},
		async cursor(id, after) {
			const { head } = (await bus().describe(id))!;
			return bus().cursor({ log: id }, after ?? head - 1);
		},
		settled: (id) => settling.get(id)!.promise,
		crash() {
			for (const [id, job] of all) {
				if (!isLive(id)) continue;
				const error = { code: "crashed", message: "the daemon died while it ran" };
				const ended: Job = { ...job, state: "failed", error };
				all.set(id, ended);
				settling.get(id)!.resolve(ended);
			}
		},
	};
}

/** Ends the logs of jobs that `crash` has settled, on the store as it is now. */
export async function endLeftJobs(bus: Bus, { all }: FakeJobs): Promise<void> {
	for (const { log } of await bus.list({ kind: "job", orphaned: true })) {
		const writer = await bus.reopen(log);
		await writer.seal([JSON.stringify({ type: "failed", at: 1, job: all.get(log)! } satisfies JobEvent)]);
	}
}

/** Admits everything with a connector that has the name that is asked for. */
export const fakeScenarios = {
	async admit({ head, spec, durable }: ScenarioRequest): Promise<AdmittedScenario> {
		if (!durable) throw new Error("a workflow's call has to be durable");
		if (head.connectorId === "missing")
			throw new NexusError("not_found", "there is no connector missing", { reason: "AI_CONNECTOR_NOT_FOUND" });
		return {
			appId: head.appId,
			userId: head.userId,
			spec,
			model: head.model ?? "demo",
			timeoutMs: head.timeoutMs ?? 1,
			source: { connector: { id: head.connectorId ?? "" } as never },
			provider: {} as Provider,
		};
	},
};

/** Has every connector but one. */
export const fakeConnectors = {
	find: async (id: string) => (id === "missing" ? undefined : ({ id } as ConnectorInfo)),
};

export interface FakeAgents extends AgentTurns {
	readonly turns: { session: string; text: string; idempotencyKey: string }[];
	readonly aborted: string[];
	readonly outcomes: Map<string, PromiseWithResolvers<AgentOutcome>>;
	/** The session is busy until this resolves. */
	busy: Promise<unknown> | undefined;
	/** Messages that waited and were taken back. */
	readonly takenBack: string[];
}

export function fakeAgents(): FakeAgents {
	const turns: FakeAgents["turns"] = [];
	const aborted: string[] = [];
	const outcomes = new Map<string, PromiseWithResolvers<AgentOutcome>>();
	const abort = async (runId: string) => {
		aborted.push(runId);
		outcomes.get(runId)!.resolve({ status: "aborted", text: "", error: { code: "aborted", message: "stopped" } });
	};
	const takenBack: string[] = [];
	return {
		turns,
		aborted,
		outcomes,
		takenBack,
		busy: undefined,
		async start(turn) {
			turns.push(turn);
			const runId = `run_${turns.length}`;
			const outcome = Promise.withResolvers<AgentOutcome>();
			outcomes.set(runId, outcome);
			let isWaiting = this.busy !== undefined;
			const begun = Promise.resolve(this.busy).then(() => {
				isWaiting = false;
				return runId;
			});
			const stop = async () => {
				if (isWaiting) takenBack.push(turn.idempotencyKey);
				else await abort(runId);
			};
			return { begun, outcome: outcome.promise, stop };
		},
		outcomeOf: async (runId) => outcomes.get(runId)?.promise,
		abort,
	};
}

/** All records of a log, as JSON, to its end or to what is there when the signal aborts. */
export async function records<T>(bus: Bus, log: string): Promise<T[]> {
	const found: T[] = [];
	for await (const batch of follow(await bus.cursor({ log }, 0)))
		found.push(...batch.text.split("\n").map((line) => JSON.parse(line) as T));
	return found;
}
