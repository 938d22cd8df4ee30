/** Artifacts and transfers: uploaded and read in pieces, listed, paused, resumed, cancelled and watched (close mode D). */

import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAiService } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import type { RuntimeLocalService } from "@nexus-stream/client/gen/nexus/runtime/v1/local_pb";
import { feedStream, principalOf } from "../../edge/rpc/rpc.ts";
import { appOf, type Principal, seesApp } from "../kit/principal.ts";
import { artifactMessage, bytesOf, transferMessage } from "./codec.ts";
import { PIECE_BYTES_MAX } from "./limits.ts";
import type { Artifacts, TransferInfo } from "./port.ts";

export interface ArtifactRpcParts {
	artifacts: Artifacts;
	limits: { grpcWriteBytesMax: number };
}

/** Room for the fields of a message besides the piece. */
const ENVELOPE_BYTES = 4096;

export const artifactMethods = ({
	artifacts,
	limits,
}: ArtifactRpcParts): Partial<ServiceImpl<typeof RuntimeAiService>> => ({
	async getArtifact({ artifactId, offset, maxBytes }, context) {
		const most = Math.min(PIECE_BYTES_MAX, limits.grpcWriteBytesMax - ENVELOPE_BYTES);
		const wanted = maxBytes > 0 ? Math.min(maxBytes, most) : most;
		const from = bytesOf(offset, "offset");
		const { artifact, chunk } = await artifacts.read(artifactId, from, wanted, principalOf(context));
		return { artifact: artifactMessage(artifact), offset, chunk };
	},
});

export const transferMethods = ({ artifacts }: ArtifactRpcParts): Partial<ServiceImpl<typeof RuntimeLocalService>> => {
	const change =
		(how: "pause" | "resume" | "cancel") =>
		async ({ transferId }: { transferId: string }, context: HandlerContext) => ({
			transfer: transferMessage(await artifacts.transfers[how](transferId, principalOf(context))),
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
			const taken = await artifacts.upload(piece, principalOf(context));
			return {
				artifact: artifactMessage(taken.artifact),
				receivedBytes: BigInt(taken.receivedBytes),
				transferId: taken.transferId,
			};
		},
		listLocalTransfers({ appId }, context) {
			const principal = principalOf(context);
			const listed = artifacts.transfers.list(principal).filter(filterOf(principal, appId));
			return { transfers: listed.map(transferMessage) };
		},
		pauseLocalTransfer: change("pause"),
		resumeLocalTransfer: change("resume"),
		cancelLocalTransfer: change("cancel"),
		async *watchLocalTransfers({ appId }, context) {
			const principal = principalOf(context);
			const isListed = filterOf(principal, appId);
			const { transfers } = artifacts;
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
