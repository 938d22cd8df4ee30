/** The OpenAPI document, the route table, the close-mode table and the server say the same. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROUTES } from "../../packages/daemon/src/edge/api/api.ts";
import type { Route } from "../../packages/daemon/src/edge/api/resource.ts";
import { httpRoutes } from "../../packages/daemon/src/edge/rest/http-rules.ts";
import { SERVICES } from "../../packages/daemon/src/edge/rpc/routes.ts";
import { STREAM_ENDPOINTS } from "../../packages/protocol/src/protocol.ts";
import { createRig, type Rig } from "./rig.ts";

interface Document {
	openapi: string;
	paths: Record<string, Record<string, Operation>>;
	components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
}
interface Operation {
	operationId: string;
	summary: string;
	security: object[];
	parameters: { name: string; in: string; required: boolean; schema: object }[];
	responses: Record<string, { description: string }>;
	"x-close-mode"?: string;
}

const routes = Object.entries<Route>(ROUTES);
const derived = httpRoutes(SERVICES).map((route) => [route.method.localName, route] as const);

describe("OpenAPI", () => {
	let rig: Rig;
	let document: Document;
	beforeAll(async () => {
		rig = await createRig();
		document = (await (await fetch(`${rig.url}/openapi.json`)).json()) as Document;
	});
	afterAll(() => rig.close());
	const operations = () =>
		Object.entries(document.paths).flatMap(([path, methods]) =>
			Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
		);

	it("every route is documented, and every documented path is a route", () => {
		expect(document.openapi).toMatch(/^3\.1\./);
		expect(operations().map(({ method, path }) => `${method} ${path}`)).toEqual(
			expect.arrayContaining(routes.map(([, { method, path }]) => `${method} ${path}`)),
		);
		const names = new Set([
			...routes.map(([id]) => id),
			...derived.map(([, { method }]) => `${method.parent.name}_${method.name}`),
		]);
		const documented = operations().map(({ operation }) => operation.operationId);
		expect(documented.filter((id) => !names.has(id))).toEqual([]);
		expect(new Set(documented).size).toBe(documented.length);
	});

	it.each(derived)("%s, which is derived, answers as documented", async (_, { path: pattern, verb }) => {
		const path = pattern.replace(/\{\w+\}/g, "x");
		const operation = document.paths[pattern]![verb.toLowerCase()]!;
		expect((await fetch(rig.url + path, { method: verb })).status).toBe(401);
		const granted = await (verb === "POST" ? rig.post(path, {}) : rig.get(path, {}, verb));
		expect(Object.keys(operation.responses)).toContain(String(granted.status));
		await granted.body?.cancel().catch(() => {});
	});

	it.each(routes.map(([id, route]) => [id, route] as const))("%s answers as documented", async (id, route) => {
		const path = route.path.replace(/\{\w+\}/g, "x");
		const operation = document.paths[route.path]![route.method.toLowerCase()]!;
		expect(operation.operationId).toBe(id);
		const abort = new AbortController();
		const response = await fetch(rig.url + path, { method: route.method, signal: abort.signal });
		// Platforms come without a token; of an account that is not there they hear nothing else.
		expect(response.status).toBe(route.auth ? 401 : route.raw ? 404 : route.body ? 400 : route.status);
		expect(Object.keys(operation.responses)).toContain(String(response.status));
		const granted = await (route.method === "POST" ? rig.post(path, {}) : rig.get(path, {}, route.method));
		expect(Object.keys(operation.responses)).toContain(String(granted.status));
		const body = granted.headers.get("content-type") === "text/event-stream" ? "" : await granted.text();
		if (granted.status === 404) expect(body).not.toContain("nothing at this address");
		await granted.body?.cancel().catch(() => {});
		abort.abort();
	});

	it("what a client may leave out is not required of it, and what it may add is not forbidden", () => {
		const { LabFaultRequest, MessageRequest } = document.components.schemas as Record<string, { required: string[] }>;
		expect(LabFaultRequest!.required).toEqual(["channel", "kind"]);
		expect(MessageRequest).not.toHaveProperty("additionalProperties");
	});

	it("every operation tells of busy and of stopping", () => {
		for (const { operation } of operations())
			expect(Object.keys(operation.responses)).toEqual(expect.arrayContaining(["429", "503"]));
	});

	it("every operation with a body tells that it may be too large", () => {
		const bodies = routes.filter(([, { body }]) => body);
		expect(bodies.length).toBeGreaterThan(10);
		for (const [id, { path, method }] of bodies)
			expect([id, Object.keys(document.paths[path]![method.toLowerCase()]!.responses)]).toEqual([
				id,
				expect.arrayContaining(["413"]),
			]);
	});

	it("files are documented in all their formats, and with their parts", () => {
		const { responses: audit } = document.paths["/v1/audit/export"]!.get!;
		expect(Object.keys((audit["200"] as { content?: object }).content!)).toEqual([
			"application/x-ndjson",
			"text/csv",
			"application/gzip",
		]);
		expect(Object.keys(document.paths["/v1/artifacts/{artifact}"]!.get!.responses)).toEqual(
			expect.arrayContaining(["200", "206", "416"]),
		);
	});

	it("path parameters are the ones in the path", () => {
		for (const { path, operation } of operations()) {
			const inPath = operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
			expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
		}
	});

	it("every reference leads to a component, and every component is referred to", () => {
		const text = JSON.stringify(document);
		const refs = new Set([...text.matchAll(/"#\/components\/schemas\/(\w+)"/g)].map(([, id]) => id));
		const unused = Object.keys(document.components.schemas).filter((id) => !refs.has(id));
		for (const id of refs) expect(document.components.schemas).toHaveProperty(id!);
		// WebSocket messages have no place in OpenAPI's responses.
		expect(unused).toEqual(["WebSocketClientMessage"]);
	});

	it("P5.1: every stream endpoint is in the close-mode table, and every entry of the table is an endpoint", () => {
		const streams = routes.filter(([, { close }]) => close !== undefined);
		expect(Object.fromEntries(streams.map(([, { method, path, close }]) => [`${method} ${path}`, close]))).toEqual(
			Object.fromEntries(Object.entries(STREAM_ENDPOINTS).map(([endpoint, { closes }]) => [endpoint, closes])),
		);
		const types: unknown[] = ["text/event-stream", "application/x-ndjson"];
		const streaming = routes.filter(([, { answer, status }]) => types.includes(answer) || status === 101);
		expect(streaming).toEqual(streams);
		for (const [, { method, path, close }] of streams) {
			expect(document.paths[path]![method.toLowerCase()]!["x-close-mode"]).toBe(close);
		}
	});

	it("P6.13: routes without a token are exactly these", () => {
		expect(routes.filter(([, { auth }]) => !auth).map(([id]) => id)).toEqual([
			"getWebhook",
			"postWebhook",
			"signIn",
			"openapi",
			"healthz",
			"readyz",
		]);
	});
});
