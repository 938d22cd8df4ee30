/** The tables of the services, one line per table. They are opened with those of the Ledger, in the same file. */

import type { AppRows, ReceiptRows } from "../../services/apps/rows.ts";
import { appsTable, receiptsTable } from "../../services/apps/rows-sql.ts";
import type { ArtifactRows } from "../../services/artifacts/rows.ts";
import { artifactsTable } from "../../services/artifacts/rows-sql.ts";
import type { NoticeRows } from "../../services/audit/rows.ts";
import { noticesInPostgres } from "../../services/audit/rows-postgres.ts";
import { noticesInSqlite } from "../../services/audit/rows-sqlite.ts";
import type { ConnectorRows } from "../../services/connectors/rows.ts";
import { connectorsTable } from "../../services/connectors/rows-sql.ts";
import type { JobRows } from "../../services/jobs/rows.ts";
import { jobsTable } from "../../services/jobs/rows-sql.ts";
import type { IdempotencyRows } from "../../services/kit/rows.ts";
import { idempotencyTable } from "../../services/kit/rows-sql.ts";
import type { MemoryRows } from "../../services/memory/rows.ts";
import { memoryTable } from "../../services/memory/rows-sql.ts";
import { searchInPostgres } from "../../services/memory/search-postgres.ts";
import { searchInSqlite } from "../../services/memory/search-sqlite.ts";
import type { SignInRows } from "../../services/signins/rows.ts";
import { signInsTable } from "../../services/signins/rows-sql.ts";
import type { WorkflowRows } from "../../services/workflows/rows.ts";
import { workflowsTable } from "../../services/workflows/rows-sql.ts";
import type { Postgres } from "../../std/postgres/postgres.ts";
import type { SqliteFile } from "../../std/sqlite/sqlite.ts";
import { openTables } from "../../std/sqlite/tables.ts";

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

/** One text for every database. */
const COMMON_TABLES = {
	apps: appsTable,
	signins: signInsTable,
	receipts: receiptsTable,
	workflows: workflowsTable,
	artifacts: artifactsTable,
	jobs: jobsTable,
	idempotency: idempotencyTable,
	connectors: connectorsTable,
};

export const SQLITE_SERVICE_TABLES = {
	...COMMON_TABLES,
	memory: memoryTable(searchInSqlite),
	notices: noticesInSqlite,
};

export const serviceRows = (file: SqliteFile): ServiceRows => openTables<ServiceRows>(file, SQLITE_SERVICE_TABLES);

export const postgresServiceTables = (postgres: Pick<Postgres, "reads" | "side">) => ({
	...COMMON_TABLES,
	memory: memoryTable(searchInPostgres),
	notices: noticesInPostgres(postgres),
});
