/** All services of the runtime contract, as the edge sees them. */

import type { AccountSessions } from "./accounts/port.ts";
import type { ClearApp } from "./apps/clearing.ts";
import type { Applications, AppMessages } from "./apps/port.ts";
import type { Artifacts } from "./artifacts/port.ts";
import type { AuditLog } from "./audit/audit.ts";
import type { NoticeLogs } from "./audit/notices.ts";
import type { Connectors } from "./connectors/port.ts";
import type { RuntimeHealthFeed } from "./health/port.ts";
import type { Jobs } from "./jobs/port.ts";
import type { Quota } from "./kit/quota.ts";
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
