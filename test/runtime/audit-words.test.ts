/** The audit events of a daemon, against the table of docs/audit.md: one word for each thing that happens. */

import { readFileSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { RuntimeAiService } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { RuntimeAuditService } from "../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { ReasonCode } from "../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { RuntimeConnectorService } from "../../packages/client/src/gen/nexus/runtime/v1/connector_pb.ts";
import {
	RuntimeWorkflowService,
	WorkflowNodeKind,
} from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { asking, transportOf } from "../ai-client.ts";
import { until } from "../until.ts";
import { daemonForTest } from "./daemon.ts";

/** `domain/operation` of every row. */
function documented(): Set<string> {
	const text = readFileSync(new URL("../../docs/audit.md", import.meta.url), "utf8");
	const [, table = ""] = /## What is recorded\n\n([\s\S]*?)\n\n/.exec(text) ?? [];
	const words = (cell: string) => [...cell.matchAll(/`([\w-]+)`/g)].map(([, word]) => word);
	const rows = table.split("\n").map((row) => row.split("|").slice(1, 3));
	return new Set(
		rows.flatMap(([domains = "", operations = ""]) =>
			words(domains).flatMap((domain) => words(operations).map((operation) => `${domain}/${operation}`)),
		),
	);
}

async function start() {
	const transport = transportOf(await daemonForTest());
	return {
		ai: createClient(RuntimeAiService, transport),
		audit: createClient(RuntimeAuditService, transport),
		connectors: createClient(RuntimeConnectorService, transport),
		workflows: createClient(RuntimeWorkflowService, transport),
	};
}

it("Z28: model calls, jobs, workflows and connectors are recorded under the words of the table, with who did it and why", async () => {
	const { ai, audit, connectors, workflows } = await start();
	await connectors.createConnector({ connectorId: "own", providerType: "demo" });
	await connectors.deleteConnector({ connectorId: "own" });
	await ai.executeScenario({ scenario: asking("/demo tokens=2 rate=0") });
	const { job } = await ai.submitScenarioJob({ scenario: asking("/demo tokens=900 rate=10") });
	await ai.cancelScenarioJob({ jobId: job!.jobId, reason: "enough" });
	const config = { code: "throw new Error('no')" };
	const nodes = [{ nodeId: "a", kind: WorkflowNodeKind.TRANSFORM_SCRIPT, config }];
	await workflows.submitWorkflow({ appId: "shop", definition: { nodes } });
	const slow = { prompt: "/demo tokens=900 rate=10" };
	const { workflow } = await workflows.submitWorkflow({
		appId: "shop",
		definition: { nodes: [{ nodeId: "a", kind: WorkflowNodeKind.AI_STREAM, config: slow }] },
	});
	await workflows.cancelWorkflow({ workflowId: workflow!.workflowId, reason: "enough" });
	const recorded = async () => (await audit.listAuditEvents({ pageSize: 100 })).events;
	await until("the workflow's end", async () => (await recorded()).some(({ operation }) => operation === "failed"));
	const events = await recorded();
	const words = events.map(({ domain, operation }) => `${domain}/${operation}`);
	expect(words.filter((word) => !documented().has(word))).toEqual([]);
	expect(words).toEqual(
		expect.arrayContaining([
			...["connectors/created", "connectors/removed", "scenarios/started", "scenarios/completed"],
			...["jobs/submitted", "jobs/canceled", "workflows/submitted", "workflows/failed", "workflows/canceled"],
		]),
	);
	const called = events.filter(({ operation }) => ["created", "submitted", "canceled"].includes(operation));
	for (const { domain, caller } of called) expect([domain, caller]).toEqual([domain, "127.0.0.1"]);
	const refused = events.filter(({ operation }) => ["failed", "canceled"].includes(operation));
	for (const { domain, reasonCode } of refused)
		expect([domain, reasonCode]).not.toEqual([domain, ReasonCode.UNSPECIFIED]);
});
