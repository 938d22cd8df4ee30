/** Jobs on a real store, with a provider that the test plays. */

import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Bus } from "../../packages/daemon/src/bus/bus.ts";
import type { ArtifactInfo, Artifacts } from "../../packages/daemon/src/services/artifacts/port.ts";
import type { Audit } from "../../packages/daemon/src/services/audit/port.ts";
import type { ConnectorInfo, Provider } from "../../packages/daemon/src/services/connectors/port.ts";
import { createJobs, type JobsDeps } from "../../packages/daemon/src/services/jobs/jobs.ts";
import type { JobLimits } from "../../packages/daemon/src/services/jobs/limits.ts";
import type { Job, JobEvent } from "../../packages/daemon/src/services/jobs/port.ts";
import type { Principal } from "../../packages/daemon/src/services/kit/principal.ts";
import type {
	AdmittedScenario,
	ScenarioOutcome,
	ScenarioSpec,
} from "../../packages/daemon/src/services/scenarios/port.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { freshFolder } from "../runtime/folder.ts";
import { storeForTest } from "../store.ts";

export const OWNER: Principal = { owner: true, address: "127.0.0.1", isPrivate: true };
export const appPrincipal = (appId: string): Principal => ({
	owner: false,
	appId,
	address: "127.0.0.1",
	isPrivate: true,
});

export const CONNECTOR: ConnectorInfo = {
	id: "main",
	providerType: "openai",
	endpoint: "https://models.example",
	enabled: true,
	models: [],
	kinds: ["text", "speech", "image", "embed", "transcribe"],
	createdAt: 1,
	updatedAt: 1,
	builtIn: false,
};

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
	audit?: Audit;
	deps?: Partial<JobsDeps>;
}

export function jobsRig({ path, dies, shared, clock = systemClock, limits, audit, deps }: RigOptions = {}) {
	const store = storeForTest({ path, dies, shared: shared || undefined });
	const calls: Call[] = [];
	const stored: { info: ArtifactInfo; data: Uint8Array }[] = [];
	const connector = { ...CONNECTOR };
	let forbidden: NexusError | undefined;
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
	const all: JobsDeps = {
		bus: store.bus,
		rows: store.rows,
		clock,
		log: silentLog,
		scenarios: {
			start: async () => Promise.reject(new Error("not played")),
			facts: async () => Promise.reject(new Error("not played")),
			provider: async () => provider,
			cursor: async () => Promise.reject(new NexusError("not_found", "no run")),
			abort: () => undefined,
		},
		connectors: {
			find: async () => ({ ...connector }),
			endpointOf: ({ endpoint }) => endpoint,
			async checkEndpoint() {
				if (forbidden) throw forbidden;
			},
		},
		artifacts,
		...(limits && { limits }),
		...(audit && { audit }),
		...deps,
	};
	const jobs = createJobs(all);
	onTestFinished(async () => {
		if (!dies) await jobs.close(0);
	});
	return {
		...store,
		jobs,
		calls,
		stored,
		connector,
		forbid: (error: NexusError | undefined) => {
			forbidden = error;
		},
		events: (id: string) => eventsOf(store.bus, id),
		get: async (id: string): Promise<Job> => (await jobs.find(id, OWNER))!,
	};
}

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
