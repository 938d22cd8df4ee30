/** Help and the first words after a mistake, as a new user reads them. */

import { Command, Help } from "commander";
import { describe, expect, it } from "vitest";
import type { Local } from "../../packages/daemon/src/cli/command.ts";
import { COMMAND_FILES } from "../../packages/daemon/src/cli/commands.ts";
import { ERROR_TABLE } from "../../packages/protocol/src/protocol.ts";
import { run } from "./in-process.ts";

describe("--help", () => {
	it("of nexus fits a terminal of 80 columns, and names every command, examples and the exit codes", async () => {
		const { code, out } = await run(["--help"]);
		expect(code).toBe(0);
		expect(out.split("\n").filter((line) => line.length > 80)).toEqual([]);
		for (const { commands } of COMMAND_FILES)
			for (const usage of Object.keys(commands)) expect(out).toContain(`\n  ${usage}`);
		expect(out).toContain("\nExamples:\n");
		const told = [...out.slice(out.indexOf("Exit codes:")).matchAll(/\b(\d+) /g)].map(([, exit]) => Number(exit));
		const possible = Object.values(ERROR_TABLE).map(([, , exit]): number => exit);
		expect(told).toEqual([...new Set([0, ...possible])].toSorted((one, other) => one - other));
	});

	it("of each command tells how it is used", async () => {
		const commands = COMMAND_FILES.flatMap((file) => Object.keys(file.commands)).map((usage) => usage.split(" ")[0]!);
		const pages = await Promise.all(commands.map((command) => run([command, "--help"])));
		expect(pages.map(({ code, out }) => [code, /^Usage: nexus (\w+)/.exec(out)?.[1]])).toEqual(
			commands.map((command) => [0, command]),
		);
		expect((await run(["--version"])).out).toMatch(/^\d+\.\d+\.\d+\n$/);
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
