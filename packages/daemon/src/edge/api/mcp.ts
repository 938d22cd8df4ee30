/** The handlers about MCP servers. */

import type * as wire from "@nexus-stream/protocol";
import { systemClock } from "@nexus-stream/protocol/clock";
import { defined } from "../../std/defined.ts";
import type { Handlers } from "../http/handler.ts";
import type { EdgeDeps } from "../port.ts";

export function mcpHandlers({ mcp, clock = systemClock }: EdgeDeps) {
	const list = () => ({ now: clock.now(), servers: (mcp?.status() ?? []).map(serverView) });
	return {
		listMcp: list,
		async startMcp() {
			await mcp?.start();
			return list();
		},
	} satisfies Partial<Handlers>;
}

type ServerStatus = ReturnType<NonNullable<EdgeDeps["mcp"]>["status"]>[number];
function serverView({ lastError, until, pid, tools, refused, ...status }: ServerStatus): wire.McpServerJson {
	return {
		...status,
		...defined({ until, pid, last_error: lastError }),
		tools: [...tools],
		refused: [...refused],
	};
}
