/** The programs that tests start as processes: from one bundle, built once for a run (test/setup.ts), because a start from sources takes twice as long. */

import { join } from "node:path";

const built = (path: string): string => join(import.meta.dirname, "../dist-test", path);

export const NEXUS = built("cli/main.js");
export const ADAPTER = built("adapter/main.js");
/** The same on the time of the test that starts it. */
export const TIMED_ADAPTER = built("time/adapter.js");
