/** The API's view of a run with several agents. */

import { expect, it } from "vitest";
import { RunView, runView } from "../../packages/daemon/src/edge/api/run-view.ts";
import { fullTurn } from "../ledger/rig.ts";

it("A31: messages and tool calls name their agent, hidden words are marked, usage is listed per agent", () => {
	const run = JSON.parse(JSON.stringify(runView(fullTurn, { framesAvailable: true })));
	expect(RunView.parse(run)).toEqual(run);
	expect(run.messages[2]).toMatchObject({ agent: "lead", visible: false });
	expect(run.messages[3]).not.toHaveProperty("visible");
	expect(run.tool_calls[0]).toMatchObject({ agent: "lead" });
	expect(run.usage_by).toEqual([{ agent: "lead", model: "m", usage: { input: 10, output: 20, cache_read: 5 } }]);
});
