/** What artifacts may take. */

export interface ArtifactLimits {
	/** Of one. */
	artifactBytesMax: number;
	/** Of all of an application, and of all. What is being uploaded counts with what it announced. */
	bytesPerAppMax: number;
	bytesMax: number;
	countPerAppMax: number;
	/** Uploads that are not whole, of all applications and of one: each is in memory. */
	uploadsMax: number;
	uploadsPerAppMax: number;
	/** They are removed after this time. */
	ageMsMax: number;
	/** A download that nobody goes on with is over after this time. */
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
