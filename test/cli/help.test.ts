/** Help and the first words after a mistake, as a new user reads them. */

import { Command, Help } from "commander";
import { describe, expect, it } from "vitest";
import type { Local } from "../../packages/daemon/src/cli/command.ts";
import { COMMAND_FILES } from "../../packages/daemon/src/cli/commands.ts";
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

	it("of nexus shows every command with the arguments that it takes", async () => {
		for (const { load, commands } of COMMAND_FILES) {
			const { declare } = await load();
			const declared = Object.entries(declare).map(([name, add]) => {
				const command = new Command(name);
				add(command, {} as Local);
				return new Help().subcommandTerm(command);
			});
			expect(declared).toEqual(Object.keys(commands));
		}
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
