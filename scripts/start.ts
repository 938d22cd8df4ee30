/** `npm start`: the page, built if it is stale, then the daemon from its sources in this same process. */

import { buildPage } from "./page.ts";

await buildPage();
process.argv.splice(2, 0, "up");
await import("../packages/daemon/src/cli/main.ts");
