/** The weight of the files that a browser loads before it can show a chat. */

import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, type Rolldown } from "vite";
import { expect, it, vi } from "vitest";

const FIRST_LOAD_GZIP_BYTES_MAX = 80_000;
/** The runtime client, its library and everything generated. */
const OF_THE_RUNTIME = /packages\/client\/src\/(?:gen|runtime)|@bufbuild|@connectrpc/;

it("a chat waits for at most 80 kB of code, and for nothing of the runtime client", async () => {
	vi.stubEnv("NODE_ENV", "production");
	const configFile = fileURLToPath(new URL("../../packages/web/vite.config.ts", import.meta.url));
	const built = await build({ configFile, logLevel: "silent", build: { write: false } });
	const chunks = (built as Rolldown.RolldownOutput).output.filter((each) => each.type === "chunk");
	const first = new Set(chunks.filter(({ isEntry }) => isEntry));
	for (const { imports } of first) for (const chunk of chunks) if (imports.includes(chunk.fileName)) first.add(chunk);
	const bytes = [...first].reduce((sum, { code }) => sum + gzipSync(code).length, 0);
	expect(bytes).toBeLessThanOrEqual(FIRST_LOAD_GZIP_BYTES_MAX);
	const modules = chunks.map((chunk) => [chunk, chunk.moduleIds.filter((id) => OF_THE_RUNTIME.test(id))] as const);
	expect(modules.filter(([chunk]) => first.has(chunk)).flatMap(([, found]) => found)).toEqual([]);
	// The pattern still finds it where it belongs.
	expect(modules.flatMap(([, found]) => found)).not.toEqual([]);
});
