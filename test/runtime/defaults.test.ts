/** The configuration page tells the truth about the defaults. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { BROKER_LIMITS } from "../../packages/daemon/src/broker/port.ts";
import { EDGE_LIMITS } from "../../packages/daemon/src/edge/edge.ts";
import { MCP_LIMITS } from "../../packages/daemon/src/engine/mcp/port.ts";
import { CONFIG_DEFAULTS } from "../../packages/daemon/src/runtime/config/config.ts";
import { ARTIFACT_LIMITS } from "../../packages/daemon/src/services/artifacts/limits.ts";
import { JOB_LIMITS } from "../../packages/daemon/src/services/jobs/limits.ts";
import { MEMORY_DEFAULTS } from "../../packages/daemon/src/services/memory/memory.ts";

const page = readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8");

describe("docs/configuration.md", () => {
	const { stopDeadlineMs, retention } = CONFIG_DEFAULTS;
	const limits = {
		...BROKER_LIMITS,
		...EDGE_LIMITS,
		...MCP_LIMITS,
		...MEMORY_DEFAULTS,
		...JOB_LIMITS,
		...ARTIFACT_LIMITS,
	};
	it.each(Object.entries({ ...limits, ...retention, stopDeadlineMs }))("%s is %s by default", (key, value) => {
		expect(page).toMatch(new RegExp(`^\\| \`${key}\` \\|.*\\| \`${value}\`.*\\|$`, "m"));
	});
});
