/** The tools that Nexus brings along, so that a misspelt one is found when the configuration is read. MCP servers have more, named `mcp__server__tool`. */

export const TOOL_NAMES: readonly string[] = [
	"ask",
	"bash",
	"edit",
	"forget",
	"learn",
	"read",
	"recall",
	"remember",
	"time",
	"write",
];
