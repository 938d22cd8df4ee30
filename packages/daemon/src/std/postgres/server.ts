/** Facts about a PostgreSQL server and a database of it, for a program that wants to use them. */

import type { Postgres } from "./postgres.ts";

export interface ServerFacts {
	/** As the server says it, for example 16.4. */
	version: string;
	/** For comparisons, for example 160004. */
	versionNumber: number;
	encoding: string;
	/** How long a question takes. */
	answerMs: number;
	/** The server's clock minus ours. */
	aheadMs: number;
	/** Versions of the areas of its schema; empty before the first migration. */
	areas: ReadonlyMap<string, number>;
}

const FACTS = `SELECT current_setting('server_version_num')::bigint AS number, current_setting('server_version') AS version,
	current_setting('server_encoding') AS encoding, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
	to_regclass('schema_version') IS NOT NULL AS used`;

/** Changes nothing. */
export async function serverFacts({ reads }: Pick<Postgres, "reads">): Promise<ServerFacts> {
	// The first question makes the connection.
	await reads.get(FACTS);
	const before = performance.now();
	const facts = (await reads.get(FACTS))!;
	const answerMs = performance.now() - before;
	const aheadMs = Number(facts.now) - Date.now();
	const rows = facts.used ? await reads.all("SELECT area, version FROM schema_version") : [];
	return {
		version: String(facts.version),
		versionNumber: Number(facts.number),
		encoding: String(facts.encoding),
		answerMs,
		aheadMs,
		areas: new Map(rows.map(({ area, version }) => [String(area), Number(version)])),
	};
}
