/** The generated code is what the protos and the schemas of the HTTP API say now. */

import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { API_TYPES, apiTypes } from "../../scripts/api-types.ts";
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

it("packages/protocol/src/gen is what `npm run generate` makes of the schemas of the HTTP API", () => {
	expect(readFileSync(API_TYPES, "utf8")).toBe(apiTypes());
});
