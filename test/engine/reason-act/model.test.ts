/** The model port on pi-ai, with pi-ai's own scripted provider: what the loop sends and what it makes of the answers. */

import { fauxAssistantMessage, fauxThinking, fauxToolCall } from "@earendil-works/pi-ai";
import { describe, expect, test } from "vitest";
import { piModel } from "../../../packages/daemon/src/engine/reason-act/model/model.ts";
import { reasonActEngine } from "../../../packages/daemon/src/engine/reason-act/reason-act.ts";
import { requestOf } from "../demo-play.ts";
import { fauxModel, reasoningOf, run, shape, textOf, toolsOf, usageOf } from "../pi-kit.ts";
import { setupOf, toolOf } from "./kit.ts";

async function play(responses: Parameters<typeof fauxModel>[0]) {
	const { faux, loaded, failure } = fauxModel(responses);
	const model = await piModel(loaded, { thinking: "off", failure, retriesMax: 0, retryDelayMsMax: 1 });
	const engine = reasonActEngine(await setupOf({}, model, [toolOf("look")]));
	return { faux, model, ...(await run(engine, requestOf("hello"))) };
}

describe("pi-ai behind the port", () => {
	test("R2-86: text, reasoning, a tool and the answer after it", async () => {
		const { events, error } = await play([
			fauxAssistantMessage([fauxThinking("hm"), { type: "text", text: "Looking." }, fauxToolCall("look", {})], {
				stopReason: "toolUse",
			}),
			fauxAssistantMessage("Found."),
		]);
		expect(error).toBeUndefined();
		expect(shape(events)).toBe(
			"message reasoning text look:started checkpoint look:completed checkpoint message text usage",
		);
		expect([reasoningOf(events), textOf(events)]).toEqual(["hm", "Looking.Found."]);
		expect(toolsOf(events).at(-1)).toMatchObject({ status: "completed", result: "look done" });
		expect(usageOf(events)).toHaveLength(1);
	});

	test("a refusal is advice, with the section to change", async () => {
		const { error } = await play([
			fauxAssistantMessage("", { stopReason: "error", errorMessage: "404 model not found" }),
		]);
		expect(error).toMatchObject({ code: "engine_failed", message: expect.stringContaining("404") });
	});

	test("knows a context that is too long, and leaves room for the answer", async () => {
		const { model, faux } = await play([fauxAssistantMessage("x")]);
		const overflow = fauxAssistantMessage("", { stopReason: "error", errorMessage: "prompt is too long: 9 > 5" });
		expect(model.isOverflow(overflow)).toBe(true);
		expect(model.isOverflow(fauxAssistantMessage("fine"))).toBe(false);
		expect(model.contextTokensMax).toBeLessThan(faux.getModel().contextWindow);
	});
});
