/** Helpers of the tools' tests: engine services, a request, and a call of one tool. */

import type { EngineServices } from "../../../packages/daemon/src/engine/entry.ts";
import type { Tool, ToolContext, ToolResult } from "../../../packages/daemon/src/engine/tool.ts";
import type { EngineRequest } from "../../../packages/protocol/src/engine.ts";
import { contentText } from "../../../packages/protocol/src/protocol.ts";
import { requestOf as request } from "../demo-play.ts";

export const engineServicesOf = (fields: Partial<EngineServices> = {}): EngineServices => ({
	toolSources: [],
	dataDir: "/nonexistent/data",
	protectedFiles: [],
	secretFiles: [],
	config: {},
	warn: () => {},
	...fields,
});

export const requestOf = (fields: Partial<EngineRequest> = {}): EngineRequest => request("hello", fields);

export const contextOf = (fields: Partial<ToolContext> = {}): ToolContext => ({
	callId: "call_1",
	agent: "main",
	signal: new AbortController().signal,
	request: requestOf(),
	state: { setState: () => {}, getState: () => undefined, hasState: () => false, getAllState: () => ({}) },
	progress: () => {},
	...fields,
});

export const textOf = ({ content }: ToolResult): string => contentText(content);

/** Calls the tool of this name; what it says as text, also when it fails. */
export async function call(
	tools: readonly Tool[],
	name: string,
	args: Record<string, unknown>,
	fields: Partial<ToolContext> = {},
): Promise<{ text: string; failed: boolean }> {
	const tool = tools.find((one) => one.name === name);
	if (!tool) throw new Error(`there is no tool ${name}`);
	try {
		const result = await tool.execute(args, contextOf(fields));
		return { text: textOf(result), failed: result.failed === true };
	} catch (cause) {
		return { text: (cause as Error).message, failed: true };
	}
}
