/** `nexus workflow`, against a daemon with its real jobs and the demonstration model. */

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { daemonWith, jsonLines, nexus } from "./in-process.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/workflows/summary.yaml");

/** As `--json` prints a workflow, and an event of one. */
interface Workflow {
	workflow_id: string;
	state: string;
	output: object;
	nodes: { node_id: string; output: object }[];
}
interface WorkflowEvent {
	event_type: string;
	workflow: Workflow;
}

async function house() {
	const { cwd, start: run } = await daemonWith();
	const start = (...args: string[]) => run(["workflow", ...args]);
	return {
		start,
		on: (...args: string[]) => start(...args).end(),
		/** Writes a definition and gives its name. */
		file(definition: object) {
			writeFileSync(join(cwd, "w.yaml"), JSON.stringify(definition));
			return "w.yaml";
		},
	};
}

describe("nexus workflow", () => {
	test("help names files that there are", async () => {
		for (const args of [["--help"], ["run", "--help"]]) {
			const { out } = await nexus(["workflow", ...args]).end();
			const named = [...out.matchAll(/workflow run (\S+\.yaml)/g)].map(([, file]) => file!);
			expect(named.length).toBeGreaterThan(0);
			for (const file of named)
				expect([file, existsSync(join(import.meta.dirname, "../..", file))]).toEqual([file, true]);
		}
	});

	test("the example runs offline: its nodes are shown, its output is printed, and its text can be read by its run", async () => {
		const { on } = await house();
		const question = "/demo tokens=60 rate=0";
		const ran = await on("run", EXAMPLE, "--input", `question=${question}`, "--input", "words_max=5");
		expect(ran).toMatchObject({ code: 0 });
		expect(ran.out).toMatch(/^\/demo tokens=60 rate=0 \(\d+ words, a vector of \d+ numbers\)\n\n\S/);
		for (const node of ["answer", "question-vector", "measure", "is-long", "chosen", "report"])
			expect(ran.err).toMatch(new RegExp(`${node} +completed`));
		expect(ran.err).toMatch(/answer +running +run_/);
		expect(ran.err).toMatch(/(?:shorten|keep) +skipped/);
		const id = /^wf_\w+/m.exec(ran.err)![0];
		const shown = jsonLines<{ workflow: Workflow }>((await on("show", id, "--json")).out)[0]!.workflow;
		const byId = Object.fromEntries(shown.nodes.map((node) => [node.node_id, node]));
		expect(byId.answer!.output).toMatchObject({ text: expect.stringMatching(/\S/), demo: true });
		expect(byId["question-vector"]!.output).toMatchObject({ embeddings: [expect.any(Array)] });
		expect(shown.state).toBe("WORKFLOW_STATE_COMPLETED");
		const table = await on("show", id);
		expect(table.out).toMatch(/report\tTRANSFORM_TEMPLATE\tcompleted/);
		expect((await on("list")).out).toContain(`${id}\tcompleted\t100 %`);
		expect((await on()).out).toContain(`${id}\tcompleted\t100 %`);
	});

	test("--json prints every event, then the workflow; watch tells the same of one that has ended", async () => {
		const { on, file } = await house();
		const definition = { nodes: [{ id: "a", kind: "TRANSFORM_TEMPLATE", config: { template: "hi" } }] };
		const ran = await on("run", file(definition), "--json");
		const all = jsonLines<WorkflowEvent & { output: object }>(ran.out);
		expect(all.map(({ event_type }) => event_type?.replace("WORKFLOW_EVENT_TYPE_", ""))).toEqual([
			"ACCEPTED",
			"STARTED",
			"NODE_STARTED",
			"NODE_COMPLETED",
			"COMPLETED",
			undefined,
		]);
		expect(all.at(-1)!.output).toEqual({ a: { text: "hi" } });
		const { workflow_id: id } = all[0]!.workflow;
		const watched = await on("watch", id);
		expect(watched).toMatchObject({ code: 0, out: "hi\n" });
		expect(jsonLines<WorkflowEvent>((await on("watch", id, "--json", "--after", "2")).out)[0]!.event_type).toBe(
			"WORKFLOW_EVENT_TYPE_NODE_STARTED",
		);
	});

	test("the exit code says how it ended, and words why", async () => {
		const { on, file } = await house();
		const node = (kind: string, config = {}) => ({ nodes: [{ id: "a", kind, config }] });
		const asking = (connector_id: string) => node("AI_STREAM", { prompt: "x", connector_id });
		for (const [definition, code, why] of [
			[node("TRANSFORM_SCRIPT", { code: "throw 1" }), 2, "node a failed"],
			[{ input: { connector: "nope" }, ...asking("{{input.connector}}") }, 4, "nope"],
			[asking("nope"), 2, "no connector nope"],
			[node("X"), 2, "node a: there is no kind X"],
			[{ name: "x" }, 2, "it has no nodes"],
		] as const)
			expect(await on("run", file(definition))).toMatchObject({ code, err: expect.stringContaining(why) });
		expect(await on("run", "nothing.yaml")).toMatchObject({ code: 2 });
		expect(await on("run", EXAMPLE, "--input", "question")).toMatchObject({
			code: 2,
			err: expect.stringContaining("name=value"),
		});
		expect(await on("watch", "wf_0")).toMatchObject({ code: 4 });
	});

	test("Ctrl-C leaves it running and says how to watch and cancel it; cancel ends it", async () => {
		const { on, start, file } = await house();
		const prompt = "/demo tokens=100000 rate=50";
		const running = start("run", file({ nodes: [{ id: "a", kind: "AI_STREAM", config: { prompt } }] }));
		await running.until(({ err }) => /a +running/.test(err));
		const left = await running.end("SIGINT");
		const id = /^wf_\w+/m.exec(left.err)![0];
		expect(left).toMatchObject({ code: 130, err: expect.stringContaining(`nexus workflow cancel ${id}`) });
		expect((await on("list", "--state", "running")).out).toContain(id);
		expect(await on("cancel", id, "not", "needed")).toMatchObject({ code: 0, out: `${id}: canceled\n` });
		expect(await on("watch", id)).toMatchObject({ code: 130, err: expect.stringContaining("canceled: not needed") });
	});

	test("AGENT_RUN is a turn of a session", async () => {
		const { on, file } = await house();
		const agent = { id: "ask", kind: "AGENT_RUN", config: { session: "work", text: "/demo tokens=3 rate=1000" } };
		const ran = await on("run", file({ nodes: [agent] }), "--json");
		const workflow = jsonLines<Workflow>(ran.out).at(-1)!;
		expect(workflow).toMatchObject({
			state: "WORKFLOW_STATE_COMPLETED",
			nodes: [{ run_id: expect.stringMatching(/^run_/) }],
		});
		expect(workflow.nodes[0]!.output).toMatchObject({ text: expect.stringMatching(/\S/) });
	});
});
