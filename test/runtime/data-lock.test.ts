/** The lock of a data directory that is away for a while. */

import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { dataPaths, makePrivateDir } from "../../packages/daemon/src/runtime/data/data-dir.ts";
import { lockDataDir } from "../../packages/daemon/src/runtime/data/data-lock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { until } from "../until.ts";
import { freshFolder } from "./folder.ts";

it("is held again when the directory is back, however long it was away", async () => {
	const dir = join(freshFolder(), "data");
	makePrivateDir(dir);
	const lock = lockDataDir(dataPaths(dir));
	onTestFinished(() => lock.release());
	lock.settle(silentLog);
	expect(lock.problem()).toBeUndefined();
	renameSync(dir, `${dir}-away`);
	await until("the holder notices", () => lock.problem() !== undefined);
	renameSync(`${dir}-away`, dir);
	await until("the holder has it again", () => lock.problem() === undefined);
	expect(() => lockDataDir(dataPaths(dir))).toThrow("another Nexus");
});
