/** Several agents in front of a person: the shipped example from the first message to the continued end, over a restart, and its memory. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { startDaemon } from "./daemon.ts";
import { describeInBrowser, openAt, openSession, say, waitForLink } from "./kit.ts";
import { createOwnWorld } from "./world.ts";

const EXAMPLE = join(import.meta.dirname, "../../examples/agents");

interface ExampleConfig {
	reasonAct: { provider: string; script: string };
	agents: Record<string, { prompt: string; tools?: string[] }>;
	tools: { root: string };
}

/** The shipped example, with its paths written out; memory is on, so that there is something to see. */
function exampleConfig(): object {
	const config = parse(readFileSync(join(EXAMPLE, "nexus.yaml"), "utf8")) as ExampleConfig;
	const { reasonAct, agents, tools } = config;
	const at = (path: string) => join(EXAMPLE, path);
	const prompted = Object.entries(agents).map(([name, agent]) => [name, { ...agent, prompt: at(agent.prompt) }]);
	const team = Object.fromEntries(prompted) as ExampleConfig["agents"];
	return {
		...config,
		reasonAct: { ...reasonAct, script: at(reasonAct.script) },
		agents: { ...team, writer: { ...team.writer, tools: ["read", "ask", "remember"] } },
		tools: { ...tools, root: at(tools.root) },
		memory: { enabled: true },
	};
}

const lastAnswer = (page: Page) => page.locator(".turn:last-of-type .answer");
const speakersOf = (page: Page) => lastAnswer(page).locator(".speaker").allInnerTexts();
const asking = (page: Page) => page.getByRole("region", { name: "Allow bash to run?" });

/** A message that is a script itself: the lead routes to the writer, who makes these calls and then says so. */
const writerCalls = (calls: string, said: string): string =>
	[
		"/script",
		"- { agent: lead, calls: [{ name: route, args: { agents: [writer], reason: try it } }] }",
		`- { agent: writer, calls: [${calls}] }`,
		`- { agent: writer, text: ${said}, calls: [{ name: complete }] }`,
		"- { agent: lead, calls: [{ name: end_conversation }] }",
	].join("\n");

