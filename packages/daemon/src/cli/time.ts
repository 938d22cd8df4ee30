/** Times as a person says them on a command line. */

import { NexusError } from "@nexus-stream/protocol";

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `12h` is twelve hours before now; a date is its begin in UTC. As RFC 3339. */
export function timeOf(text: string, now: number): string {
	const [, count, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
	if (count !== undefined && unit !== undefined) return new Date(now - Number(count) * UNIT_MS[unit]!).toISOString();
	const at = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2}))?$/.test(text)
		? Date.parse(text)
		: Number.NaN;
	if (!Number.isNaN(at)) return new Date(at).toISOString();
	throw new NexusError(
		"invalid",
		`${JSON.stringify(text)} is no time; use 30m, 12h, 7d, 2026-11-17 or 2026-11-17T08:00:00Z`,
	);
}
