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
import { reasonFields } from "../kit/codec.ts";
import type { ArtifactInfo, TransferInfo } from "./port.ts";

export const artifactMessage = (artifact: ArtifactInfo): MessageInitShape<typeof ArtifactSchema> => ({
	artifactId: artifact.id,
	appId: artifact.appId,
	name: artifact.name,
	mimeType: artifact.mimeType,
	sizeBytes: BigInt(artifact.sizeBytes),
	sha256: artifact.complete ? (artifact.sha256 ?? "") : "",
	createdAt: timestampFromMs(artifact.createdAt),
	expiresAt: timestampFromMs(artifact.expiresAt),
	complete: artifact.complete,
});

const TRANSFER_KIND: Readonly<Record<TransferInfo["kind"], LocalTransferKind>> = {
	upload: LocalTransferKind.UPLOAD,
	download: LocalTransferKind.DOWNLOAD,
	fetch: LocalTransferKind.FETCH,
	attachment: LocalTransferKind.ATTACHMENT,
};

const TRANSFER_STATE: Readonly<Record<TransferInfo["state"], LocalTransferState>> = {
	running: LocalTransferState.RUNNING,
	paused: LocalTransferState.PAUSED,
	completed: LocalTransferState.COMPLETED,
	failed: LocalTransferState.FAILED,
	canceled: LocalTransferState.CANCELED,
};

export const transferMessage = (transfer: TransferInfo): MessageInitShape<typeof LocalTransferSchema> => ({
	transferId: transfer.id,
	appId: transfer.appId,
	kind: TRANSFER_KIND[transfer.kind],
	state: TRANSFER_STATE[transfer.state],
	artifactId: transfer.artifactId ?? "",
	name: transfer.name,
	transferredBytes: BigInt(transfer.transferredBytes),
	totalBytes: BigInt(transfer.totalBytes),
	sha256: transfer.sha256 ?? "",
	...reasonFields(transfer.error),
	startedAt: timestampFromMs(transfer.startedAt),
	updatedAt: timestampFromMs(transfer.updatedAt),
});

/** A number of bytes that a request names. */
export function bytesOf(value: bigint, name: string): number {
	if (value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
	throw new NexusError("invalid", `${name} is a number of bytes from 0 on`);
}
