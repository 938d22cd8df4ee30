/** The tools the `pi` engine offers: they read, they never change anything. */

import type { AgentTool, AgentToolResult } from "@earendil-works/pi-agent-core";
import { readTextFile } from "./read-file.ts";

export interface ToolOptions {
	/** Without it, no file can be read. */
	filesRoot?: string | undefined;
	now: () => number;
}

export function builtInTools({ filesRoot, now }: ToolOptions): AgentTool[] {
	const tools: AgentTool[] = [timeTool(now)];
	if (filesRoot !== undefined) tools.push(readFileTool(filesRoot));
	return tools;
}

const answer = (text: string): AgentToolResult => ({ content: [{ type: "text", text }], details: undefined });

function timeTool(now: () => number): AgentTool {
	return {
		name: "time",
		label: "Time",
		description: "The current date and time in a time zone.",
		parameters: {
			type: "object",
			properties: { zone: { type: "string", description: "An IANA name such as Europe/Berlin; UTC when left out." } },
			additionalProperties: false,
		},
		execute: async (_id, params) => answer(timeIn((params as { zone?: string }).zone ?? "UTC", now())),
	};
}

/** `2026-03-29T14:05:09+02:00, Sunday (Europe/Berlin)` */
export function timeIn(zone: string, now: number): string {
	const field = (options: Intl.DateTimeFormatOptions, locale = "en-CA"): string => {
		try {
			return new Intl.DateTimeFormat(locale, { timeZone: zone, ...options }).format(now);
		} catch (cause) {
			throw new Error(`unknown time zone "${zone}": use an IANA name such as Europe/Berlin`, { cause });
		}
	};
	const date = field({ year: "numeric", month: "2-digit", day: "2-digit" });
	const clock = field({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
	// "GMT+02:00"; some builds write plain "GMT" for zero.
	const offset = field({ timeZoneName: "longOffset" }, "en-US").split("GMT")[1] || "+00:00";
	return `${date}T${clock}${offset}, ${field({ weekday: "long" })} (${zone})`;
}

function readFileTool(filesRoot: string): AgentTool {
	return {
		name: "read_file",
		label: "Read a file",
		description: "Reads a text file. Only files below the configured folder can be read.",
		parameters: {
			type: "object",
			properties: { path: { type: "string", description: "Path relative to the configured folder." } },
			required: ["path"],
			additionalProperties: false,
		},
		execute: async (_id, params) => answer(await readTextFile(filesRoot, (params as { path: string }).path)),
	};
}
