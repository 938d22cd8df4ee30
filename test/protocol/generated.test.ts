/** The generated code is what the protos say now. */

import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ROOT, runBin } from "../../scripts/run.ts";

/** By file. */
const filesBelow = (folder: string): Record<string, string> =>
	Object.fromEntries(
		globSync("**/*.ts", { cwd: folder })
			.toSorted()
			.map((file) => [file, readFileSync(join(folder, file), "utf8")]),
	);

it("Z16: packages/client/src/gen is what `npm run generate` makes of proto/", async () => {
	const folder = mkdtempSync(join(tmpdir(), "nexus-gen-"));
	onTestFinished(() => rmSync(folder, { recursive: true }));
	const env = { PATH: `${join(ROOT, "node_modules/.bin")}:${process.env.PATH}` };
	const { code, output } = await runBin("buf", ["generate", "-o", folder], { capture: true, env });
	expect(code, output).toBe(0);
	expect(filesBelow(join(ROOT, "packages/client/src/gen"))).toEqual(
		filesBelow(join(folder, "packages/client/src/gen")),
	);
});
