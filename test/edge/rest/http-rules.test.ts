/** The HTTP options in `proto/`: complete, consistent, and apart from the native routes. */

import type { DescMethod } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { httpRoutes } from "../../../packages/daemon/src/edge/rest/http-rules.ts";
import { SERVICES } from "../../../packages/daemon/src/edge/rpc/routes.ts";

const routes = httpRoutes(SERVICES);

/** Native routes serve these: messages and runs by session, files with ranges. */
const NATIVE = ["AbortRun", "GetArtifact", "SendMessage"];

it("every procedure of the runtime contract has a route, or a native one that is named here", () => {
	const methods: DescMethod[] = SERVICES.filter(({ typeName }) => typeName.startsWith("nexus.runtime.")).flatMap(
		({ methods }) => methods,
	);
	const routed = new Set(routes.map(({ method }) => method));
	expect(
		methods
			.filter((method) => !routed.has(method))
			.map(({ name }) => name)
			.toSorted(),
	).toEqual(NATIVE);
});

it("no two procedures share a method and a path", () => {
	const shapes = routes.map(({ verb, path }) => `${verb} ${path.replace(/\{\w+\}/g, "{}")}`);
	expect(new Set(shapes).size).toBe(shapes.length);
});

it("paths are below /v1, and name fields of the request that are texts", () => {
	for (const { path, params, method } of routes) {
		expect(path).toMatch(/^\/v1(\/[a-z-]+|\/\{[a-z_]+\})+$/);
		for (const field of params) expect([method.name, field.name, field.scalar]).toEqual([method.name, field.name, 9]);
	}
});

it("a route that only reads is a GET, and a GET changes nothing", () => {
	const reads = /^(Get|List|Recall|Subscribe|Watch|Read|Export)/;
	for (const { verb, method } of routes)
		expect([method.name, verb === "GET"]).toEqual([method.name, reads.test(method.name)]);
});
