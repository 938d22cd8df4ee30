/** The daemon's log: JSON for programs, short lines for people, and no secrets. */

import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { readable } from "../../packages/daemon/src/runtime/observe/logger.ts";

const LOGGER = new URL("../../packages/daemon/src/runtime/observe/logger.ts", import.meta.url).href;

const logged = (script: string): Record<string, unknown>[] => {
	const code = `import { createLogger } from ${JSON.stringify(LOGGER)}; const log = createLogger("info"); ${script}`;
	const { stderr, stdout } = spawnSync(
		process.execPath,
		["--conditions=nexus-source", "--input-type=module", "-e", code],
		{ encoding: "utf8" },
	);
	expect(stdout).toBe("");
	return stderr
		.trim()
		.split("\n")
		.map((line) => JSON.parse(line) as Record<string, unknown>);
};

describe("the log", () => {
	it("is JSON lines on stderr from its level on, with errors whole", () => {
		const lines = logged(
			`log.debug({}, "no"); log.info({ run: "r" }, "yes"); log.error({ cause: new Error("why") }, "bad");`,
		);
		expect(lines).toMatchObject([
			{ level: "info", msg: "yes", run: "r", time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) },
			{ level: "error", msg: "bad", cause: { message: "why", stack: expect.stringContaining("Error: why") } },
		]);
	});

	it("hides tokens, cookies and sign-in addresses", () => {
		const lines = logged(
			`log.info({ token: "hidden-1", headers: { authorization: "hidden-2", cookie: "hidden-3" }, sign_in_url: "hidden-4" }, "m");`,
		);
		expect(JSON.stringify(lines)).not.toContain("hidden");
		expect(lines[0]).toMatchObject({ token: "[secret]" });
	});

	it("is readable on a terminal", () => {
		const line = JSON.stringify({
			level: "warn",
			time: "2026-01-02T03:04:05.678Z",
			recovered: 2,
			who: "x",
			msg: "settled",
		});
		expect(readable(line)).toBe("03:04:05 warn  settled  recovered=2  who=x\n");
	});
});
