/** A module of the user's that never finishes loading. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { importWithin } from "../../packages/daemon/src/std/import-within.ts";

it("a top-level await that never ends is refused within ten seconds", async () => {
	const dir = mkdtempSync(join(tmpdir(), "nexus-import-"));
	onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
	writeFileSync(join(dir, "hangs.mjs"), "await new Promise(() => {});");
	vi.useFakeTimers();
	onTestFinished(() => void vi.useRealTimers());
	const refused = expect(importWithin(join(dir, "hangs.mjs"))).rejects.toThrow("its top level is still waiting");
	vi.advanceTimersByTime(10_000);
	await refused;
});
