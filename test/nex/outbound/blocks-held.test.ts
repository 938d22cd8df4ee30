/** `mode: accumulate`: nothing leaves before the answer has ended. */

import { expect, it } from "vitest";
import { MARKDOWN_START } from "../../../packages/adapter/src/host.ts";
import { createBlocks } from "../../../packages/daemon/src/nex/delivery/blocks/block-machine.ts";
import type { DeliveryContext } from "../../../packages/daemon/src/nex/delivery/delivery-context.ts";
import type { SourceEvent } from "../../../packages/daemon/src/nex/delivery/source.ts";

const delivering = {
	live: { id: "dlv_1", row: { mode: "whole", cursor: 0, messages: [] } },
	info: { limits: { textMax: 40 }, supports: ["send"] },
	account: { config: {} },
	options: {},
	reasoning: false,
	parts: true,
} as unknown as DeliveryContext;

it.each([
	["done", { type: "stream_end", runId: "run_1", final: true }],
	["failed", { type: "stream_error", error: "broken", partial: true }],
])("whole: text over the limit, ended messages and parts wait for the end (%s)", (_how, end) => {
	const machine = createBlocks(delivering, MARKDOWN_START, { minChars: 1, maxChars: 9, idleMs: 1 });
	const events = [
		{ type: "token", text: "One sentence. ".repeat(5) },
		{ type: "stream_end", runId: "run_1", final: false },
		{ type: "token", text: "Then." },
		{ type: "part", modality: "card", contentType: "application/json", payload: '{"title":"Kettle"}' },
		{ type: "token", text: "Last." },
	];
	let offset = 0;
	const take = (event: object) => machine.take({ event, offset: ++offset, position: 0 } as SourceEvent, 0);
	for (const event of events) {
		take(event);
		expect(machine.ready()).toBeUndefined();
	}
	take(end);
	const texts: string[] = [];
	for (let block = machine.ready(); block; block = machine.ready()) texts.push(block.text);
	expect(texts.length).toBeGreaterThan(4);
	expect(texts.at(-1)).toBe("Last.");
});
