/** The keys of the configuration about applications, jobs and artifacts. */

import type { z } from "zod";
import type { ArtifactLimits } from "../../services/artifacts/limits.ts";
import type { JobLimits } from "../../services/jobs/port.ts";
import type { QuotaLimits } from "../../services/kit/quota.ts";
import { bytes, count, group, ms } from "../../std/config-words.ts";

export const apps = group({ bytesPerAppMax: bytes } satisfies Record<keyof QuotaLimits, z.ZodType>);

export const jobs = group({
	runningMax: count,
	runningPerAppMax: count,
	queuedMax: count,
	queuedPerAppMax: count,
	attemptsMax: count,
	backoffMsMax: ms,
	cancelGraceMs: ms,
	progressMs: ms,
	inlineBytesMax: bytes,
	audioBytesMax: bytes,
} satisfies Record<keyof JobLimits, z.ZodType>);

export const artifacts = group({
	artifactBytesMax: bytes,
	bytesPerAppMax: bytes,
	bytesMax: bytes,
	countPerAppMax: count,
	uploadsMax: count,
	uploadsPerAppMax: count,
	ageMsMax: ms,
	transferIdleMs: ms,
	uploadIdleMs: ms,
} satisfies Record<keyof ArtifactLimits, z.ZodType>);
