/** Checks that all procedures share: page tokens and positions are validated in the same way, whatever is listed or read. */

import type { DescMethod } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { RuntimeAiService } from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import {
	RuntimeWorkflowService,
	WorkflowNodeKind,
} from "../../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { transportOf } from "../../ai-client.ts";
import { daemonForTest } from "../../runtime/daemon.ts";
import { methods, procedureOf } from "./descriptors.ts";
import { errorOf, statusOf } from "./kit.ts";

const having = (field: string) => methods.filter(({ input }) => input.fields.some(({ name }) => name === field));
const INVALID = { code: "InvalidArgument", reason: "REASON_CODE_PROTOCOL_ENVELOPE_INVALID" };

/** The error that a call is refused with, unary or not. */
async function refusal(transport: Transport, method: DescMethod, request: object): Promise<ConnectError | undefined> {
	const call = createClient(method.parent, transport) as unknown as Record<
		string,
		(request: object) => Promise<object> & AsyncIterable<object>
	>;
	try {
		const answer = call[method.localName]!(request);
		if (method.methodKind === "unary") await answer;
		else for await (const _ of answer) return undefined;
		return undefined;
	} catch (cause) {
		return ConnectError.from(cause);
	}
}

const start = async (): Promise<Transport> => transportOf(await daemonForTest());

it("a page below nothing is refused by every list", async () => {
	const transport = await start();
	const lists = having("page_size");
	expect(lists.map(({ name }) => name).toSorted()).toEqual([
		"ListAuditEvents",
		"ListMemory",
		"ListMemoryChanges",
		"ListScenarioJobs",
		"ListWorkflows",
	]);
	for (const method of lists) {
		const error = await refusal(transport, method, { pageSize: -1 });
		expect([method.name, statusOf(error), error?.rawMessage]).toEqual([
			method.name,
			INVALID,
			"page_size: a page has one item or more",
		]);
	}
});

it("a page token that no list gave is refused by every list", async () => {
	const transport = await start();
	const lists = having("page_token");
	expect(lists.map(({ name }) => name).toSorted()).toEqual(["ListMemory", "ListScenarioJobs", "ListWorkflows"]);
	for (const method of lists)
		for (const pageToken of ["nonsense", "0", "job_1", "msg_01JD0000000000000000000000"])
			expect([method.name, statusOf(await refusal(transport, method, { pageToken }))]).toEqual([method.name, INVALID]);
});

it("an invalid application id is refused by every procedure that takes one", async () => {
	const transport = await start();
	const definition = { nodes: [{ nodeId: "a", kind: WorkflowNodeKind.CONTROL_NOOP }] };
	const named = having("app_id").map((method) => [method, { appId: "a b" }] as const);
	const more: Readonly<Record<string, object>> = {
		SubmitWorkflow: { definition },
		CreateConnector: { connectorId: "mine", providerType: "openai" },
		SendAppMessage: { toAppId: "a b", messageType: "x" },
		ListAuditEvents: { filter: { appId: "a b" } },
		ExportAuditEvents: { filter: { appId: "a b" } },
	};
	const others = methods.filter(({ name }) =>
		["SendAppMessage", "ListAuditEvents", "ExportAuditEvents"].includes(name),
	);
	for (const [method, request] of [...named, ...others.map((method) => [method, {}] as const)]) {
		const error = await refusal(transport, method, { ...request, ...more[method.name] });
		expect([method.name, statusOf(error), error?.rawMessage]).toEqual([
			method.name,
			INVALID,
			"app_id: 1 to 64 letters, digits and . _ - beginning with a letter or digit",
		]);
	}
});

it("Z3: a place that no sequence can have is refused by every log, in the same words", async () => {
	const transport = await start();
	const logs = having("after").filter(({ methodKind }) => methodKind !== "unary");
	expect(logs).toHaveLength(8);
	for (const method of logs) {
		const error = await refusal(transport, method, {
			after: 2n ** 60n,
			runId: method.name === "StreamScenario" ? "x" : undefined,
		});
		expect([procedureOf(method), statusOf(error), error?.rawMessage]).toEqual([
			procedureOf(method),
			INVALID,
			`${2n ** 60n} is larger than any sequence`,
		]);
	}
});

it("a state that there is not is refused, and not taken for all of them", async () => {
	const transport = await start();
	const jobs = createClient(RuntimeAiService, transport).listScenarioJobs({ states: [99 as never] });
	const workflows = createClient(RuntimeWorkflowService, transport).listWorkflows({ states: [99 as never] });
	expect([statusOf(await errorOf(jobs)), statusOf(await errorOf(workflows))]).toEqual([INVALID, INVALID]);
});
