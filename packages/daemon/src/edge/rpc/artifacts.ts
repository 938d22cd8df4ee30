/** Artifacts, read by pieces. */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAiService } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { PIECE_BYTES_MAX } from "../../services/artifacts/limits.ts";
import { artifactMessage, bytesOf } from "./job-codec.ts";
import { principalOf, type RpcDeps } from "./rpc.ts";

/** What a message says beside the piece itself. */
const ENVELOPE_BYTES = 4096;

export const artifactMethods = ({ services, limits }: RpcDeps): Partial<ServiceImpl<typeof RuntimeAiService>> => ({
	async getArtifact({ artifactId, offset, maxBytes }, context) {
		const most = Math.min(PIECE_BYTES_MAX, limits.grpcWriteBytesMax - ENVELOPE_BYTES);
		const wanted = maxBytes > 0 ? Math.min(maxBytes, most) : most;
		const from = bytesOf(offset, "offset");
		const { artifact, chunk } = await services.artifacts.read(artifactId, from, wanted, principalOf(context));
		return { artifact: artifactMessage(artifact), offset, chunk };
	},
});
