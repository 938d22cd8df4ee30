/** A run whose stream ends before the answer does. */

import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { createClient } from "../../packages/client/src/client.ts";
import type { CommandContext } from "../../packages/daemon/src/cli/command.ts";
import { send } from "../../packages/daemon/src/cli/commands/send.ts";
import { tail } from "../../packages/daemon/src/cli/commands/tail.ts";
import { createTerminal } from "../../packages/daemon/src/cli/terminal.ts";

const RUN = "run_1";

/** A daemon that accepts a message and has nothing to say about its run. */
const client = createClient({
	url: "http://nexus.test",
	fetch: async (url) =>
		url.includes("/stream")
			? new Response(null, { status: 204 })
			: Response.json({ event_id: "evt_1", disposition: "started", run_id: RUN }),
});

function context(): CommandContext {
	const output = Object.assign(new PassThrough().resume(), { isTTY: false });
	const host = { stdin: process.stdin, env: {}, on() {}, exit() {}, cwd: () => "/" };
	return { terminal: createTerminal(output, output, {}), client, host } as unknown as CommandContext;
}

it.each([
	["send", () => send(context(), "hi", { session: "s" })],
	["tail", () => tail(context(), RUN, {})],
])("P1.12: nexus %s names the run and says where to look", async (_name, command) => {
	await expect(command()).rejects.toMatchObject({
		code: "data_loss",
		message: `the stream of ${RUN} ended without its final end (P1.12)`,
		hint: `see what is known of it with \`nexus runs ${RUN}\``,
	});
});
