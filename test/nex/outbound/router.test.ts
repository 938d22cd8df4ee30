/** The way of a delivery is decided once, by what the adapter can, the channel's config, and the delivery's own options. */

import { expect, it } from "vitest";
import type { AdapterInfo } from "../../../packages/adapter/src/port.ts";
import { modeOf } from "../../../packages/daemon/src/nex/delivery/delivery-runner.ts";

const info = (supports: readonly string[], more: object = {}) =>
	({ channel: "chat", supports, ...more }) as unknown as AdapterInfo;
const both = info(["stream", "send"]);
const mail = info(["send"], { delivery: "whole" });
const off = { enabled: false };
const on = {};

it.each([
	["streams where it can", both, on, {}, "stream"],
	["sends blocks where it cannot", info(["send"]), on, {}, "blocks"],
	["sends a mail whole", mail, on, {}, "whole"],
	["sends whole when the config switches streaming off", both, off, {}, "whole"],
	["sends whole when the run switches streaming off", both, on, { disableStreaming: true }, "whole"],
	["sends whole without streaming, too", info(["send"]), off, {}, "whole"],
	["sends whole in mode accumulate", both, { mode: "accumulate" }, {}, "whole"],
	["sends whole in mode off", both, { mode: "off" }, {}, "whole"],
	["sends blocks in mode blocks, though it could stream", both, { mode: "blocks" }, {}, "blocks"],
	["streams in mode blocks when it can do nothing else", info(["stream"]), { mode: "blocks" }, {}, "stream"],
	["streams in mode draft_edit", both, { mode: "draft_edit" }, {}, "stream"],
	["sends blocks in mode draft_edit where it cannot edit", info(["send"]), { mode: "draft_edit" }, {}, "blocks"],
	["sends a mail whole in any mode", mail, { mode: "blocks" }, {}, "whole"],
	["streams all the same when it can do nothing else", info(["stream"]), off, {}, "stream"],
	["streams all the same, whatever the run wants", info(["stream"]), on, { disableStreaming: true }, "stream"],
] as const)("%s", (_name, adapter, config, options, mode) => {
	expect(modeOf(adapter, config, options)).toBe(mode);
});

it("refuses an adapter that can neither", () => {
	expect(() => modeOf(info(["monitor"]), on, {})).toThrow(/neither stream nor send/);
});
