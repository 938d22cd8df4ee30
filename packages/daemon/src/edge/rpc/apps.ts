/** Messages between applications. */

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
import {
	type AppInfo,
	type Applications,
	type AppMessageRecord,
	checkedAppId,
	type Principal,
	requireOwner,
	storedTotal,
} from "../../services/services.ts";
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

const NAME_CHARS_MAX = 200;

export function appRegistry({ deps, services }: RpcDeps): Partial<ServiceImpl<typeof RuntimeAppService>> {
	const apps = (): Applications => {
		if (deps.apps) return deps.apps;
		throw new NexusError("not_found", "this daemon has no applications");
	};
	const messageOf = async (app: AppInfo): Promise<MessageInitShape<typeof AppSchema>> => ({
		appId: app.id,
		name: app.name,
		createdAt: timestampFromMs(app.createdAt),
		...(app.revokedAt === undefined ? {} : { removedAt: timestampFromMs(app.revokedAt) }),
		...(await storedIn(services, app.id)),
	});
	return {
		async listApps(_, context) {
			ownerOf(context);
			return { apps: await Promise.all((deps.apps?.list() ?? []).map(messageOf)) };
		},
		async addApp({ appId, name }, context) {
			const owner = ownerOf(context);
			const id = checkedAppId(appId);
			if (name.length > NAME_CHARS_MAX) throw new NexusError("invalid", `name: at most ${NAME_CHARS_MAX} characters`);
			const { app, token } = await apps().add(name === "" ? { id } : { id, name }, owner);
			return { app: await messageOf(app), token };
		},
		async clearApp({ appId }, context) {
			await services.clearApp(checkedAppId(appId), ownerOf(context));
			const { storedBytes, storedBytesMax } = await storedIn(services, appId);
			return { appId, storedBytes, storedBytesMax };
		},
		async removeApp({ appId }, context) {
			await apps().remove(checkedAppId(appId), ownerOf(context));
			return {};
		},
	};
}

function ownerOf(context: HandlerContext): Principal {
	const principal = principalOf(context);
	requireOwner(principal);
	return principal;
}

async function storedIn({ quota }: Pick<RpcDeps["services"], "quota">, appId: string) {
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