describeInBrowser("several agents", () => {
	const world = createOwnWorld(() => startDaemon(exampleConfig()));

	it("§8: the example's tour: who speaks, an approval, a failure, Continue, the inspector", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "tour");
		expect(await page.textContent(".scripted")).toContain("no model");
		await say(page, "What do the notes say?");

		// A13: the whole arguments, before anything has run.
		await asking(page).waitFor();
		expect(await asking(page).locator("pre").innerText()).toBe('bash {"command":"wc -w notes.md"}');
		expect(await speakersOf(page)).toEqual(["lead", "writer", "lead", "operator"]);
		const routing = await lastAnswer(page).locator(".tool", { hasText: "route" }).first().innerText();
		expect(routing).toContain("writer: read the notes");
		await page.locator(".phase", { hasText: "execute" }).waitFor();
		const listed = page.getByRole("region", { name: "Waiting for you" });
		expect(await listed.innerText()).toContain("Allow bash to run?");
		// A8: the lead's words are nowhere in the chat.
		expect(await page.locator(".thread").innerText()).not.toContain("Somebody has to read");

		await asking(page).getByRole("button", { name: "Allow", exact: true }).click();
		await page.locator(".asked", { hasText: "Allowed by you" }).waitFor();
		await page.locator(".outcome", { hasText: "part of the script" }).waitFor();
		await listed.waitFor({ state: "detached" });

		// A1: the rest, in its own run.
		await page.getByRole("button", { name: "Continue" }).click();
		await page.waitForSelector('.turn:last-of-type .verified[data-ok="true"]');
		expect(await page.locator(".turn").count()).toBe(2);
		expect(await page.locator(".turn:first-of-type .facts").innerText()).toContain("Continued below");
		expect(await page.getByRole("button", { name: "Continue" }).count()).toBe(0);
		const lanes = lastAnswer(page).locator(".side-by-side > .lane");
		expect(await lanes.locator(".speaker").allInnerTexts()).toEqual(["writer", "operator"]);
		expect(await lastAnswer(page).innerText()).toContain("That was the tour");
		expect(await page.locator(".tool", { hasText: "36 notes.md" }).count()).toBe(1);
		await page.locator(".phase", { hasText: "verification" }).waitFor();

		await page.locator(".turn:first-of-type .inspect").click();
		await page.locator(".timeline-names", { hasText: "lead · hidden text" }).waitFor();
		const names = await page.locator(".timeline-names").innerText();
		for (const agent of ["lead", "writer", "operator"]) expect(names).toContain(`${agent} · `);
		const log = page.locator('section[aria-label="Execution log"]');
		await log.waitFor();
		for (const said of ["Somebody has to read", "count the words", "tool completed"])
			expect(await log.innerText()).toContain(said);
		expect(faults).toEqual([]);
	});

	it("A2: an approval outlives its daemon; answering it continues the run", async () => {
		const { page } = await openSession(world.context, world.daemon, "restarted");
		await say(page, "What do the notes say?");
		await asking(page).waitFor();
		await world.daemon.kill();
		await waitForLink(page, "reconnecting");
		await world.daemon.restart();
		await waitForLink(page, "live");
		await page.locator(".outcome", { hasText: "Interrupted" }).waitFor();
		// The decision continues the run: no other button that would withdraw the question is offered.
		await page.waitForSelector(".turn:last-of-type .inspect");
		expect(await page.locator(".continue, .retry").count()).toBe(0);
		const call = page.locator('.tool[data-state="waiting"]', { hasText: "bash" });
		expect(await call.innerText()).toMatch(/Wants to run: \S/);
		expect(await call.innerText()).not.toMatch(/Running|ended/);
		// Seen from another session, too.
		const other = await openAt(world.context, world.daemon, "#/s/elsewhere");
		await other.page.getByRole("link", { name: "Allow bash to run?" }).click();
		await asking(other.page).getByRole("button", { name: "Deny" }).click();
		await other.page.waitForSelector(".turn:nth-of-type(2)");
		await other.page.locator(".turn:last-of-type .tool", { hasText: "bash" }).waitFor();
		expect(await other.page.locator('.tool[data-state="done"]', { hasText: "bash" }).count()).toBe(0);
		expect(await other.page.locator(".asking").count()).toBe(0);
		await other.page.locator(".turn:first-of-type .asked", { hasText: "Denied by you; continued below" }).waitFor();
		expect(other.faults).toEqual([]);
	});

	it("A10: the card says why a person is asked whatever the policy says", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "reasons");
		const bash = (command: string) => `- { agent: operator, calls: [{ name: bash, args: { command: ${command} } }] }`;
		const script = [
			"/script",
			"- { agent: lead, calls: [{ name: route, args: { agents: [operator], reason: try it } }] }",
			...["echo one", "echo two"].map(bash),
			"- { agent: operator, text: Done., calls: [{ name: complete }] }",
			"- { agent: lead, calls: [{ name: end_conversation }] }",
		];
		await say(page, script.join("\n"));
		await asking(page).filter({ hasText: "echo one" }).waitFor();
		expect(await page.locator(".asking-because").count()).toBe(0);
		await asking(page).getByRole("button", { name: "Allow", exact: true }).click();
		await asking(page).filter({ hasText: "echo two" }).waitFor();
		expect(await page.locator(".asking-because").innerText()).toBe(
			"You are asked because what bash answered from outside is in the conversation.",
		);
		await asking(page).getByRole("button", { name: "Deny" }).click();
		await page.waitForSelector('.turn:last-of-type .verified[data-ok="true"]');
		expect(faults).toEqual([]);
	});

	it("A28: a question is answered by a choice or in one's own words", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "questions");
		await say(page, writerCalls("{ name: ask, args: { question: Which?, choices: [red, blue] } }", "Thanks."));
		const question = page.getByRole("region", { name: "The agent asks" });
		await question.getByRole("button", { name: "blue" }).click();
		await page.waitForSelector('.turn:last-of-type .verified[data-ok="true"]');
		expect(await lastAnswer(page).innerText()).toContain("Thanks.");
		expect(await page.locator(".turn:last-of-type .tool", { hasText: "ask" }).first().innerText()).toContain("blue");

		await say(page, writerCalls("{ name: ask, args: { question: What else? } }", "Noted."));
		await page.getByLabel("Your answer").fill("nothing, really");
		await page.getByLabel("Your answer").press("Enter");
		await page.locator(".turn:last-of-type .answer", { hasText: "Noted." }).waitFor();
		expect(await page.locator(".turn:last-of-type .tool", { hasText: "ask" }).first().innerText()).toContain("really");
		expect(faults).toEqual([]);
	});

	it("A17: what an agent noted is listed, found by words, and forgotten", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "notes");
		const note = (text: string) => `{ name: remember, args: { text: ${text}, about: agent } }`;
		await say(page, writerCalls(`${note("tea at five")}, ${note("deploys on Monday")}`, "I noted it."));
		await page.waitForSelector('.turn:last-of-type .verified[data-ok="true"]');
		await page.goto(`${world.daemon.url}/#/memory`);
		const rows = page.locator(".list tbody tr");
		await expect.poll(() => rows.count()).toBe(2);
		expect(await rows.first().innerText()).toContain("Agent writer");
		expect(await page.locator(".memory-off").count()).toBe(0);
		await page.getByLabel("Search by words").fill("tea");
		await expect.poll(() => rows.count()).toBe(1);
		await page.getByRole("button", { name: "Forget: tea at five" }).click();
		await page.locator(".outcome", { hasText: "Turns keep their text" }).waitFor();
		await expect.poll(() => rows.count()).toBe(0);
		await page.getByLabel("Search by words").fill("");
		await expect.poll(() => rows.count()).toBe(1);
		expect(faults).toEqual([]);
	});
});

describeInBrowser("a daemon without agents", () => {
	const world = createOwnWorld(() => startDaemon());

	it("is asked nothing that it refuses, and says that memory is switched off", async () => {
		const { page, faults } = await openSession(world.context, world.daemon, "plain");
		const refused: string[] = [];
		page.on("response", (response) => response.status() >= 400 && refused.push(response.url()));
		await say(page, "count 3 0");
		await page.waitForSelector('.turn:last-of-type .verified[data-ok="true"]');
		await page.reload();
		await page.waitForSelector(".turn .verified");
		expect(await page.locator(".speaker, .phase, .continue, .scripted").count()).toBe(0);
		await page.goto(`${world.daemon.url}/#/memory`);
		await page.locator(".memory-off", { hasText: "Memory is switched off" }).waitFor();
		expect(await page.getByLabel("Search by words").isVisible()).toBe(false);
		expect([refused, faults]).toEqual([[], []]);
	});
});
