/** The services of a daemon, by name: each slice offers one. */

import type { MemoryPort } from "../../engine/engine.ts";
import type { AccountSessions } from "../../services/accounts/accounts.ts";
import type { ClearApp } from "../../services/apps/clearing.ts";
import type { Applications, AppMessages } from "../../services/apps/port.ts";
import type { ArtifactService } from "../../services/artifacts/port.ts";
import type { AuditLog } from "../../services/audit/audit.ts";
import type { NoticeLogs } from "../../services/audit/notices.ts";
import type { ConnectorService } from "../../services/connectors/port.ts";
import type { RuntimeHealthFeed } from "../../services/health/health.ts";
import type { Jobs } from "../../services/jobs/port.ts";
import type { Quota } from "../../services/kit/quota.ts";
import type { Realtime } from "../../services/realtime/port.ts";
import type { Scenarios } from "../../services/scenarios/port.ts";
import type { SignInRegister } from "../../services/signins/port.ts";
import type { Workflows } from "../../services/workflows/port.ts";

/** All services of the runtime contract. */
export interface Services {
	readonly connectors: ConnectorService;
	readonly scenarios: Scenarios;
	readonly artifacts: ArtifactService;
	readonly jobs: Jobs;
	readonly realtime: Realtime;
	readonly workflows: Workflows;
	readonly audit: AuditLog;
	/** Endless logs: events of agents, of memory and for applications. */
	readonly notices: NoticeLogs;
	readonly apps: Applications;
	/** Storage used by each application, and its limit. */
	readonly quota: Quota;
	readonly clearApp: ClearApp;
	readonly appMessages: AppMessages;
	readonly signIns: SignInRegister;
	readonly accounts: AccountSessions;
	readonly health: RuntimeHealthFeed;
	readonly memory: MemoryPort;
}
