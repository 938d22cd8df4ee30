/** The tools that every agent can have: the time, a file below the configured folder, and the end of its work. */

import { readTextFile, timeIn } from "../pi/pi.ts";
import { type Tool, textResult } from "../tools/tools.ts";
import { askTool } from "./ask.ts";
import { TERMINAL } from "./termination.ts";

export interface BuiltInOptions {
	/** Without it, no file can be read. */
	filesRoot?: string | undefined;
	now: () => number;
}

export function builtInTools({ filesRoot, now }: BuiltInOptions): Tool[] {
	const tools = [timeTool(now), askTool];
	if (filesRoot !== undefined) tools.push(readTool(filesRoot));
	return tools;
}

const timeTool = (now: () => number): Tool => ({
	name: "time",
	description: "The current date and time in a time zone.",
	parameters: {
		type: "object",
		properties: { zone: { type: "string", description: "An IANA name such as Europe/Berlin; UTC when left out." } },
		additionalProperties: false,
	},
	execute: async ({ zone = "UTC" }) => textResult(timeIn(zone as string, now())),
});

const readTool = (filesRoot: string): Tool => ({
	name: "read",
	description: "Reads a text file. Only files below the configured folder can be read.",
	parameters: {
		type: "object",
		properties: { path: { type: "string", description: "Path relative to the configured folder." } },
		required: ["path"],
		additionalProperties: false,
	},
	execute: async ({ path }) => textResult(await readTextFile(filesRoot, path as string)),
});

/** What it does is in its arguments: the loop reads them. */
export const completeTool: Tool = {
	name: TERMINAL.complete,
	description: "Signals that your work is done. Call it once, at the very end.",
	parameters: {
		type: "object",
		properties: {
			response: { type: "string", description: "Shown to the person, if you have said nothing else." },
			summary: { type: "string", description: "What you did, for whoever goes on." },
		},
		additionalProperties: false,
	},
	terminal: true,
	describe: () => "✅ Completing",
	execute: async () => textResult("done"),
};
