/** An application's token: what it reaches, and that nothing else is there for it. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { ROUTES } from "../../packages/daemon/src/edge/api/api.ts";
import type { Route } from "../../packages/daemon/src/edge/api/resource.ts";
import { httpRoutes } from "../../packages/daemon/src/edge/rest/http-rules.ts";
import { reachesProcedure } from "../../packages/daemon/src/edge/rpc/admit.ts";
import { SERVICES } from "../../packages/daemon/src/edge/rpc/routes.ts";

import { createRig, expectAnswer, expectError, type Rig, readSse, rigForTest } from "./rig.ts";

/** The native routes, and those of the runtime contract. */
const routes: [string, Pick<Route, "apps" | "auth" | "path" | "method">][] = [
	...Object.entries<Route>(ROUTES),
	...httpRoutes(SERVICES).map(({ method, path, verb }): [string, Pick<Route, "apps" | "auth" | "path" | "method">] => [
		method.localName,
		{
			path,
			method: verb,
			auth: true,
			apps: reachesProcedure({ owner: false }, `${method.parent.typeName}/${method.name}`) || undefined,
		},
	]),
];
/** Paths of resources that belong to one application. */
const APP_SCOPED = /^\/v1\/(?:jobs|workflows|artifacts|scenarios|app-messages|transfers)(?:\/|$)/;

const NOTHING_STORED = {
	stored: { jobs: "0", workflows: "0", logs: "0", artifacts: "0", messages: "0" },
	stored_bytes: "0",
	stored_bytes_max: "1000",
};

describe("an application's token over HTTP", () => {
	let rig: Rig;
	let bearer: { authorization: string };
	beforeAll(async () => {
		rig = await createRig();
		const { token } = (await expectAnswer("addApp", await rig.post("/v1/apps", { app_id: "shop" }))) as {
			token: string;
		};
		bearer = { authorization: `Bearer ${token}` };
	});
	afterAll(() => rig.close());

	it("Z25: only what is app-scoped says that applications reach it", () => {
		for (const [id, { apps, auth, path }] of routes) {
			if (apps) expect([id, auth, APP_SCOPED.test(path)]).toEqual([id, true, true]);
		}
	});

	it.each(routes.filter(([, { auth, apps }]) => auth && !apps))("Z25: %s is refused", async (_, route) => {
		const path = route.path.replace(/\{\w+\}/g, "x");
		const answer = await (route.method === "POST" ? rig.post(path, {}, bearer) : rig.get(path, bearer, route.method));
		await expectError(answer, 403, "forbidden");
	});

	it.each(routes.filter(([, { apps }]) => apps))("Z25: %s is not", async (_, route) => {
		const path = route.path.replace(/\{\w+\}/g, "x");
		const answer = await (route.method === "POST" ? rig.post(path, {}, bearer) : rig.get(path, bearer, route.method));
		expect([401, 403]).not.toContain(answer.status);
		await answer.body?.cancel();
	});

	it("Z25: a WebSocket is refused", async () => {
		const ws = new WebSocket(`${rig.url}/v1/ws`, { headers: bearer });
		ws.on("error", () => {});
		const status = await new Promise((resolve) =>
			ws.on("unexpected-response", (_, { statusCode }) => resolve(statusCode)),
		);
		expect(status).toBe(403);
	});

	it("it cannot be used to sign in", async () => {
		const token = bearer.authorization.slice("Bearer ".length);
		const answer = await fetch(`${rig.url}/v1/sign-in`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify({ token }),
		});
		await expectError(answer, 401, "unauthenticated");
	});

	it("once removed it is refused; the list says so", async () => {
		const { token } = (await (await rig.post("/v1/apps", { app_id: "gone", name: "Gone" })).json()) as {
			token: string;
		};
		await expectError(await rig.get("/v1/runs", { authorization: `Bearer ${token}` }), 403, "forbidden");
		await expectAnswer("removeApp", await rig.get("/v1/apps/gone", {}, "DELETE"));
		await expectError(await rig.get("/v1/runs", { authorization: `Bearer ${token}` }), 401, "unauthenticated");
		await expectError(await rig.get("/v1/apps/gone", {}, "DELETE"), 404, "not_found");
		const list = (await expectAnswer("listApps", await rig.get("/v1/apps"))) as { apps: object[] };
		expect(list.apps).toEqual([
			{ app_id: "shop", name: "shop", created_at: expect.any(String), ...NOTHING_STORED },
			{
				app_id: "gone",
				name: "Gone",
				created_at: expect.any(String),
				removed_at: expect.any(String),
				...NOTHING_STORED,
			},
		]);
		expect(JSON.stringify(list)).not.toContain(token);
		await expectError(await rig.post("/v1/apps", { app_id: "owner" }), 400, "invalid");
		await expectError(await rig.post("/v1/apps", { app_id: "shop" }), 409, "conflict");
	});
});

describe("signing out", () => {
	it("Z24: ends the sign-in and the streams it has open, and leaves other sign-ins alone", async () => {
		const rig = await rigForTest();
		const signIn = async () => {
			const answer = await rig.post("/v1/sign-in", { code: rig.edge.signInUrl().split("#code=")[1] });
			return { cookie: answer.headers.get("set-cookie")!.split(";")[0]!, authorization: "" };
		};
		const [mine, other] = [await signIn(), await signIn()];
		const stream = "/v1/sessions/mine/stream";
		const [cut, stays] = [await readSse(rig.url + stream, mine), await readSse(rig.url + stream, other)];
		const ws = new WebSocket(`${rig.url}/v1/ws`, { headers: { cookie: mine.cookie, origin: rig.url } });
		await new Promise((resolve) => ws.on("open", resolve));
		const closed = new Promise((resolve) => ws.on("close", resolve));
		await expectError(await rig.post("/v1/sign-out"), 400, "invalid");
		await expectError(await rig.post("/v1/sign-out", undefined, mine), 403, "forbidden");
		const out = await rig.post("/v1/sign-out", undefined, { ...mine, origin: rig.url });
		expect(out.headers.get("set-cookie")).toMatch(/=; Path=\/; Max-Age=0; /);
		await expectAnswer("signOut", out);
		expect(await cut.ended).toBe("cut");
		await closed;
		await expectError(await rig.get("/v1/sessions", mine), 401, "unauthenticated");
		expect((await rig.get("/v1/sessions", other)).status).toBe(200);
		await rig.restart();
		await expectError(await rig.get("/v1/sessions", mine), 401, "unauthenticated");
		stays.stop();
	});
});
