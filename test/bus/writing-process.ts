/** A daemon's Bus in another process: writes a log as a link of a session, one record after another, and seals it. */

import { createBus, sqliteStorage } from "../../packages/daemon/src/bus/bus.ts";
import { openSqlite } from "../../packages/daemon/src/std/sqlite/sqlite.ts";
import { quiet } from "../quiet.ts";
import { written } from "./remove.ts";

const [path, count] = process.argv.slice(2);
const file = openSqlite(path!, "process");
const bus = createBus({ ...quiet, storage: sqliteStorage(file), shared: true });
const writer = await bus.create({ log: "a", kind: "run", chain: "session:s" }, ["begin"]);
for (let n = 0; n < Number(count); n++) {
	await written(writer, `record ${n}`);
	await new Promise((resolve) => setTimeout(resolve, 20));
}
await writer.seal(["end"]);
await bus.close();
file.close();
