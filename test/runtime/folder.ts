/** A fresh folder for each test, removed afterwards. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";

export function freshFolder(): string {
	const folder = mkdtempSync(join(tmpdir(), "nexus-test-"));
	onTestFinished(() => removeFolder(folder));
	return folder;
}

/** Children of a killed daemon live on for a moment, and may write a last file where everything is being removed. */
export const removeFolder = (folder: string): void =>
	rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
