/** Applications, which the owner lists, adds, clears and removes, and the messages between them. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
	AckAppMessageResponseSchema,
	AppMessageEventType,
	AppMessageSchema,
	type AppSchema,
	type RuntimeAppService,
	SendAppMessageResponseSchema,
	SubscribeAppMessagesResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/app_pb";
import { NexusError } from "@nexus-stream/protocol";
import type { Batch } from "../../bus/bus.ts";
import { afterOf, logStream, principalOf } from "../../edge/rpc/rpc.ts";
import { checkedAppId, type Principal, requireOwner } from "../kit/principal.ts";
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

const NAME_CHARS_MAX = 200;

export function appRegistry({ apps, quota, clearApp }: AppRpcParts): Partial<ServiceImpl<typeof RuntimeAppService>> {
	const messageOf = async (app: AppInfo): Promise<MessageInitShape<typeof AppSchema>> => ({
		appId: app.id,
		name: app.name,
		createdAt: timestampFromMs(app.createdAt),
		...(app.revokedAt === undefined ? {} : { removedAt: timestampFromMs(app.revokedAt) }),
		...(await storedIn(quota, app.id)),
	});
	return {
		async listApps(_, context) {
			ownerOf(context);
			return { apps: await Promise.all(apps.list().map(messageOf)) };
		},
		async addApp({ appId, name }, context) {
			const owner = ownerOf(context);
			const id = checkedAppId(appId);
			if (name.length > NAME_CHARS_MAX) throw new NexusError("invalid", `name: at most ${NAME_CHARS_MAX} characters`);
			const { app, token } = await apps.add(name === "" ? { id } : { id, name }, owner);
			return { app: await messageOf(app), token };
		},
		async clearApp({ appId }, context) {
			await clearApp(checkedAppId(appId), ownerOf(context));
			const { storedBytes, storedBytesMax } = await storedIn(quota, appId);
			return { appId, storedBytes, storedBytesMax };
		},
		async removeApp({ appId }, context) {
			await apps.remove(checkedAppId(appId), ownerOf(context));
			return {};
		},
	};
}

function ownerOf(context: HandlerContext): Principal {
	const principal = principalOf(context);
	requireOwner(principal);
	return principal;
}

async function storedIn(quota: Quota, appId: string) {
	const stored = await quota.usage(appId);
	return {
		storedBytes: BigInt(storedTotal(stored)),
		storedBytesMax: BigInt(quota.bytesPerAppMax),
		stored: {
			jobs: BigInt(stored.jobs),
			workflows: BigInt(stored.workflows),
			logs: BigInt(stored.logs),
			artifacts: BigInt(stored.artifacts),
			messages: BigInt(stored.messages),
		},
	};
}
