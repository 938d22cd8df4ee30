/** Remote procedures on the main port behind the gate: another site's page cannot use the cookie, whatever it sends (P6.14, Z11). */

import { request } from "node:http";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { TOKEN } from "../rig.ts";
import { type GrpcKit, startGrpcKit } from "./kit.ts";

const PATH = "/nexus.runtime.v1.RuntimeConnectorService/ListConnectors";
const JSON_TYPE = { "content-type": "application/json" };

let kit: GrpcKit;
let calls: number;
let cookie: string;

/** Node's own client: fetch does not let one choose the Host. */
function call(headers: Record<string, string>, method = "POST", path = PATH, body = "{}"): Promise<number> {
	return new Promise((resolve, reject) => {
		const { port } = kit.rig;
		const sent = request({ host: "127.0.0.1", port, method, path, headers }, (answer) => {
			answer.resume().on("end", () => resolve(answer.statusCode!));
		});
		sent.on("error", reject).end(method === "GET" ? undefined : body);
	});
}

beforeEach(async () => {
	calls = 0;
	const list = async () => {
		calls++;
		return [];
	};
	kit = await startGrpcKit({ services: { connectors: { list } as never } });
	const { rig } = kit;
	onTestFinished(() => rig.close());
	const signedIn = await fetch(`${rig.url}/v1/sign-in`, {
		method: "POST",
		headers: { ...JSON_TYPE, origin: rig.url },
		body: JSON.stringify({ token: TOKEN }),
	});
	cookie = signedIn.headers.get("set-cookie")!.split(";")[0]!;
});

describe("a signed-in browser", () => {
	it("calls from its own page", async () => {
		expect(await call({ ...JSON_TYPE, cookie, origin: kit.rig.url })).toBe(200);
		expect(calls).toBe(1);
	});

	it.each<[string, Record<string, string>]>([
		["another site's page", { origin: "http://evil.example" }],
		["another port of this machine", { origin: "http://127.0.0.1:1" }],
		["a sandboxed frame", { origin: "null" }],
		["who sends no Origin", {}],
	])("is not used by %s", async (_, headers) => {
		for (const type of ["application/json", "application/grpc-web+proto", "application/connect+json", "text/plain"])
			expect(await call({ "content-type": type, cookie, ...headers }), type).toBe(403);
		expect(calls).toBe(0);
	});

	it("is not used by a link or a picture: no procedure answers a GET", async () => {
		const path = `${PATH}?connect=v1&encoding=json&message=%7B%7D`;
		for (const site of ["cross-site", "same-site", "none", "same-origin"])
			expect(await call({ cookie, "sec-fetch-site": site }, "GET", path), site).toBe(405);
		expect(calls).toBe(0);
	});
});

it("P6.14: a name that is not served here is refused with a good token, too (DNS rebinding)", async () => {
	const authorization = `Bearer ${TOKEN}`;
	expect(await call({ ...JSON_TYPE, authorization, host: `evil.example:${kit.rig.port}` })).toBe(403);
	expect(calls).toBe(0);
	expect(await call({ ...JSON_TYPE, authorization })).toBe(200);
});
