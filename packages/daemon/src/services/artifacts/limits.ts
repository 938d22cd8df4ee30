/** Limits on the size, number and age of artifacts, and checks of what an upload announces. A name is for people: it is never used as a path. */

import { NexusError } from "@nexus-stream/protocol";
import type { ArtifactPiece, NewArtifact } from "./port.ts";

export const ARTIFACT_LIMITS = {
	/** Bytes of one artifact. */
	artifactBytesMax: 256 * 1024 ** 2,
	/** Bytes of all artifacts of one application, and of all applications. An upload counts with its announced size. */
	bytesPerAppMax: 1024 ** 3,
	bytesMax: 4 * 1024 ** 3,
	countPerAppMax: 10_000,
	/** Uploads that are not whole, of all applications and of one: each is in memory. */
	uploadsMax: 1000,
	uploadsPerAppMax: 100,
	/** They are removed after this time. */
	ageMsMax: 7 * 24 * 60 * 60_000,
	/** A download that is not continued ends after this time. */
	transferIdleMs: 10 * 60_000,
	/** An upload that gets no piece for this time is removed. */
	uploadIdleMs: 24 * 60 * 60_000,
};

export type ArtifactLimits = typeof ARTIFACT_LIMITS;

/** A piece of an upload or of a download. */
export const PIECE_BYTES_MAX = 1024 * 1024;

const NAME_CHARS_MAX = 255;
const MIME_TYPE = /^[a-z0-9!#$&^_.+-]{1,64}\/[a-z0-9!#$&^_.+-]{1,64}(; ?charset=[a-z0-9-]{1,32})?$/;
const UNKNOWN_TYPE = "application/octet-stream";
const SHA256 = /^[0-9a-f]{64}$/;

export function checkedAnnouncement(
	appId: string,
	{ name, mimeType, sizeBytes, sha256 }: ArtifactPiece,
): NewArtifact & { sizeBytes: number; sha256?: string } {
	const sum = sha256.toLowerCase();
	const type = mimeType === "" ? UNKNOWN_TYPE : mimeType.toLowerCase();
	if (name === "" || name.length > NAME_CHARS_MAX || /[\p{Cc}\p{Cf}\p{Cs}/\\]/u.test(name))
		throw invalid(`name: 1 to ${NAME_CHARS_MAX} characters, no slash or control character`);
	if (!MIME_TYPE.test(type)) throw invalid("mime_type: such as image/png");
	if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) throw invalid("size_bytes: how many bytes there will be");
	if (sum !== "" && !SHA256.test(sum)) throw invalid("sha256: 64 hex digits, or nothing");
	return { appId, name, mimeType: type, sizeBytes, sha256: sum || undefined };
}

/** Makes a type from a provider or a request safe to send in a header. */
export function safeMimeType(mimeType: string): string {
	const type = mimeType.trim().toLowerCase();
	return MIME_TYPE.test(type) ? type : UNKNOWN_TYPE;
}

/** Within what there is, or will be. */
export function checkOffset(offset: number, sizeBytes: number): void {
	if (!Number.isSafeInteger(offset) || offset < 0 || offset > sizeBytes)
		throw invalid(`offset: from 0 to ${sizeBytes}, which is its size`);
}

const invalid = (message: string) => new NexusError("invalid", message);

export const tooLarge = (bytesMax: number) => new NexusError("too_large", `${bytesMax} bytes are the most`);
