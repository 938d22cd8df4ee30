/** I7: what the daemon knows of a creation when the adapter dies or refuses: nothing that certainly did not happen is in doubt. */

import { expect, it } from "vitest";
import type { AdapterInfo, StreamLine } from "../../../packages/adapter/src/port.ts";
import { isErrorSent } from "../../../packages/daemon/src/nex/delivery/attachments/attachment.ts";
import type { DeliveryContext } from "../../../packages/daemon/src/nex/delivery/delivery-context.ts";
import { StreamReports } from "../../../packages/daemon/src/nex/delivery/stream/stream-reports.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { trackDelivery } from "./live-delivery-rig.ts";

/** `reaches`: whether what is written gets as far as the process. */
async function world(reaches: boolean, fields = ["runId", "offset", "intent"]) {
	const { live, stored: row } = await trackDelivery();
	const info = { fields, supports: ["stream"] } as unknown as AdapterInfo;
	const written: StreamLine[] = [];
	const reports = new StreamReports({ live, info, log: silentLog } as unknown as DeliveryContext, {
		write(line, begun) {
			written.push(line);
			if (reaches) begun?.();
		},
		message: () => {},
	});
	const announce = async () => {
		reports.take({ type: "message_creating", nonce: "n1", from: 0, ordinal: 1 });
		await live.recorded();
		await Promise.resolve();
		expect(written).toMatchObject([{ type: "ack", nonce: "n1" }]);
	};
	const stored = async () => {
		await live.recorded();
		return row().messages;
	};
	return { reports, live, announce, stored };
}

it("I7: an ack that never left for the process: its message is withdrawn when the process dies", async () => {
	const { reports, live, announce, stored } = await world(false);
	await announce();
	expect(await stored()).toMatchObject([{ nonce: "n1", state: "intended" }]);
	reports.lost();
	expect(await stored()).toEqual([]);
	expect(live.resume()).toBeUndefined();
});

it("I7: an ack that may have been read: its message is looked up", async () => {
	const { reports, live, announce, stored } = await world(true);
	await announce();
	reports.lost();
	expect(await stored()).toMatchObject([{ state: "intended" }]);
	expect(live.resume()).toMatchObject({ uncertain: { nonce: "n1" } });
});

it("I7: an ack that never left, and its adapter gives up: the remainder is sent", async () => {
	const { reports, announce, stored } = await world(false);
	await announce();
	expect(reports.take({ type: "delivery_error", error: "no ack" })).toMatchObject({ state: "degraded" });
	expect(await stored()).toEqual([]);
});

it("I7: a refusal that names the message: it does not exist, and the remainder is sent", async () => {
	const { reports, announce, stored } = await world(true);
	await announce();
	const refusal = { type: "delivery_error", error: "too long", code: "invalid", nonce: "n1" } as const;
	expect(reports.take(refusal)).toEqual({ state: "degraded", error: "invalid: too long" });
	expect(await stored()).toEqual([]);
});

it("I7: an error that names nothing leaves an allowed message in doubt", async () => {
	for (const error of [{ code: "unavailable" as const }, { code: "unknown_outcome" as const, nonce: "n1" }, {}]) {
		const { reports, announce, stored } = await world(true);
		await announce();
		expect(reports.take({ type: "delivery_error", error: "?", ...error })).toMatchObject({ state: "unknown" });
		expect(await stored()).toMatchObject([{ state: "unknown" }]);
	}
});

it("I7: a delivery reported complete before the answer has ended is not; the shown text stays, the rest is sent", async () => {
	const { reports, live, announce, stored } = await world(true);
	await announce();
	reports.take({ type: "message_created", messageId: "m1", nonce: "n1", from: 0 });
	reports.take({ type: "message_updated", messageId: "m1", chars: 5, to: 5 });
	expect(reports.take({ type: "delivery_complete", messageIds: ["m1"] })).toMatchObject({ state: "degraded" });
	expect(await stored()).toMatchObject([{ messageId: "m1", state: "sent", to: 5 }]);
	expect(live.row.cursor).toBe(5);
});

it("I7: complete after the end is complete; without positions the messages reach to the end", async () => {
	const { reports, live, stored } = await world(true, ["runId"]);
	reports.take({ type: "message_sent", messageId: "m1", final: true });
	expect(live.row.cursor).toBe(0);
	reports.ended(9, true);
	expect(reports.take({ type: "delivery_complete", messageIds: ["m1"] })).toEqual({ state: "complete" });
	expect(await stored()).toMatchObject([{ messageId: "m1", state: "sent", to: 9 }]);
});

it("I7: without positions and without send, nothing is sent again once something is out", async () => {
	const { reports } = await world(true, ["runId"]);
	expect(reports.take({ type: "delivery_error", error: "broken" })).toMatchObject({ state: "degraded" });
	const out = await world(true, ["runId"]);
	out.reports.take({ type: "message_sent", messageId: "m1", final: false });
	expect(out.reports.take({ type: "delivery_error", error: "broken" })).toMatchObject({ state: "unknown" });
});

it.each([
	["by its id", { messageId: "m1" }],
	["by its nonce", { nonce: "n1" }],
])("I7: a message without text that is gone again, named %s, is not on record any more", async (_how, named) => {
	const { reports, live, announce, stored } = await world(true);
	await announce();
	reports.take({ type: "message_created", messageId: "m1", nonce: "n1", from: 0 });
	expect(await stored()).toMatchObject([{ state: "open" }]);
	reports.take({ type: "message_removed", ...named });
	expect(await stored()).toEqual([]);
	reports.ended(0, false);
	expect(reports.take({ type: "delivery_complete", messageIds: [] })).toEqual({ state: "complete" });
	expect(live.resume()).toBeUndefined();
});

it("the error text is still sent after an edit was refused, and only once", async () => {
	const { live, stored } = await trackDelivery();
	const info = { fields: ["runId", "offset", "intent"] } as unknown as AdapterInfo;
	const context = { live, info, log: silentLog } as unknown as DeliveryContext;
	const reports = new StreamReports(context, { write() {}, message() {} });
	reports.take({ type: "message_creating", nonce: "n1", from: 0, ordinal: 1 });
	reports.take({ type: "message_created", messageId: "m1", nonce: "n1", from: 0 });
	expect(reports.take({ type: "delivery_error", error: "no edits", code: "denied" })).toMatchObject({
		state: "degraded",
	});
	await live.recorded();
	expect(stored().messages).toMatchObject([{ state: "sent", from: 0, to: 0, abandoned: true }]);
	expect(stored()).toEqual(live.row);
	expect(isErrorSent(stored())).toBe(false);
	live.intend({ ordinal: 2, nonce: "n2", from: 0, to: 0, text: "Sorry." });
	live.sent("n2", { messageId: "m2", to: 0 });
	await live.recorded();
	expect(isErrorSent(stored())).toBe(true);
});
