/** The output of a command as a terminal gets it. */

import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { table } from "../../packages/daemon/src/cli/table.ts";
import { createTerminal } from "../../packages/daemon/src/cli/terminal.ts";

/** A stream that says it is a terminal of this width. */
const screen = (columns: number) => Object.assign(new PassThrough({ encoding: "utf8" }), { isTTY: true, columns });

const written = (
	columns: number,
	...list: Parameters<typeof table> extends [unknown, ...infer Rest] ? Rest : never
) => {
	const stdout = screen(columns);
	table(createTerminal(stdout, screen(columns), { NO_COLOR: "1" }), ...list);
	return (stdout.read() as string).trimEnd().split("\n");
};

const RUN = "run_01JD0000000000000000000000";
const MESSAGE = "Why does the build fail on the second machine, and only there, since last Tuesday?";
const HEAD = ["RUN", "STATUS", "SESSION", "STARTED", "TOOK", "MESSAGE"];
const ROW = [RUN, "completed", "default", "3 min ago", "850 ms", MESSAGE];
const OPTIONAL = ["TOOK", "STARTED", "SESSION"];

it("80 columns show the message, and go without the columns that matter less", () => {
	expect(written(80, HEAD, [ROW], OPTIONAL)).toEqual([
		`RUN${" ".repeat(29)}STATUS     SESSION  MESSAGE`,
		`${RUN}  completed  default  Why does the build fail on…`,
	]);
});

it.each([0, 120, 200])("%i columns are used: 0 means an unknown size", (columns) => {
	const [, line] = written(columns, HEAD, [ROW], OPTIONAL);
	expect(line).toMatch(/completed {2}default {2}3 min ago {2}850 ms {2}Why/);
	const width = columns || 120;
	expect(line!.length).toBeLessThanOrEqual(width);
	expect(line!.length).toBeGreaterThan(width === 200 ? 150 : width - 10);
	expect(line!.endsWith(width === 200 ? "Tuesday?" : "…")).toBe(true);
});

it("where no column can be left out, the last cell gets a separate line", () => {
	const error = "the platform refuses the token";
	expect(
		written(50, ["ACCOUNT", "PROCESSES", "ERROR"], [["telegram/main", "monitor running, send running", error]]),
	).toEqual(["ACCOUNT        PROCESSES", "  ERROR", "telegram/main  monitor running, send running", `  ${error}`]);
});

it("wide letters count as two columns", () => {
	const [, line] = written(31, ["RUN", "MESSAGE"], [["run_1", "漢字".repeat(20)]]);
	expect(line).toBe(`run_1  ${"漢字".repeat(5)}漢…`);
});

it("a pipe gets everything, separated by tabs", () => {
	const stdout = Object.assign(new PassThrough({ encoding: "utf8" }), { columns: 20 });
	table(createTerminal(stdout, stdout, {}), HEAD, [ROW], OPTIONAL);
	expect(stdout.read()).toBe(`${ROW.join("\t")}\n`);
});
