/** Artifacts and transfers as messages of the contract. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ArtifactSchema } from "@nexus-stream/client/gen/nexus/runtime/v1/common_pb";
import {
	LocalTransferKind,
	type LocalTransferSchema,
	LocalTransferState,
} from "@nexus-stream/client/gen/nexus/runtime/v1/local_pb";
import { NexusError } from "@nexus-stream/protocol";
import { inCapitals, reasonFields } from "../kit/codec.ts";
import type { ArtifactInfo, TransferInfo } from "./port.ts";

export const artifactMessage = (artifact: ArtifactInfo): MessageInitShape<typeof ArtifactSchema> => ({
	...artifact,
	artifactId: artifact.id,
	sizeBytes: BigInt(artifact.sizeBytes),
	sha256: artifact.complete ? artifact.sha256 : undefined,
	createdAt: timestampFromMs(artifact.createdAt),
	expiresAt: timestampFromMs(artifact.expiresAt),
});

export const transferMessage = (transfer: TransferInfo): MessageInitShape<typeof LocalTransferSchema> => ({
	...transfer,
	...reasonFields(transfer.error),
	transferId: transfer.id,
	kind: LocalTransferKind[inCapitals(transfer.kind)],
	state: LocalTransferState[inCapitals(transfer.state)],
	transferredBytes: BigInt(transfer.transferredBytes),
	totalBytes: BigInt(transfer.totalBytes),
	startedAt: timestampFromMs(transfer.startedAt),
	updatedAt: timestampFromMs(transfer.updatedAt),
});

/** A number of bytes that a request names. */
export function bytesOf(value: bigint, name: string): number {
	if (value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
	throw new NexusError("invalid", `${name} is a number of bytes from 0 on`);
}
