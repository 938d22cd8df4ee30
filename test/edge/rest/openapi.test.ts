/** The OpenAPI description of the derived routes. */

import { expect, it } from "vitest";
import { httpRoutes } from "../../../packages/daemon/src/edge/rest/http-rules.ts";
import { describeRoutes } from "../../../packages/daemon/src/edge/rest/openapi.ts";
import { SERVICES } from "../../../packages/daemon/src/edge/rpc/routes.ts";

const routes = httpRoutes(SERVICES);
const { paths, schemas } = describeRoutes(routes);

interface Operation {
	operationId: string;
	parameters: { name: string; in: string; required: boolean; schema: object }[];
	requestBody?: { content: Record<string, { schema: { $ref?: string; properties?: object } }> };
	responses: Record<string, { content?: Record<string, { schema: object }> }>;
	"x-close-mode"?: string;
}

const operationOf = (path: string, verb: string) => paths[path]![verb] as Operation;

it("describes every route once", () => {
	const ids = Object.values(paths).flatMap((verbs) =>
		Object.values(verbs).map((each) => (each as Operation).operationId),
	);
	expect(ids).toHaveLength(routes.length);
	expect(new Set(ids).size).toBe(ids.length);
});

it("fields are by their proto names: in the path, in the query with nested ones by a dot, and in the body", () => {
	expect(operationOf("/v1/audit", "get").parameters.map(({ name }) => name)).toEqual([
		"filter.app_id",
		"filter.domain",
		"filter.operation",
		"filter.from_time",
		"filter.to_time",
		"page_size",
		"before",
	]);
	const cancel = operationOf("/v1/jobs/{job_id}/cancel", "post");
	expect(cancel.parameters).toMatchObject([{ name: "job_id", in: "path", required: true, schema: { type: "string" } }]);
	expect(cancel.requestBody!.content["application/json"]!.schema.properties).toEqual({ reason: { type: "string" } });
	expect(operationOf("/v1/workflows", "post").requestBody!.content["application/json"]!.schema).toEqual({
		$ref: "#/components/schemas/SubmitWorkflowRequest",
	});
});

it("a stream is events that Last-Event-ID continues, and tells how it closes", () => {
	const stream = operationOf("/v1/jobs/{job_id}/stream", "get");
	expect(stream["x-close-mode"]).toBe("B");
	expect(stream.parameters.map(({ name }) => name)).toEqual(["job_id", "after", "Last-Event-ID"]);
	expect(Object.keys(stream.responses["200"]!.content!)).toEqual(["text/event-stream"]);
	expect(stream.responses).toHaveProperty("204");
	const file = operationOf("/v1/audit/export", "get");
	expect(Object.keys(file.responses["200"]!.content!)).toContain("text/csv");
});

it("an answer is the field that the rule names, with its status", () => {
	expect(operationOf("/v1/jobs", "post").responses["202"]!.content!["application/json"]!.schema).toEqual({
		$ref: "#/components/schemas/ScenarioJob",
	});
	expect(schemas.ScenarioJob).toMatchObject({
		type: "object",
		properties: {
			created_at: { type: "string", format: "date-time" },
			state: { $ref: "#/components/schemas/ScenarioJobState" },
			artifacts: { type: "array", items: { $ref: "#/components/schemas/Artifact" } },
		},
		required: expect.arrayContaining(["job_id", "artifacts", "demo"]),
	});
	expect(schemas.SubmitWorkflowRequest).not.toHaveProperty("required");
});

it("takes descriptions by full name", () => {
	const comments = {
		"nexus.runtime.v1.RuntimeAiService.ListScenarioJobs": "Jobs, newest first.",
		"nexus.runtime.v1.ScenarioJob.text": "So far.",
	};
	const described = describeRoutes(routes, comments);
	expect(described.paths["/v1/jobs"]).toMatchObject({ get: { summary: "Jobs, newest first." } });
	expect(described.schemas.ScenarioJob).toMatchObject({ properties: { text: { description: "So far." } } });
});
