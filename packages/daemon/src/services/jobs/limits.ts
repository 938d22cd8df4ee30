/** Limits of jobs. */

export interface JobLimits {
	/** Jobs that run at a time, of all applications and of one. */
	runningMax: number;
	runningPerAppMax: number;
	/** Jobs that wait, of all applications and of one; further ones are refused. */
	queuedMax: number;
	queuedPerAppMax: number;
	/** Attempts that a submitter may ask for. */
	attemptsMax: number;
	/** The longest pause between two of them. */
	backoffMsMax: number;
	/** A provider that does not heed a cancellation is waited for so long. */
	cancelGraceMs: number;
	/** Progress is recorded at most so often. */
	progressMs: number;
	/** A larger text or larger embeddings become an artifact. */
	inlineBytesMax: number;
	/** Size of a recording to transcribe. */
	audioBytesMax: number;
}

export const JOB_LIMITS: JobLimits = {
	runningMax: 8,
	runningPerAppMax: 4,
	queuedMax: 1000,
	queuedPerAppMax: 250,
	attemptsMax: 10,
	backoffMsMax: 5 * 60_000,
	cancelGraceMs: 5000,
	progressMs: 1000,
	inlineBytesMax: 256 * 1024,
	audioBytesMax: 25 * 1024 * 1024,
};

/** The first pause between two attempts when the submitter names none. */
export const BACKOFF_MS = 1000;
