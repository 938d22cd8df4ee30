/** HTTP requests as messages: path, query and body. */

import { toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { httpRoutes } from "../../../packages/daemon/src/edge/rest/http-rules.ts";
import { requestOf } from "../../../packages/daemon/src/edge/rest/request.ts";
import { SERVICES } from "../../../packages/daemon/src/edge/rpc/routes.ts";

const routes = httpRoutes(SERVICES);

/** The request of a route, as JSON with proto field names. */
function made(name: string, query = "", body?: unknown, params: Record<string, string> = {}) {
	const route = routes.find(({ method }) => method.name === name)!;
	const message = requestOf(route, { params, query: new URLSearchParams(query), body });
	return toJson(route.method.input, message, { useProtoFieldName: true });
}

describe("a query", () => {
	it("fills numbers, texts, lists, enums by either name, and nested messages", () => {
		expect(made("ListScenarioJobs", "app_id=shop&page_size=5&states=running&states=SCENARIO_JOB_STATE_QUEUED")).toEqual(
			{
				app_id: "shop",
				page_size: 5,
				states: ["SCENARIO_JOB_STATE_RUNNING", "SCENARIO_JOB_STATE_QUEUED"],
			},
		);
		expect(made("ListAuditEvents", "filter.domain=runs&filter.from_time=2026-11-17T00:00:00Z&before=7")).toEqual({
			filter: { domain: "runs", from_time: "2026-11-17T00:00:00Z" },
			before: "7",
		});
		expect(made("ExportAuditEvents", "format=csv&gzip=true")).toEqual({
			format: "AUDIT_EXPORT_FORMAT_CSV",
			gzip: true,
		});
	});

	it.each([
		["a name that the request does not have", "ListScenarioJobs", "limit=5"],
		["a number in words", "ListScenarioJobs", "page_size=five"],
		["a number without digits", "ListScenarioJobs", "page_size="],
		["a value that the enum does not have", "ListScenarioJobs", "states=lost"],
		["a single value twice", "ListScenarioJobs", "app_id=a&app_id=b"],
		["a time that cannot be read", "ListAuditEvents", "filter.from_time=yesterday"],
		["a message as one text", "ListAuditEvents", "filter=runs"],
		["a field below a text", "ListAuditEvents", "before.x=1"],
		["a truth value that is neither", "ExportAuditEvents", "gzip=yes"],
		["a negative place", "ListAuditEvents", "before=-1"],
		["a prototype's name", "ListAuditEvents", "__proto__.x=1"],
	])("refuses %s", (_, name, query) => {
		expect(() => made(name, query)).toThrow(expect.objectContaining({ code: "invalid" }));
	});
});

describe("a body", () => {
	it("is the request by proto field names, and the path wins over it", () => {
		const workflow = { definition: { name: "w", nodes: [{ node_id: "a" }] }, idempotency_key: "k" };
		expect(made("SubmitWorkflow", "", workflow)).toEqual(workflow);
		expect(made("CancelScenarioJob", "", { reason: "enough", job_id: "other" }, { job_id: "job_1" })).toEqual({
			job_id: "job_1",
			reason: "enough",
		});
		expect(made("CancelScenarioJob", "", undefined, { job_id: "job_1" })).toEqual({ job_id: "job_1" });
	});

	it.each([
		["a list", []],
		["a text", "x"],
		["nothing", null],
		["a field that the request does not have", { reasons: "x" }],
		["a value of another type", { reason: 5 }],
	])("refuses %s", (_, body) => {
		expect(() => made("CancelScenarioJob", "", body, { job_id: "job_1" })).toThrow(
			expect.objectContaining({ code: "invalid" }),
		);
	});

	it("says which field is wrong, and where the shape is described", () => {
		expect(() => made("CancelScenarioJob", "", { reasons: "x" }, { job_id: "job_1" })).toThrow(
			/^body: .*CancelScenarioJobRequest.*"reasons".*; see \/openapi\.json$/,
		);
	});

	it("refuses a query in addition to it", () => {
		expect(() => made("CancelScenarioJob", "reason=x", {}, { job_id: "job_1" })).toThrow(
			expect.objectContaining({ code: "invalid" }),
		);
	});
});
