/** Artifacts: files that model calls make and callers bring, kept with limits; and the transfers by which they come and go. */

import type { NexusError } from "@nexus-stream/protocol";
import type { Principal } from "../kit/principal.ts";
import type { StoredArtifact } from "./rows.ts";

export type ArtifactInfo = StoredArtifact;

export type NewArtifact = Pick<ArtifactInfo, "appId" | "name" | "mimeType">;

export interface ArtifactPiece extends NewArtifact {
	id?: string;
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
	/** The bytes from `from` up to, and without, `to`, as a separate transfer. */
	stream(artifact: ArtifactInfo, from: number, to: number): AsyncIterable<Uint8Array>;
	/** All of a small one, for a model call. */
	whole(id: string, appId: string, bytesMax: number): Promise<{ artifact: ArtifactInfo; data: Uint8Array }>;
	upload(
		piece: ArtifactPiece,
		principal: Principal,
	): Promise<{ artifact: ArtifactInfo; receivedBytes: number; transferId: string }>;
	readonly transfers: Transfers;
	/** Removes all of an application, also what is being uploaded. */
	clear(appId: string): Promise<void>;
}

/** With what the daemon does to keep them. */
export interface ArtifactService extends Artifacts {
	/** Takes up the uploads that an earlier process left. */
	recover(): Promise<void>;
	/** Removes what is too old, and files that belong to nothing. */
	sweep(): Promise<number>;
	close(): Promise<void>;
}

export type DownloadFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

export type NewTransfer = Omit<TransferInfo, "id" | "state" | "transferredBytes" | "error" | "startedAt" | "updatedAt">;

/** A transfer, as the code that moves its bytes sees it. */
export interface Transfer {
	readonly info: TransferInfo;
	/** Aborts when a caller cancels the transfer. */
	readonly signal: AbortSignal;
	/** Throws `precondition` while it is paused, `aborted` once it was cancelled. */
	check(): void;
	/** Waits while it is paused; rejects with `aborted` once it was cancelled. */
	ready(): Promise<void>;
	/** So many bytes are there in all. */
	reach(transferredBytes: number): void;
	complete(fields?: { sha256?: string }): void;
	fail(error: NexusError): void;
}

export interface Transfers {
	list(principal: Principal): TransferInfo[];
	pause(id: string, principal: Principal): Promise<TransferInfo>;
	resume(id: string, principal: Principal): Promise<TransferInfo>;
	cancel(id: string, principal: Principal): Promise<TransferInfo>;
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (transfer: TransferInfo) => void): () => void;
	/** `canceled` runs when a caller cancels the transfer, before the listeners get the change. */
	begin(transfer: NewTransfer, canceled?: () => Promise<void>): Transfer;
	/** Shows a transfer that other code moves, such as a platform's attachment. It cannot be paused or cancelled here. */
	report(transfer: TransferInfo): void;
	/** As the given `fetch`, except that the body it brings is a transfer of the daemon's own. */
	tracked(fetch: DownloadFetch, appId: string): DownloadFetch;
}
