/** `nexus conformance` on real adapters: what it prints, what it hands on, and how it ends. */

import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startPlatforms } from "../proof/fake-platforms.ts";
import { removeFolder } from "../runtime/folder.ts";
import { run } from "./in-process.ts";

const ADAPTER = join(import.meta.dirname, "../../examples/adapter.py");

let folder = "";
beforeEach(() => {
	folder = mkdtempSync(join(tmpdir(), "nexus-conformance-cli-"));
});
afterEach(() => removeFolder(folder));

const check = (args: readonly string[], env: Record<string, string> = {}) =>
	run(["conformance", ...args], { env: { NEXUS_TERMINAL_FILE: join(folder, "terminal.txt"), ...env } });

/** The Python example, counting positions in the wrong unit. */
function broken(): string {
	const file = join(folder, "broken.py");
	writeFileSync(file, readFileSync(ADAPTER, "utf8").replace("sum(ord(char) > 0xFFFF for char in text)", "0"));
	return file;
}

describe("nexus conformance", () => {
	it("tells a person case by case, and ends with 0 when all pass", async () => {
		const { code, out } = await check(["--only", "stops it", "--", "python3", ADAPTER]);
		expect(out).toMatch(/^passed +info: one valid JSON object \(\d+ ms\)$/m);
		expect(out).toMatch(/^passed +monitor: the end of its input stops it with exit code 0 \(\d+ ms\)$/m);
		expect(out).toMatch(/\n\n3 passed, 0 failed, 0 skipped\n$/);
		expect(code).toBe(0);
	});

	it("the Python example passes without a terminal, writing to a file in the current folder", async () => {
		// A separate session has no terminal, also when the tests run in one.
		const alone = 'import os, sys; os.setsid(); os.execvp("python3", ["python3", *sys.argv[1:]])';
		const args = ["conformance", "--only", "find", "--", "python3", "-c", alone, ADAPTER];
		const { code, out } = await run(args, { cwd: folder, env: {} });
		expect(out).not.toMatch(/^failed/m);
		expect(out).toMatch(/\n\n3 passed, 0 failed, 0 skipped\n$/);
		expect(code).toBe(0);
		expect(readFileSync(join(folder, "terminal.txt"), "utf8")).toMatch(/^== conformance /);
	});

	it("the example with the kit keeps all of them", async () => {
		const example = join(import.meta.dirname, "../../examples/adapter.mjs");
		const { code, out } = await check(["--", process.execPath, "--conditions=nexus-source", example], {
			NEXUS_FOLDER: join(folder, "messages"),
		});
		const skipped = out.match(/^skipped +\w+/gm)?.map((line) => line.split(/ +/)[1]);
		expect(skipped).toEqual(["monitor", "ask", "ask", "asked", "monitor", "choice"]);
		expect(out).toMatch(/\n\n\d+ passed, 0 failed, 6 skipped\n$/);
		expect(code).toBe(0);
	});

	it("knows the adapters that come with Nexus by their names", async () => {
		const { code, out } = await check(["--only", "info", "nostr"]);
		expect(out).toMatch(/^passed +info: one valid JSON object/m);
		expect(code).toBe(0);
	});

	it("says which promise is broken and how, and ends with 2", async () => {
		const { code, out } = await check(["--only", "any text: emoji", "--", "python3", broken()]);
		expect(out).toMatch(/^failed +any text: .*the source at \d+/m);
		expect(out).toMatch(/\n1 passed, 1 failed, 0 skipped\n$/);
		expect(code).toBe(2);
	});

	it("prints one JSON object for programs", async () => {
		const { code, out } = await check(["--json", "--only", "any text: emoji", "--", "python3", broken()]);
		expect(code).toBe(2);
		expect(JSON.parse(out)).toMatchObject({
			passed: false,
			info: { channel: expect.any(String) },
			cases: [
				{ name: "info: one valid JSON object", result: "passed", ms: expect.any(Number) },
				{ result: "failed", detail: expect.stringMatching(/\w/) },
			],
		});
	});

	it("a program that is not there fails clearly", async () => {
		const { code, out } = await check(["--", join(folder, "nothing")]);
		expect(out).toMatch(/^failed +info: .*ENOENT/m);
		expect(code).toBe(2);
	});

	it("takes an account and a chat for adapters that need them", async () => {
		const [platform] = await startPlatforms(["telegram"]);
		try {
			const account = join(folder, "account.json");
			writeFileSync(account, JSON.stringify({ id: "mine", settings: platform!.settings }));
			const bundled = [
				process.execPath,
				"--conditions=nexus-source",
				join(import.meta.dirname, "../../packages/platforms/src/main.ts"),
				"telegram",
			];
			const options = ["--account", "mine", "--to", "42", "--only", "one delivery"];
			const { code, out } = await check([...options, "--", ...bundled], { NEXUS_ACCOUNT_FILE: account });
			expect(out).toMatch(/^passed +one delivery/m);
			expect(code).toBe(0);
			expect(platform!.fake.visible("42")).toHaveLength(1);
		} finally {
			await platform?.fake.close();
		}
	});
});
