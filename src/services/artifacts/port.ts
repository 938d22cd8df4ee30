/** Artifacts: files that model calls make and callers bring, kept with limits; and the transfers by which they come and go. */

import type { Principal } from "../principal.ts";

export interface ArtifactInfo {
	id: string;
	appId: string;
	name: string;
	mimeType: string;
	sizeBytes: number;
	/** Once it is whole. */
	sha256?: string;
	createdAt: number;
	expiresAt: number;
	complete: boolean;
}

export interface NewArtifact {
	appId: string;
	name: string;
	mimeType: string;
}

export interface ArtifactPiece {
	id?: string;
	appId: string;
	name: string;
	mimeType: string;
	sizeBytes: number;
	sha256: string;
	offset: number;
	chunk: Uint8Array;
}

export interface TransferInfo {
	id: string;
	appId: string;
	kind: "upload" | "download" | "fetch" | "attachment";
	state: "running" | "paused" | "completed" | "failed" | "canceled";
	artifactId?: string;
	name: string;
	transferredBytes: number;
	/** -1: not known. */
	totalBytes: number;
	sha256?: string;
	error?: { code: string; message: string };
	startedAt: number;
	updatedAt: number;
}

export interface Artifacts {
	/** Makes a whole one of bytes that the daemon has or gets. Rejects with QUOTA_EXCEEDED or `too_large`. */
	store(artifact: NewArtifact, data: Uint8Array | AsyncIterable<Uint8Array>): Promise<ArtifactInfo>;
	find(id: string, principal: Principal): Promise<ArtifactInfo | undefined>;
	/** A piece from an offset; at most 1 MiB. */
	read(
		id: string,
		offset: number,
		bytesMax: number,
		principal: Principal,
	): Promise<{ artifact: ArtifactInfo; chunk: Uint8Array }>;
	/** All of a small one, for a model call. */
	whole(id: string, appId: string, bytesMax: number): Promise<{ artifact: ArtifactInfo; data: Uint8Array }>;
	upload(
		piece: ArtifactPiece,
		principal: Principal,
	): Promise<{ artifact: ArtifactInfo; receivedBytes: number; transferId: string }>;
	transfers: Transfers;
	/** Removes what is too old. */
	sweep(): Promise<number>;
	close(): Promise<void>;
}

export interface Transfers {
	list(principal: Principal): TransferInfo[];
	pause(id: string, principal: Principal): Promise<TransferInfo>;
	resume(id: string, principal: Principal): Promise<TransferInfo>;
	cancel(id: string, principal: Principal): Promise<TransferInfo>;
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (transfer: TransferInfo) => void): () => void;
	/** A platform's attachment, which is reported and cannot be paused. */
	report(transfer: TransferInfo): void;
}
