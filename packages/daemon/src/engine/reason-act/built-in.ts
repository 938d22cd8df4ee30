/** The tool that ends an agent's work. */

import { type Tool, textResult } from "../tools/tools.ts";
import { TERMINAL } from "./termination.ts";

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
	describe: ({ summary }) => (typeof summary === "string" && summary !== "" ? `✅ Done: ${summary}` : "✅ Done"),
	execute: async () => textResult("done"),
};
