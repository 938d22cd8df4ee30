/** What the runtime contract offers beside sessions: scenarios, jobs, workflows, connectors, applications, feeds. The door of this folder. */
export type { PlatformStatus } from "./accounts/platform-state.ts";
export * from "./accounts/port.ts";
export { createAccountSessions } from "./accounts/sessions.ts";
export { createApplications } from "./apps/applications.ts";
export { type ClearApp, createClearing } from "./apps/clearing.ts";
export { createAppMessages } from "./apps/messages.ts";
export * from "./apps/port.ts";
export { createArtifacts } from "./artifacts/artifacts.ts";
export { ARTIFACT_LIMITS, type ArtifactLimits, PIECE_BYTES_MAX } from "./artifacts/limits.ts";
export * from "./artifacts/port.ts";
export * from "./audit/agents.ts";
export * from "./audit/events.ts";
export * from "./audit/export.ts";
export * from "./audit/log.ts";
export { createTelling } from "./audit/mappers.ts";
export * from "./audit/port.ts";
export * from "./audit/record.ts";
export {
	type ConfiguredAnswerer,
	type ConnectorDeps,
	createConnectors,
	defaultModelOf,
	type SecretKey,
} from "./connectors/connectors.ts";
export * from "./connectors/port.ts";
export { createRuntimeHealth } from "./health/health.ts";
export * from "./health/port.ts";
export { createJobs, type JobsDeps } from "./jobs/jobs.ts";
export { JOB_LIMITS, type JobLimits } from "./jobs/limits.ts";
export * from "./jobs/port.ts";
export * from "./notices/notices.ts";
export * from "./notices/topics.ts";
export * from "./once.ts";
export * from "./principal.ts";
export * from "./quota.ts";
export * from "./realtime/port.ts";
export * from "./realtime/realtime.ts";
export * from "./scenarios/port.ts";
export { createScenarios, type ScenariosOptions } from "./scenarios/scenarios.ts";
export { type UserTokenConfig, userTokens, type VerifyUserToken } from "./scenarios/user-token.ts";
export * from "./signins/port.ts";
export { createSignIns } from "./signins/register.ts";
export * from "./workflows/port.ts";
export { createWorkflows } from "./workflows/workflows.ts";

import type { AccountSessions } from "./accounts/port.ts";
import type { ClearApp } from "./apps/clearing.ts";
import type { Applications, AppMessages } from "./apps/port.ts";
import type { Artifacts } from "./artifacts/port.ts";
import type { AuditLog } from "./audit/log.ts";
import type { Connectors } from "./connectors/port.ts";
import type { RuntimeHealthFeed } from "./health/port.ts";
import type { Jobs } from "./jobs/port.ts";
import type { NoticeLogs } from "./notices/notices.ts";
import type { Quota } from "./quota.ts";
import type { Realtime } from "./realtime/port.ts";
import type { Scenarios } from "./scenarios/port.ts";
import type { SignInRegister } from "./signins/port.ts";
import type { Workflows } from "./workflows/port.ts";

/** All of them, as the edge sees them. */
export interface Services {
	readonly connectors: Connectors;
	readonly scenarios: Scenarios;
	readonly artifacts: Artifacts;
	readonly jobs: Jobs;
	readonly realtime: Realtime;
	readonly workflows: Workflows;
	readonly audit: AuditLog;
	/** Endless logs: events of agents, of memory and for applications. */
	readonly notices: NoticeLogs;
	readonly apps: Applications;
	/** What each of them stores. */
	readonly quota: Quota;
	readonly clearApp: ClearApp;
	readonly appMessages: AppMessages;
	readonly signIns: SignInRegister;
	readonly accounts: AccountSessions;
	readonly health: RuntimeHealthFeed;
}
