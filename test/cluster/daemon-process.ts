/** A daemon on a shared store in a separate process, to be paused and killed; it ends as `nexus up` does when it was replaced. */

import { startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { engine } from "./engine.ts";

const daemon = await startDaemon({ port: 0, grpc: { port: "off" }, ...JSON.parse(process.argv[2]!), engine });
process.stdout.write(`${JSON.stringify({ url: daemon.url, data: daemon.data })}\n`);
await daemon.replaced;
await daemon.close();
process.exit(75);
