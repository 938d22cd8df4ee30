/** Messages between applications. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	AckAppMessageResponseSchema,
	AppMessageEventType,
	AppMessageSchema,
	type RuntimeAppService,
	SendAppMessageResponseSchema,
	SubscribeAppMessagesResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/app_pb";
import type { Batch } from "../../bus/bus.ts";
import type { AppMessageRecord } from "../../services/apps/port.ts";
import { afterOf } from "./paging.ts";
import { logStream, principalOf, type RpcDeps } from "./rpc.ts";

export const appMethods = ({ services: { appMessages } }: RpcDeps): Partial<ServiceImpl<typeof RuntimeAppService>> => ({
	async sendAppMessage({ fromAppId, toAppId, subjectUserId, idempotencyKey, ...message }, context) {
		const { messageType, payload, requireAck } = message;
		const sent = { from: fromAppId, to: toAppId, subjectUserId, messageType, payload, requireAck, idempotencyKey };
		const { messageId } = await appMessages.send(sent, principalOf(context));
		return create(SendAppMessageResponseSchema, { messageId });
	},
	async ackAppMessage({ appId, messageId, failed, reason }, context) {
		await appMessages.acknowledge({ app: appId, messageId, failed, reason }, principalOf(context));
		return create(AckAppMessageResponseSchema);
	},
	async *subscribeAppMessages({ appId, after }, context) {
		const cursor = await appMessages.open(appId, afterOf(after), principalOf(context));
		yield* logStream(context, { cursor, messages: eventsOf, closes: "D" });
	},
});

const eventsOf = ({ first, records }: Batch) =>
	records.map((record, n) => eventOf(JSON.parse(record) as AppMessageRecord, first + n));

const EVENT_TYPES = {
	received: AppMessageEventType.RECEIVED,
	acked: AppMessageEventType.ACKED,
	failed: AppMessageEventType.FAILED,
};

function eventOf(record: AppMessageRecord, sequence: number) {
	const { event, messageId, from, to, subjectUserId = "", messageType, payload = "", requireAck, sentAt } = record;
	return create(SubscribeAppMessagesResponseSchema, {
		sequence: BigInt(sequence),
		eventType: EVENT_TYPES[event],
		message: create(AppMessageSchema, {
			messageId,
			fromAppId: from,
			toAppId: to,
			subjectUserId,
			messageType,
			payload: Buffer.from(payload, "base64"),
			requireAck,
			sentAt: timestampFromMs(sentAt),
		}),
		reason: record.reason ?? "",
		at: timestampFromMs(record.at),
	});
}
