/** What the runtime contract offers beside sessions: scenarios, jobs, workflows, connectors, applications, feeds. The door of this folder. */
export { createArtifacts } from "./artifacts/artifacts.ts";
export { ARTIFACT_LIMITS, type ArtifactLimits, PIECE_BYTES_MAX } from "./artifacts/limits.ts";
export * from "./artifacts/port.ts";
export * from "./audit/agents.ts";
export * from "./audit/events.ts";
export * from "./audit/export.ts";
export * from "./audit/log.ts";
export * from "./audit/port.ts";
export * from "./audit/record.ts";
export { createTelling } from "./audit/telling.ts";
export {
	type ConfiguredAnswerer,
	type ConnectorDeps,
	createConnectors,
	modelFor,
	type SecretKey,
} from "./connectors/connectors.ts";
export * from "./connectors/port.ts";
export { createJobs, type JobsDeps } from "./jobs/jobs.ts";
export { JOB_LIMITS, type JobLimits } from "./jobs/limits.ts";
export * from "./jobs/port.ts";
export * from "./notices/notices.ts";
export * from "./notices/topics.ts";
export * from "./once.ts";
export * from "./principal.ts";
export * from "./scenarios/port.ts";
export { createScenarios, type ScenariosOptions } from "./scenarios/scenarios.ts";
export { type UserTokenConfig, userTokens, type VerifyUserToken } from "./scenarios/user-token.ts";
export * from "./workflows/port.ts";
export { createWorkflows, type WorkflowsDeps } from "./workflows/workflows.ts";

import type { Artifacts } from "./artifacts/port.ts";
import type { AuditLog } from "./audit/log.ts";
import type { Connectors } from "./connectors/port.ts";
import type { Jobs } from "./jobs/port.ts";
import type { NoticeLogs } from "./notices/notices.ts";
import type { Scenarios } from "./scenarios/port.ts";
import type { Workflows } from "./workflows/port.ts";

/** All of them, as the edge sees them. */
export interface Services {
	readonly connectors: Connectors;
	readonly scenarios: Scenarios;
	readonly artifacts: Artifacts;
	readonly jobs: Jobs;
	readonly audit: AuditLog;
	/** Endless logs: events of agents, of memory and for applications. */
	readonly notices: NoticeLogs;
	readonly workflows: Workflows;
}
