/** Every call of the client leads to a route of the edge, with a method and a body that it takes. */

import { expect, it } from "vitest";
import { createClient } from "../../packages/client/src/client.ts";
import { ROUTES } from "../../packages/daemon/src/edge/api/api.ts";
import type { Route } from "../../packages/daemon/src/edge/api/resource.ts";

const CALLED_BY_NOBODY: readonly string[] = [
	// Platforms call these.
	...["getWebhook", "postWebhook"],
	// Followed, not called.
	...["streamRun", "streamSession", "streamHealth", "streamAgents", "streamJob", "streamWorkflow", "webSocket"],
	// A file.
	"exportAudit",
	// For operators and tools.
	...["openapi", "healthz", "readyz", "metrics"],
];

it("has a call for every route that a client asks, and none that leads nowhere", async () => {
	const asked: string[] = [];
	const { api } = createClient({
		url: "http://nexus.test",
		fetch: async (url, init) => {
			asked.push(`${init.method} ${new URL(url).pathname}`);
			return Response.json({});
		},
	});
	for (const [name, call] of Object.entries(api)) {
		const made = (call as (...args: string[]) => unknown)("a", "b", "c");
		if (name === "frames") for await (const _ of made as AsyncIterable<string>);
		else await made;
	}
	const routes = Object.entries<Route>(ROUTES).filter(([id]) => !CALLED_BY_NOBODY.includes(id));
	const isOf = (route: Route) => {
		const path = new RegExp(`^${route.method} ${route.path.replaceAll(/\{\w+\}/g, "[abc]")}$`);
		return asked.filter((call) => path.test(call)).length;
	};
	expect(routes.filter(([, route]) => isOf(route) === 0).map(([id]) => id)).toEqual([]);
	expect(asked).toHaveLength(routes.length);
});
