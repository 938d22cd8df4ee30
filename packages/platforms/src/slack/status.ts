/** The line that stands below a thread: that something is being written, and which tool runs. */

import type { Target } from "@nexus-stream/adapter";

const TOOL_CHARS_MAX = 40;

export interface Shown {
	typing: boolean;
	/** Which tool runs, as typing tells it. */
	tool: string;
	/** Which tool runs, as the stream tells it, in its own words. */
	doing: string;
}

export interface StatusLines {
	/** What the line says after the change. */
	change(target: Target, change: Partial<Shown>): string;
}

export function createStatusLines(): StatusLines {
	const shown = new Map<string, Shown>();
	return {
		change(target, change) {
			const place = threadKeyOf(target);
			const now = { typing: false, tool: "", doing: "", ...shown.get(place), ...change };
			if (now.typing || now.doing !== "") shown.set(place, now);
			else shown.delete(place);
			const tool = now.tool && `is using ${now.tool.slice(0, TOOL_CHARS_MAX).toWellFormed()}…`;
			return now.doing || tool || (now.typing ? "is thinking…" : "");
		},
	};
}

export const threadKeyOf = ({ to, thread_id }: Target): string => `${to}/${thread_id ?? ""}`;
