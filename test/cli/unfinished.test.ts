/** A run whose stream ends before the answer does. */

import { expect, it } from "vitest";
import { ERROR_TABLE } from "../../packages/protocol/src/protocol.ts";
import { serving } from "../serving.ts";
import { run } from "./in-process.ts";

const RUN = "run_1";

it.each([
	["send", "hi"],
	["tail", RUN],
])("P1.12: nexus %s names the run and says where to look", async (...command) => {
	// Accepts a message and has nothing to say about its run.
	const url = await serving(({ url: path = "" }, response) => {
		if (path.includes("/stream")) response.writeHead(204).end();
		else response.end(JSON.stringify({ event_id: "evt_1", disposition: "started", run_id: RUN }));
	});
	const { code, err } = await run([...command, "--url", url, "--token", "x"]);
	expect(code).toBe(ERROR_TABLE.data_loss[2]);
	expect(err).toBe(
		`nexus: the stream of ${RUN} ended without its final end (P1.12)\n  hint: see what is known of it with \`nexus runs ${RUN}\`\n`,
	);
});
