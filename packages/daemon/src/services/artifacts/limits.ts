/** Limits on the size, number and age of artifacts. */

export interface ArtifactLimits {
	/** Bytes of one artifact. */
	artifactBytesMax: number;
	/** Bytes of all artifacts of one application, and of all applications. An upload counts with its announced size. */
	bytesPerAppMax: number;
	bytesMax: number;
	countPerAppMax: number;
	/** Uploads that are not whole, of all applications and of one: each is in memory. */
	uploadsMax: number;
	uploadsPerAppMax: number;
	/** They are removed after this time. */
	ageMsMax: number;
	/** A download that is not continued ends after this time. */
	transferIdleMs: number;
	/** An upload that gets no piece for this time is removed. */
	uploadIdleMs: number;
}

export const ARTIFACT_LIMITS: ArtifactLimits = {
	artifactBytesMax: 256 * 1024 ** 2,
	bytesPerAppMax: 1024 ** 3,
	bytesMax: 4 * 1024 ** 3,
	countPerAppMax: 10_000,
	uploadsMax: 1000,
	uploadsPerAppMax: 100,
	ageMsMax: 7 * 24 * 60 * 60_000,
	transferIdleMs: 10 * 60_000,
	uploadIdleMs: 24 * 60 * 60_000,
};

/** A piece of an upload or of a download. */
export const PIECE_BYTES_MAX = 1024 * 1024;
