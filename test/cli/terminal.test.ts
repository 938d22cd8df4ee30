/** What a command writes, as a terminal would get it. */

import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { table } from "../../src/cli/table.ts";
import { createTerminal } from "../../src/cli/terminal.ts";

/** A stream that says it is a terminal of this width. */
const screen = (columns: number) => Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: true, columns });

it.each([
	[0, "run_1  completed\n"],
	[8, "run_1  c\n"],
])("a list in a terminal of %i columns is cut to them; one without a size is not", (columns, expected) => {
	const stdout = screen(columns);
	const terminal = createTerminal(stdout, screen(columns), { NO_COLOR: "1" });
	table(terminal, ["RUN", "STATUS"], [["run_1", "completed"]]);
	expect(stdout.read()).toBe(`RUN    STATUS\n${expected}`);
});
