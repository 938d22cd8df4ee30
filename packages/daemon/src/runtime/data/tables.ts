/** The tables of the services, one line per table. They are opened with those of the Ledger, in the same file. */

import { openTables } from "../../ledger/table.ts";
import type { AppRows, ReceiptRows } from "../../services/apps/rows.ts";
import { appsInSqlite, receiptsInSqlite } from "../../services/apps/rows-sqlite.ts";
import type { ArtifactRows } from "../../services/artifacts/rows.ts";
import { artifactsInSqlite } from "../../services/artifacts/rows-sqlite.ts";
import type { NoticeRows } from "../../services/audit/rows.ts";
import { noticesInSqlite } from "../../services/audit/rows-sqlite.ts";
import type { ConnectorRows } from "../../services/connectors/rows.ts";
import { connectorsInSqlite } from "../../services/connectors/rows-sqlite.ts";
import type { JobRows } from "../../services/jobs/rows.ts";
import { jobsInSqlite } from "../../services/jobs/rows-sqlite.ts";
import type { IdempotencyRows } from "../../services/kit/rows.ts";
import { idempotencyInSqlite } from "../../services/kit/rows-sqlite.ts";
import type { MemoryRows } from "../../services/memory/rows.ts";
import { memoryInSqlite } from "../../services/memory/rows-sqlite.ts";
import type { SignInRows } from "../../services/signins/rows.ts";
import { signInsInSqlite } from "../../services/signins/rows-sqlite.ts";
import type { WorkflowRows } from "../../services/workflows/rows.ts";
import { workflowsInSqlite } from "../../services/workflows/rows-sqlite.ts";
import type { SqliteFile } from "../../std/sqlite.ts";

export interface ServiceRows {
	readonly memory: MemoryRows;
	readonly apps: AppRows;
	readonly signins: SignInRows;
	readonly receipts: ReceiptRows;
	readonly workflows: WorkflowRows;
	readonly artifacts: ArtifactRows;
	readonly jobs: JobRows;
	readonly idempotency: IdempotencyRows;
	readonly connectors: ConnectorRows;
	readonly notices: NoticeRows;
}

export const SERVICE_TABLES = {
	memory: memoryInSqlite,
	apps: appsInSqlite,
	signins: signInsInSqlite,
	receipts: receiptsInSqlite,
	workflows: workflowsInSqlite,
	artifacts: artifactsInSqlite,
	jobs: jobsInSqlite,
	idempotency: idempotencyInSqlite,
	connectors: connectorsInSqlite,
	notices: noticesInSqlite,
};

export const serviceRows = (file: SqliteFile): ServiceRows => openTables<ServiceRows>(file, SERVICE_TABLES);
