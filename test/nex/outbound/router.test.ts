/** The way of a delivery is decided once, by what the adapter can, the channel's config, and the delivery's own options. */

import { expect, it } from "vitest";
import type { AdapterInfo } from "../../../src/adapter/adapter.ts";
import { modeOf } from "../../../src/nex/router.ts";

const info = (supports: readonly string[], more: object = {}) =>
	({ channel: "chat", supports, ...more }) as unknown as AdapterInfo;
const both = info(["stream", "send"]);
const mail = info(["send"], { delivery: "whole" });
const off = { accounts: {}, streaming: { enabled: false } };
const on = { accounts: {} };

it.each([
	["streams where it can", both, on, {}, "stream"],
	["sends blocks where it cannot", info(["send"]), on, {}, "blocks"],
	["sends a mail whole", mail, on, {}, "whole"],
	["sends whole when the config switches streaming off", both, off, {}, "whole"],
	["sends whole when the run switches streaming off", both, on, { disableStreaming: true }, "whole"],
	["sends whole without streaming, too", info(["send"]), off, {}, "whole"],
	["streams all the same when it can do nothing else", info(["stream"]), off, {}, "stream"],
	["streams all the same, whatever the run wants", info(["stream"]), on, { disableStreaming: true }, "stream"],
] as const)("%s", (_name, adapter, config, options, mode) => {
	expect(modeOf(adapter, config, options)).toBe(mode);
});

it("refuses an adapter that can neither", () => {
	expect(() => modeOf(info(["monitor"]), on, {})).toThrow(/neither stream nor send/);
});
