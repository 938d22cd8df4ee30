/** A message that began before its text and whose stream fails: it stays, and is not taken for the error text (I7). */

import { expect, it } from "vitest";
import type { AdapterInfo } from "../../../packages/adapter/src/host.ts";
import { isErrorSent } from "../../../packages/daemon/src/nex/delivery/attachments/attachment.ts";
import type { DeliveryContext } from "../../../packages/daemon/src/nex/delivery/delivery-context.ts";
import { StreamReports } from "../../../packages/daemon/src/nex/delivery/stream/stream-reports.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { trackDelivery } from "./live-delivery-rig.ts";

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
