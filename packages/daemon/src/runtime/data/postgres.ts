/** Everything that is stored, in a PostgreSQL database: the Bus, the Ledger and the rows of the services. */

import type { Log } from "@nexus-stream/protocol/log";
import { postgresBus, type Storage } from "../../bus/bus.ts";
import { type Ledger, ledgerAnswers, TABLES } from "../../ledger/ledger.ts";
import type { Postgres, PostgresOptions } from "../../std/postgres/postgres.ts";
import { migrateTables, openPostgresTables, readsOn, stepsIn } from "../../std/postgres/tables.ts";
import type { Query } from "../../std/write.ts";
import { postgresServiceTables, type ServiceRows } from "./tables.ts";

/** On separate connections: a statement of an old step may not be taken any more once a later one is done. */
export async function migrateDatabase(options: PostgresOptions): Promise<void> {
	const { migrateBusDatabase, openBusDatabase } = await postgresBus();
	const postgres = openBusDatabase(options);
	try {
		await migrateBusDatabase(postgres);
		await migrateTables(postgres, { ...TABLES, ...postgresServiceTables(postgres) });
	} finally {
		await postgres.close();
	}
}

export interface DatabaseParts {
	readonly postgres: Postgres;
	readonly storage: Storage;
	readonly ledger: Ledger;
	readonly rows: ServiceRows;
}

/** The database is migrated. */
export async function openDatabase(
	options: PostgresOptions,
	more: { durability?: "process" | "power"; log: Log },
): Promise<DatabaseParts> {
	const { openBusDatabase, postgresStorage } = await postgresBus();
	const postgres = openBusDatabase(options);
	const services = postgresServiceTables(postgres);
	const storage = postgresStorage({
		postgres,
		stepsOf: stepsIn({ ...TABLES, ...services }),
		answer: async <T>({ table, op, args }: Query<T>, query: Parameters<typeof readsOn>[0]) => {
			if (table !== "ledger" || op !== "sessionSnapshot") throw new TypeError(`${table} cannot answer ${op}`);
			const { turns, inbox } = TABLES;
			const answers = ledgerAnswers(readsOn<Pick<Ledger, "turns" | "inbox">>(query, { turns, inbox }));
			return (await answers.sessionSnapshot(...(args as [string, { limit: number }]))) as T;
		},
		...more,
	});
	try {
		const ledger = await openPostgresTables<Ledger>(postgres, TABLES);
		const rows = await openPostgresTables<ServiceRows>(postgres, services);
		return { postgres, storage, ledger, rows };
	} catch (cause) {
		await postgres.close();
		throw cause;
	}
}
