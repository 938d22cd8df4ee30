/** Applications, which the owner lists, adds, clears and removes, and the messages between them. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	AppMessageEventType,
	type AppSchema,
	type RuntimeAppService,
	type SubscribeAppMessagesResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/app_pb";
import type { Batch } from "../../bus/bus.ts";
import { afterOf, logStream, principalOf } from "../../edge/rpc/rpc.ts";
import { inCapitals, timeOf } from "../kit/codec.ts";
import { checkedAppId, requireOwner } from "../kit/principal.ts";
import { type Quota, storedTotal } from "../kit/quota.ts";
import type { ClearApp } from "./clearing.ts";
import type { AppInfo, Applications, AppMessageRecord, AppMessages } from "./port.ts";

export interface AppRpcParts {
	apps: Pick<Applications, "list" | "add" | "remove">;
	appMessages: AppMessages;
	quota: Quota;
	clearApp: ClearApp;
}

export const appMethods = ({
	appMessages,
}: Pick<AppRpcParts, "appMessages">): Partial<ServiceImpl<typeof RuntimeAppService>> => ({
	sendAppMessage({ fromAppId, toAppId, subjectUserId, idempotencyKey, ...message }, context) {
		const { messageType, payload, requireAck } = message;
		const sent = { from: fromAppId, to: toAppId, subjectUserId, messageType, payload, requireAck, idempotencyKey };
		return appMessages.send(sent, principalOf(context));
	},
	async ackAppMessage({ appId, messageId, failed, reason }, context) {
		await appMessages.acknowledge({ app: appId, messageId, failed, reason }, principalOf(context));
		return {};
	},
	async *subscribeAppMessages({ appId, after }, context) {
		const cursor = await appMessages.open(appId, afterOf(after), principalOf(context));
		yield* logStream(context, { cursor, messages: eventsOf, closes: "D" });
	},
});

const eventsOf = ({ first, records }: Batch) =>
	records.map((record, n) => eventOf(JSON.parse(record) as AppMessageRecord, first + n));

const eventOf = (
	{ event, from, to, payload = "", sentAt, at, reason, ...message }: AppMessageRecord,
	sequence: number,
): MessageInitShape<typeof SubscribeAppMessagesResponseSchema> => ({
	sequence: BigInt(sequence),
	eventType: AppMessageEventType[inCapitals(event)],
	message: {
		...message,
		fromAppId: from,
		toAppId: to,
		payload: Buffer.from(payload, "base64"),
		sentAt: timestampFromMs(sentAt),
	},
	reason,
	at: timestampFromMs(at),
});

export function appRegistry({ apps, quota, clearApp }: AppRpcParts): Partial<ServiceImpl<typeof RuntimeAppService>> {
	const messageOf = async (app: AppInfo): Promise<MessageInitShape<typeof AppSchema>> => ({
		appId: app.id,
		name: app.name,
		createdAt: timestampFromMs(app.createdAt),
		removedAt: timeOf(app.revokedAt),
		...(await storedIn(quota, app.id)),
	});
	return {
		async listApps(_, context) {
			requireOwner(principalOf(context));
			return { apps: await Promise.all(apps.list().map(messageOf)) };
		},
		async addApp({ appId, name }, context) {
			const { app, token } = await apps.add({ id: appId, name: name || undefined }, requireOwner(principalOf(context)));
			return { app: await messageOf(app), token };
		},
		async clearApp({ appId }, context) {
			await clearApp(checkedAppId(appId), requireOwner(principalOf(context)));
			const { storedBytes, storedBytesMax } = await storedIn(quota, appId);
			return { appId, storedBytes, storedBytesMax };
		},
		async removeApp({ appId }, context) {
			await apps.remove(appId, requireOwner(principalOf(context)));
			return {};
		},
	};
}

async function storedIn(quota: Quota, appId: string) {
	const stored = await quota.usage(appId);
	return {
		storedBytes: BigInt(storedTotal(stored)),
		storedBytesMax: BigInt(quota.bytesPerAppMax),
		stored: Object.fromEntries(Object.entries(stored).map(([what, bytes]) => [what, BigInt(bytes as number)])),
	};
}
