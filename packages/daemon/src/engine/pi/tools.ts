/** The tools the `pi` engine offers: they read, they never change anything. */

import type { AgentTool, AgentToolResult } from "@earendil-works/pi-agent-core";
import { fieldsOf } from "../tool.ts";
import { readTextFile, timeIn } from "../tools/tools.ts";

export interface ToolOptions {
	/** Without it, no file can be read. */
	filesRoot?: string | undefined;
	/** Are not read. */
	secretFiles?: readonly string[] | undefined;
	now: () => number;
}

export function builtInTools({ filesRoot, secretFiles, now }: ToolOptions): AgentTool[] {
	const tools: AgentTool[] = [timeTool(now)];
	if (filesRoot !== undefined) tools.push(readFileTool(filesRoot, secretFiles));
	return tools;
}

const answer = (text: string): AgentToolResult => ({ content: [{ type: "text", text }], details: undefined });

function timeTool(now: () => number): AgentTool {
	return {
		name: "time",
		label: "Time",
		description: "The current date and time in a time zone.",
		parameters: fieldsOf({
			zone: { type: "string", description: "An IANA name such as Europe/Berlin; UTC when left out." },
		}),
		execute: async (_id, params) => answer(timeIn((params as { zone?: string }).zone ?? "UTC", now())),
	};
}

function readFileTool(filesRoot: string, secretFiles: readonly string[] = []): AgentTool {
	return {
		name: "read_file",
		label: "Read a file",
		description: "Reads a text file. Only files below the configured folder can be read.",
		parameters: fieldsOf({ path: { type: "string", description: "Path relative to the configured folder." } }, "path"),
		execute: async (_id, params) =>
			answer(await readTextFile(filesRoot, (params as { path: string }).path, { secretFiles })),
	};
}
