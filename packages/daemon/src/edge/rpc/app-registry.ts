/** Applications: listed, added, cleared and removed by the owner. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { AppSchema, RuntimeAppService } from "@nexus-stream/client/gen/nexus/runtime/v1/app_pb";
import { NexusError } from "@nexus-stream/protocol";
import type { AppInfo, Applications } from "../../services/apps/port.ts";
import { checkedAppId, type Principal, requireOwner } from "../../services/kit/principal.ts";
import { storedTotal } from "../../services/kit/quota.ts";
import { principalOf, type RpcDeps } from "./rpc.ts";

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
