/** Jobs on a real store, with a provider that the test plays. */

import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Bus } from "../../packages/daemon/src/bus/bus.ts";
import type { ArtifactInfo, Artifacts } from "../../packages/daemon/src/services/artifacts/port.ts";
import type { Provider } from "../../packages/daemon/src/services/connectors/port.ts";
import { createJobs, type JobsDeps } from "../../packages/daemon/src/services/jobs/jobs.ts";
import type { Job, JobEvent, JobLimits } from "../../packages/daemon/src/services/jobs/port.ts";
import type {
	AdmittedScenario,
	ScenarioOutcome,
	ScenarioSpec,
} from "../../packages/daemon/src/services/scenarios/port.ts";
import type { Clock } from "../../packages/protocol/src/clock.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { freshFolder } from "../runtime/folder.ts";
import { storeForTest } from "../store.ts";
import { connectorOf, durableParts, OWNER } from "./parts.ts";

export { appPrincipal, OWNER } from "./parts.ts";

const CONNECTOR = connectorOf("main");

export const admittedOf = (
	spec: Partial<ScenarioSpec> = {},
	fields: Partial<AdmittedScenario> = {},
): AdmittedScenario => ({
	appId: "app",
	userId: "user",
	spec: { kind: "embed", inputs: ["a"], ...spec } as ScenarioSpec,
	model: "model",
	timeoutMs: 20_000,
	source: { connector: CONNECTOR },
	provider: {} as Provider,
	...fields,
});

/** A call of the provider that the test answers. */
export interface Call {
	inputs: readonly string[];
	signal: AbortSignal;
	answer(): void;
	fail(error: Error): void;
}

export interface RigOptions {
	path?: string;
	dies?: boolean;
	/** Other daemons use the store, too. */
	shared?: boolean;
	clock?: Clock;
	limits?: Partial<JobLimits>;
	deps?: Partial<JobsDeps>;
}

export function jobsRig({ path, dies, shared, clock, limits, deps }: RigOptions = {}) {
	const store = storeForTest({ path, dies, shared: shared || undefined });
	const calls: Call[] = [];
	const stored: { info: ArtifactInfo; data: Uint8Array }[] = [];
	const provider = {
		demo: false,
		embed({ inputs }, signal) {
			const { promise, resolve, reject } = Promise.withResolvers<Awaited<ReturnType<Provider["embed"]>>>();
			const answer = () => resolve({ vectors: inputs.map((text) => [text.length]), inputTokens: inputs.length });
			calls.push({ inputs, signal, answer, fail: reject });
			signal.addEventListener("abort", () => reject(signal.reason as Error));
			return promise;
		},
	} as Provider;
	const artifacts: Pick<Artifacts, "store" | "whole"> = {
		async store({ appId, name, mimeType }, data) {
			const info = {
				id: `art_${stored.length}`,
				appId,
				name,
				mimeType,
				sizeBytes: 1,
				createdAt: 1,
				expiresAt: 2,
				complete: true,
			};
			stored.push({ info, data: data as Uint8Array });
			return info;
		},
		async whole(id) {
			throw new NexusError("not_found", `there is no artifact ${id}`);
		},
	};
	const jobs = createJobs({
		...durableParts(store, clock),
		scenarios: playedScenarios(provider),
		artifacts,
		limits,
		...deps,
	});
	onTestFinished(async () => {
		if (!dies) await jobs.close(0);
	});
	return {
		...store,
		jobs,
		calls,
		stored,
		events: (id: string) => eventsOf(store.bus, id),
		get: async (id: string): Promise<Job> => (await jobs.find(id, OWNER))!,
	};
}

/** Admits everything again with this provider; has no runs. */
export const playedScenarios = (provider: Provider): JobsDeps["scenarios"] => ({
	start: () => Promise.reject(new Error("not played")),
	readmit: async ({ connector: _, ...stored }) => ({ ...stored, source: { connector: CONNECTOR }, provider }),
	textSoFar: async () => undefined,
});

export async function eventsOf(bus: Bus, id: string): Promise<JobEvent[]> {
	const cursor = await bus.cursor({ log: id }, 0);
	const events: JobEvent[] = [];
	for (let batch = await cursor.next(); batch; batch = await cursor.next())
		events.push(...batch.records.map((record) => JSON.parse(record) as JobEvent));
	cursor.close();
	return events;
}

/** Without progress, which a slow machine has more of. */
export const typesOf = (events: readonly JobEvent[]) =>
	events.map(({ type }) => type).filter((type) => type !== "progress");

export const tempPath = () => join(freshFolder(), "nexus.db");

export const outcomeOf = (fields: Partial<ScenarioOutcome> = {}): ScenarioOutcome => ({
	status: "completed",
	text: "",
	usage: { input: 1, output: 2 },
	...fields,
});
