/** The entry of all bundled adapters: `main.ts <channel> <verb> …`. Only the channel that is asked for is loaded. */

import { serve } from "@nexus-stream/adapter";
import { exitCodeOf } from "@nexus-stream/protocol";
import { CHANNELS } from "./channels.ts";
import { loadPlatform } from "./load.ts";

const [name = "", ...argv] = process.argv.slice(2);
const channel = CHANNELS.find((known) => known === name);
if (channel) {
	await serve(await loadPlatform(channel), argv);
} else {
	process.stderr.write(`Unknown channel "${name}". Usage: <${CHANNELS.join(" | ")}> <verb> …\n`);
	process.exitCode = exitCodeOf("invalid");
}
