/** The attachments of platform messages, in the feed of transfers. */

import type { ChannelMessage } from "../../nex/nex.ts";
import type { Transfers } from "../../services/artifacts/port.ts";
import { OWNER_APP } from "../../services/kit/principal.ts";

/** Reports the attachments of a platform's message as transfers: its adapter has fetched them. */
export function reportAttachments(
	transfers: Pick<Transfers, "report">,
	{ channel, account, message: { eventId, attachments = [] } }: ChannelMessage,
	now: number,
): void {
	for (const [n, { name, data }] of attachments.entries()) {
		const bytes = Buffer.byteLength(data, "base64");
		transfers.report({
			id: ["attachment", channel, account, eventId, n].join("/"),
			appId: OWNER_APP,
			kind: "attachment",
			state: "completed",
			name,
			transferredBytes: bytes,
			totalBytes: bytes,
			startedAt: now,
			updatedAt: now,
		});
	}
}
