/** Help and the first words after a mistake, as a new user reads them. */

import { describe, expect, it } from "vitest";
import { run } from "./in-process.ts";

const COMMANDS =
	"up send tail replay runs sessions stop url memory inbox pair deliver deliveries adapters adapter conformance doctor";

describe("--help", () => {
	it("of nexus fits a terminal of 80 columns", async () => {
		const { code, out } = await run(["--help"]);
		expect(code).toBe(0);
		expect(out.split("\n").filter((line) => line.length > 80)).toEqual([]);
		for (const command of COMMANDS.split(" ")) expect(out).toMatch(new RegExp(`^ {2}${command}\\b`, "m"));
	});

	it.each([
		[["send"], "nexus send --help"],
		[["tail"], "nexus tail --help"],
		[["runs", "--limit", "x"], "nexus runs --help"],
		[["adapter", "add"], "nexus adapter add --help"],
		[["frobnicate"], "nexus --help"],
	])("is pointed to after the mistake in %j", async (args, help) => {
		const { code, err } = await run(args);
		expect([code, err]).toEqual([2, expect.stringContaining(`\nSee \`${help}\`.\n`)]);
	});
});
