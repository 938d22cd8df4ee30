/** The example that a newcomer tries first: it loads as it is, and plays to its end without a network or a key. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ApprovalJson, RunJson } from "../../packages/protocol/src/gen/api.ts";
import { freshFolder } from "../runtime/folder.ts";
import { daemonHere, jsonLines, nexus } from "./in-process.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/agents");

test("§8: examples/agents routes, asks, fails, and continues where it was cut off", async () => {
	const data = freshFolder();
	const daemon = await daemonHere(data, { cwd: EXAMPLE });
	onTestFinished(() => daemon.close());
	const run = (...args: string[]) => nexus([...args, "--data", data]);
	const runs = async () => jsonLines<RunJson>((await run("runs", "--json").end()).out);

	const sent = run("send", "What do the notes say?", "--session", "tour");
	await sent.until(({ err }) => err.includes("nexus approve"));
	const [asked] = jsonLines<ApprovalJson>((await run("approvals", "--json").end()).out);
	expect(asked).toMatchObject({ agent: "operator", tool: "bash", args: { command: "wc -w notes.md" } });
	await run("approve", asked!.id).end();
	const { code, out, err } = await sent.end();
	expect(code).not.toBe(0);
	expect(err).toContain("part of the script");
	expect(out).toContain("Scripted: no model writes this");
	expect(out).not.toContain("Somebody has to read");

	const [failed] = await runs();
	expect(failed).toMatchObject({ status: "failed", can_continue: true });
	const continued = await run("continue", failed!.run_id).end();
	expect(continued).toMatchObject({ code: 0, out: expect.stringContaining("That was the tour") });
	const [newest, before] = await runs();
	expect(newest).toMatchObject({ status: "completed", continues: before!.run_id });
	const acted = [...before!.tool_calls, ...newest!.tool_calls].map(({ name, agent }) => `${agent} ${name}`);
	expect(acted).toEqual([
		...["lead route", "writer read", "writer complete", "lead route", "operator bash", "operator complete"],
		...["lead route", expect.any(String), expect.any(String), expect.any(String), "lead end_conversation"],
	]);
	expect(acted.slice(7, 10).toSorted()).toEqual(["operator complete", "operator time", "writer complete"]);
	expect((await run("phase", "tour").end()).out).toContain("verification");
});

test("§8: README and docs name the command that starts it", () => {
	const command = "npm start -- --config examples/agents/nexus.yaml";
	for (const file of ["README.md", "docs/agents.md", "examples/agents/nexus.yaml"])
		expect(readFileSync(join(EXAMPLE, "../..", file), "utf8"), file).toContain(command);
});
