/** Workflows and jobs in front of a person: the shipped example from the first node to its result, over a reload; cancel; files. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { parse } from "yaml";
import type { WorkflowDefinitionJson } from "../../packages/daemon/src/services/workflows/port.ts";
import { submissionOf } from "../submission.ts";
import { startDaemon, TOKEN } from "./daemon.ts";
import { describeInBrowser, openAt, upTo } from "./kit.ts";
import { createOwnWorld } from "./world.ts";

const EXAMPLE = parse(
	readFileSync(new URL("../../examples/workflows/summary.yaml", import.meta.url), "utf8"),
) as WorkflowDefinitionJson;
const ENGINE = fileURLToPath(new URL("./held-engine.ts", import.meta.url));

const nodeOf = (page: Page, id: string) => page.locator(`.node[data-node="${id}"]`);
const textOf = async (page: Page, id: string): Promise<number[]> =>
	(await nodeOf(page, id).locator(".node-text .prose").innerText()).split(/\s+/).filter(Boolean).map(Number);
const stateOf = (page: Page, id: string, state: string) =>
	page.locator(`.node[data-node="${id}"][data-state="${state}"]`).waitFor();

describeInBrowser("workflows", () => {
	const world = createOwnWorld(() => startDaemon({ engine: { module: ENGINE } }, 0));

	async function submit(definition: WorkflowDefinitionJson): Promise<string> {
		const response = await fetch(`${world.daemon.url}/v1/workflows`, {
			method: "POST",
			headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
			body: JSON.stringify(submissionOf(definition)),
		});
		expect([response.status, response.ok ? "" : await response.text()]).toEqual([202, ""]);
		return ((await response.json()) as { workflow_id: string }).workflow_id;
	}

	const about = (gate: string): WorkflowDefinitionJson => ({
		...EXAMPLE,
		input: { ...EXAMPLE.input, question: `hold ${gate}` },
	});

	it("§4: the example's nodes, the text as it comes, a reload in the middle, the way not taken, the result", async () => {
		const { page, faults } = await openAt(world.context, world.daemon, "#/workflows");
		await page.locator(".workflows-empty", { hasText: "nexus workflow run examples/workflows/summary.yaml" }).waitFor();
		await submit(about("tour"));
		await page.locator('.workflows-list [data-state="running"]').getByRole("link", { name: EXAMPLE.name! }).click();

		await stateOf(page, "answer", "running");
		await expect.poll(() => textOf(page, "answer")).toEqual(upTo(30));
		await stateOf(page, "question-vector", "completed");
		await stateOf(page, "dimensions", "completed");
		await stateOf(page, "measure", "accepted");
		await page.locator('.link-state[data-state="live"]').waitFor();

		await page.reload();
		await expect.poll(() => textOf(page, "answer")).toEqual(upTo(30));
		world.daemon.release("tour");
		await page.locator('.workflow-facts .status[data-tone="good"]', { hasText: "Done" }).waitFor();
		expect(await textOf(page, "answer")).toEqual(upTo(60));
		await stateOf(page, "shorten", "completed");
		await stateOf(page, "keep", "skipped");
		expect(await nodeOf(page, "keep").innerText()).toContain("The branch is-long went the other way.");
		const report = nodeOf(page, "report");
		await report.getByText("hold tour (60 words, a vector of 64 numbers)").waitFor();
		expect(await report.innerText()).toContain(`${upTo(40).join(" ")} …`);
		// The graph and the list of nodes say the same.
		expect(await page.locator(".graph-node").count()).toBe(EXAMPLE.nodes.length);
		expect(await page.locator('.graph-node[data-node="keep"]').innerText()).toContain("Skipped");
		// It has ended: nothing is live any more, and nothing can be canceled.
		expect(await page.locator(".head .link-state, .head .cancel").count()).toBe(0);
		await page.locator('.graph-node[data-node="report"]').click();
		expect(await page.evaluate(() => document.activeElement?.getAttribute("data-node"))).toBe("report");

		// The text from the outputs alone is the same.
		await page.reload();
		await nodeOf(page, "answer").locator(".node-facts").waitFor();
		await expect.poll(() => textOf(page, "answer")).toEqual(upTo(60));
		expect(faults).toEqual([]);
	});

	it("cancel ends the workflow and the job of its node", async () => {
		const workflow = await submit(about("never"));
		const { page, faults } = await openAt(world.context, world.daemon, `#/workflow/${workflow}`);
		await expect.poll(() => textOf(page, "answer")).toEqual(upTo(30));
		await page.getByRole("button", { name: "Cancel" }).click();
		await page.locator(".workflow-facts .status", { hasText: "Canceled" }).waitFor();
		await stateOf(page, "answer", "canceled");
		// The text so far is still there.
		expect(await textOf(page, "answer")).toEqual(upTo(30));
		await page.getByRole("link", { name: "Workflows" }).first().click();
		await page.locator('.jobs-list tr[data-state="canceled"]', { hasText: "answer" }).waitFor();
		expect(faults).toEqual([]);
	});

	it("files of jobs are saved, what fails says what to do, and an agent's run is a link away", async () => {
		const workflow = await submit({
			name: "files",
			input: { connector: "nowhere" },
			nodes: [
				{ id: "draw", kind: "AI_IMAGE", config: { prompt: "a lighthouse" } },
				{ id: "lost", kind: "AI_GENERATE", config: { connector_id: "{{input.connector}}", prompt: "x" } },
				{ id: "agent", kind: "AGENT_RUN", config: { session: "flow", text: "hold open" } },
			],
		});
		world.daemon.release("open");
		const { page, faults } = await openAt(world.context, world.daemon, `#/workflow/${workflow}`);
		const download = page.waitForEvent("download");
		await nodeOf(page, "draw").getByRole("link").click();
		expect((await download).suggestedFilename()).toBe("image-1.svg");
		await nodeOf(page, "lost").getByText("nexus connector list").waitFor();
		await page.locator(".workflow-why", { hasText: "node lost failed" }).waitFor();
		await stateOf(page, "agent", "completed");
		await nodeOf(page, "agent").getByRole("link", { name: "Run" }).click();
		await page.getByRole("heading", { name: "Run run_" }).waitFor();
		await page.goto(`${world.daemon.url}/#/workflows`);
		await page.locator(".jobs-list", { hasText: "image-1.svg" }).waitFor();
		expect(faults).toEqual([]);
	});

	it("Z24: signing out ends the page's sign-in", async () => {
		const { page } = await openAt(world.context, world.daemon, "#/workflows");
		await page.getByRole("button", { name: "Sign out" }).click();
		await page.getByRole("heading", { name: "Sign in to Nexus" }).waitFor();
		const refused = await page.request.get(`${world.daemon.url}/v1/workflows`);
		expect(refused.status()).toBe(401);
	});
});
