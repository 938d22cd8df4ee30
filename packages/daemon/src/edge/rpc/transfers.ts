/** Uploads by pieces, and transfers: listed, paused, resumed, cancelled and watched (close mode D). */

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { RuntimeLocalService } from "@nexus-stream/client/gen/nexus/runtime/v1/local_pb";
import type { TransferInfo } from "../../services/artifacts/port.ts";
import { appOf, type Principal, seesApp } from "../../services/kit/principal.ts";
import { artifactMessage, bytesOf, transferMessage } from "./job-codec.ts";
import { feedStream, principalOf, type RpcDeps } from "./rpc.ts";

export const transferMethods = ({ services }: RpcDeps): Partial<ServiceImpl<typeof RuntimeLocalService>> => {
	const change =
		(how: "pause" | "resume" | "cancel") =>
		async ({ transferId }: { transferId: string }, context: HandlerContext) => ({
			transfer: transferMessage(await services.artifacts.transfers[how](transferId, principalOf(context))),
		});
	return {
		async uploadArtifact({ artifactId, appId, name, mimeType, sizeBytes, sha256, offset, chunk }, context) {
			const piece = {
				id: artifactId || undefined,
				appId,
				name,
				mimeType,
				sha256,
				chunk,
				sizeBytes: bytesOf(sizeBytes, "size_bytes"),
				offset: bytesOf(offset, "offset"),
			};
			const taken = await services.artifacts.upload(piece, principalOf(context));
			return {
				artifact: artifactMessage(taken.artifact),
				receivedBytes: BigInt(taken.receivedBytes),
				transferId: taken.transferId,
			};
		},
		listLocalTransfers({ appId }, context) {
			const isListed = filterOf(principalOf(context), appId);
			return {
				transfers: services.artifacts.transfers.list(principalOf(context)).filter(isListed).map(transferMessage),
			};
		},
		pauseLocalTransfer: change("pause"),
		resumeLocalTransfer: change("resume"),
		cancelLocalTransfer: change("cancel"),
		async *watchLocalTransfers({ appId }, context) {
			const principal = principalOf(context);
			const isListed = filterOf(principal, appId);
			const { transfers } = services.artifacts;
			yield* feedStream(context, {
				current: () => transfers.list(principal).filter(isListed),
				subscribe: (listener) => transfers.subscribe((transfer) => isListed(transfer) && listener(transfer)),
				key: ({ id }) => id,
				message: (transfer, sequence) => ({ sequence, transfer: transferMessage(transfer) }),
			});
		},
	};
};

/** One application's, or for the owner all. */
function filterOf(principal: Principal, claimed: string): (transfer: TransferInfo) => boolean {
	const only = claimed === "" ? undefined : appOf(principal, claimed);
	return ({ appId }) => seesApp(principal, appId) && (only === undefined || appId === only);
}
