/** Turns the failure of a store into one clear NexusError that says what to do. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import { SchemaTooNew, sqliteFailure } from "../std/sqlite.ts";

/** Maps any error of opening, migrating or writing the file at `path`. */
export function storeFailure(cause: unknown, path: string): NexusError {
	if (cause instanceof SchemaTooNew) return new NexusError("data_loss", cause.message, { cause });
	const failure = sqliteFailure(cause);
	if (failure === undefined) return toNexusError(cause);
	const say = (code: "data_loss" | "unavailable" | "conflict" | "internal", what: string) =>
		new NexusError(code, `${path}: ${what} (${failure.message})`, { cause });
	switch (failure.kind) {
		case "corrupt":
			return say(
				"data_loss",
				"the database is damaged. Restore it from a backup, or move it away with its -wal and -shm files and store.json to start empty",
			);
		case "unwritable":
			return say(
				"unavailable",
				"the database cannot be opened or written. Check that the folder exists and its permissions",
			);
		case "full":
			return say("unavailable", "the disk is full or failing. Free space, then start again");
		case "locked":
			return say("conflict", "another process holds the database. Stop it, or choose another data folder");
		case "duplicate":
			return say("conflict", "it is already stored");
		case "other":
			return say("internal", "the database failed");
		default:
			return failure.kind satisfies never;
	}
}
