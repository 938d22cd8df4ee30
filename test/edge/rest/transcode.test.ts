/** Procedures over plain HTTP, by the messages between applications. */

import { expect, it } from "vitest";
import type { Services } from "../../../packages/daemon/src/runtime/wiring/port.ts";
import { OWNER } from "../../services/parts.ts";
import { until } from "../../until.ts";
import { appMessagesOf } from "../audit-kit.ts";
import { expectError, type Rig, type RigOptions, readSse, rigForTest } from "../rig.ts";

const HELLO = { to_app_id: "mail", message_type: "hello", payload: Buffer.from("hi").toString("base64") };

interface Event {
	sequence: string;
	event_type: string;
	message: { message_id: string; payload: string };
}

async function started(limits: RigOptions["limits"] = {}) {
	const services: Partial<Services> = {};
	const rig = await rigForTest({ services: () => services, limits });
	Object.assign(services, { appMessages: appMessagesOf(rig) });
	const bearerOf = async (id: string) => ({
		authorization: `Bearer ${(await rig.apps.add({ id }, OWNER)).token}`,
	});
	const shop = await bearerOf("shop");
	const send = async (message: object = {}) => {
		const response = await rig.post("/v1/app-messages", { ...HELLO, ...message }, shop);
		return { status: response.status, body: (await response.json()) as { message_id: string } };
	};
	return { rig, shop, mail: await bearerOf("mail"), send };
}

const eventsIn = (events: readonly { data: string }[]) => events.map(({ data }) => JSON.parse(data) as Event);

it("answers a unary procedure with its status and JSON in proto field names", async () => {
	const { rig, mail, send } = await started();
	const { status, body } = await send({ require_ack: true });
	expect([status, Object.keys(body)]).toEqual([201, ["message_id"]]);
	const ack = await rig.post(`/v1/app-messages/${body.message_id}/ack`, undefined, mail);
	expect([ack.status, ack.headers.get("content-type"), await ack.json()]).toEqual([200, "application/json", {}]);
});

it("streams events, and resumes after the reader's last one: by `after`, and by Last-Event-ID", async () => {
	const { rig, mail, send } = await started();
	const path = `${rig.url}/v1/app-messages/stream`;
	const live = await readSse(path, mail);
	expect(live.response.headers.get("content-type")).toBe("text/event-stream");
	const [first, second] = [await send(), await send()];
	await live.until((events) => events.length === 2);
	live.stop();
	expect(live.events.map(({ id }) => id)).toEqual(["1", "2"]);
	expect(eventsIn(live.events)).toMatchObject([
		{ sequence: "1", event_type: "APP_MESSAGE_EVENT_TYPE_RECEIVED", message: { message_id: first.body.message_id } },
		{ sequence: "2", message: { message_id: second.body.message_id, payload: HELLO.payload } },
	]);
	for (const [query, headers, ids] of [
		["?after=0", {}, ["1", "2"]],
		["?after=1", {}, ["2"]],
		["?after=0", { "last-event-id": "1" }, ["2"]],
	] as const) {
		const reader = await readSse(path + query, { ...mail, ...headers });
		await reader.until((events) => events.length === ids.length);
		reader.stop();
		expect(reader.events.map(({ id }) => id)).toEqual(ids);
	}
});

it("a reader that got no event yet has an id to resume from", async () => {
	const { rig, mail, send } = await started();
	await send();
	const abort = new AbortController();
	const { body } = await fetch(`${rig.url}/v1/app-messages/stream`, { headers: mail, signal: abort.signal });
	const { value } = await body!.getReader().read();
	abort.abort();
	expect(new TextDecoder().decode(value)).toContain("id: 1\n\n");
});

it("an idle stream has heartbeats, counts as an SSE reader, and is cut when the daemon stops", async () => {
	const { rig, mail } = await started({ heartbeatMs: 20 });
	const reader = await readSse(`${rig.url}/v1/app-messages/stream`, mail);
	await until("a heartbeat", () => reader.comments.length > 0);
	expect(rig.edge.stats().sseReaders).toBe(1);
	await rig.edge.stop();
	expect(await reader.ended).toBe("cut");
	expect(rig.edge.stats().sseReaders).toBe(0);
});

it("a removed application's stream is cut", async () => {
	const { rig, mail } = await started();
	const reader = await readSse(`${rig.url}/v1/app-messages/stream`, mail);
	await rig.apps.remove("mail", OWNER);
	expect(await reader.ended).toBe("cut");
});

it("a stream that cannot open answers with a status", async () => {
	const { rig, mail, shop } = await started({ streamsPerAppMax: 1 });
	await expectError(await rig.get("/v1/app-messages/stream?app_id=shop", mail), 403, "forbidden");
	await expectError(await rig.get("/v1/app-messages/stream?after=x", mail), 400, "invalid");
	await expectError(await rig.get("/v1/app-messages/stream", { ...mail, "last-event-id": "x" }), 400, "invalid");
	await until("the refused streams are gone", () => rig.edge.stats().sseReaders === 0);
	await readSse(`${rig.url}/v1/app-messages/stream`, shop);
	await expectError(await rig.get("/v1/app-messages/stream", shop), 429, "busy");
});

it("refuses like the native routes: no token, a foreign type, a body that is too large or too deep", async () => {
	const { rig, shop } = await started({ bodyBytesMax: 2000, bodyDepthMax: 3 });
	const post = (body: string, headers: Record<string, string>) =>
		fetch(`${rig.url}/v1/app-messages`, { method: "POST", headers, body });
	await expectError(await post("{}", {}), 401, "unauthenticated");
	await expectError(await post("{", shop), 400, "invalid");
	await expectError(await post('{"x":[[[]]]}', shop), 400, "invalid");
	await expectError(await post(JSON.stringify({ payload: "a".repeat(3000) }), shop), 413, "too_large");
	await expectError(await rig.get("/v1/providers", shop), 403, "forbidden");
	await expectError(await rig.get("/v1/nothing"), 404, "not_found");
	const wrong = await rig.get("/v1/app-messages/stream", {}, "POST");
	expect([wrong.status, wrong.headers.get("allow")]).toEqual([405, "GET"]);
	expect((await rig.get("/v1/app-messages/stream", {}, "HEAD")).status).toBe(405);
});

it("an error of a method has the body and the status of every other route", async () => {
	const { rig, shop } = await started();
	const answer = await rig.post("/v1/app-messages", { ...HELLO, to_app_id: "nobody" }, shop);
	expect([answer.status, await answer.json()]).toEqual([
		404,
		{ error: { code: "not_found", message: expect.stringContaining("nobody") } },
	]);
});

it("a signed-in page reaches it from its own origin only", async () => {
	const { rig, mail } = await started();
	const cookieOf = async (from: Rig) => {
		const answer = await from.post("/v1/sign-in", { code: from.edge.signInUrl().split("#code=")[1] });
		return answer.headers.get("set-cookie")!.split(";")[0]!;
	};
	void mail;
	const page = { cookie: await cookieOf(rig), authorization: "", origin: rig.url };
	const send = (headers: Record<string, string>) =>
		rig.post("/v1/app-messages", { ...HELLO, from_app_id: "shop" }, headers);
	expect((await send(page)).status).toBe(201);
	await expectError(await send({ ...page, origin: "http://elsewhere.example" }), 403, "forbidden");
});
