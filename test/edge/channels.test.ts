/** The endpoints about chat platforms, as clients and platforms see them. */

import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { describe, expect, it } from "vitest";
import type { Channels, EdgeDeps, Lab, LabFault } from "../../packages/daemon/src/edge/edge.ts";
import type { Delivery } from "../../packages/daemon/src/ledger/deliveries/port.ts";
import type { WireWebhookRequest } from "../../packages/daemon/src/nex/accounts/monitor-port.ts";
import type { DeliverRequest } from "../../packages/daemon/src/nex/nex.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { IDLE_LAB, type Rig, rigForTest } from "./rig.ts";

const DELIVERY: Delivery = {
	id: "dlv_00000000000000000000000001",
	runId: "run_1",
	channel: "telegram",
	account: "main",
	target: { to: "42" },
	options: {},
	createdAt: 1,
	updatedAt: 2,
	mode: "stream",
	state: "active",
	cursor: 5,
	messages: [{ ordinal: 1, nonce: "n", from: 0, to: 5, messageId: "m1", state: "sent", text: "not shown" }],
};

const PERSON = { channel: "telegram", account: "main", sender: "42" };

/** Records what reaches the platforms' side. */
function platforms() {
	const seen: { webhooks: WireWebhookRequest[]; delivered: DeliverRequest[]; asked: unknown[] } = {
		webhooks: [],
		delivered: [],
		asked: [],
	};
	const pairing = {
		...PERSON,
		code: "ABC234",
		state: "pending" as const,
		target: {},
		createdAt: 1,
		expiresAt: 9,
		sentAt: 1,
	};
	const channels: Channels = {
		outbound: {
			accounts: () => [
				{
					channel: "telegram",
					account: "main",
					pausedUntil: 99,
					deliveries: 1,
					restarts: 2,
					garbage: 3,
					processes: { monitor: { state: "open_circuit", until: 5, restarts: 2, garbage: 3, lastError: "gone" } },
				},
			],
			counts: async () => ({ active: 1, complete: 1234, failed: 0, unknown: 0, stale: 0, damaged: 0 }),
			async deliveries(query) {
				seen.asked.push(query);
				return [DELIVERY];
			},
			async deliver(request) {
				seen.delivered.push(request);
				return DELIVERY;
			},
			health: async () => ({ ok: true, detail: "@nexus_bot" }),
			admitWebhook() {},
			async webhook(_channel, account, request) {
				if (account !== "main") throw new NexusError("not_found", "There is no such account.");
				seen.webhooks.push(request);
				return { status: 202, headers: { "content-type": "text/xml", "set-cookie": "a=b" }, body: "<ok/>" };
			},
		},
		reload: async () => ({ added: [], changed: [], removed: [] }),
		idle: () => [],
		lab: IDLE_LAB,
		pairing: {
			list: async () => [pairing],
			approve: async (code) => ({ ...pairing, code, state: "approved", approvedAt: 7 }),
			async revoke(person) {
				if (person.sender !== "42") throw new NexusError("not_found", "not paired");
			},
		},
	};
	return { seen, channels };
}

async function rigWith(
	limits = {},
	deps: Partial<EdgeDeps> = {},
	lab = IDLE_LAB,
): Promise<{ rig: Rig; seen: ReturnType<typeof platforms>["seen"] }> {
	const { seen, channels } = platforms();
	const rig = await rigForTest({ deps: { channels: { ...channels, lab }, ...deps }, limits });
	return { rig, seen };
}

const bodyOf = async (response: Response | Promise<Response>): Promise<unknown> => (await response).json();

describe("accounts, deliveries and pairings", () => {
	it("are listed with their processes, cursors and codes", async () => {
		const { rig, seen } = await rigWith();
		expect(await bodyOf(rig.get("/v1/accounts"))).toEqual({
			now: expect.any(Number),
			accounts: [
				{
					channel: "telegram",
					account: "main",
					rate: { blocked_until: 99 },
					garbage_lines: 3,
					processes: { monitor: { state: "open_circuit", until: 5, restarts: 2, last_error: "gone" } },
					deliveries: { active: 1, complete: 1234, failed: 0, unknown: 0, stale: 0, damaged: 0 },
				},
			],
		});
		expect(await bodyOf(rig.post("/v1/accounts/telegram/main/health"))).toEqual({ ok: true, detail: "@nexus_bot" });
		const { deliveries } = (await bodyOf(rig.get("/v1/deliveries?run=run_1&state=active&limit=3"))) as {
			deliveries: object[];
		};
		expect(seen.asked.at(-1)).toEqual({ runId: "run_1", state: "active", limit: 3 });
		expect(deliveries).toEqual([
			{
				delivery_id: "dlv_00000000000000000000000001",
				run_id: "run_1",
				channel: "telegram",
				account: "main",
				target: { to: "42" },
				mode: "stream",
				state: "active",
				position: 5,
				created_at: 1,
				updated_at: 2,
				messages: [{ ordinal: 1, message_id: "m1", from: 0, to: 5, state: "sent" }],
			},
		]);
		expect(await bodyOf(rig.get("/v1/pairings"))).toEqual({
			pairings: [{ code: "ABC234", ...PERSON, requested_at: 1, expires_at: 9 }],
		});
		expect(await bodyOf(rig.post("/v1/pairings/ABC234/approve"))).toMatchObject({ code: "ABC234", approved_at: 7 });
		expect((await rig.get("/v1/pairings/telegram/main/42", {}, "DELETE")).status).toBe(200);
		expect((await rig.get("/v1/pairings/telegram/main/43", {}, "DELETE")).status).toBe(404);
	});

	it("a run or a text is delivered, and not both", async () => {
		const { rig, seen } = await rigWith();
		const place = { channel: "telegram", account: "main", target: { to: "42", topic: 7 } };
		const ofRun = await rig.post("/v1/deliveries", { ...place, run_id: "run_1" });
		expect([ofRun.status, await ofRun.json()]).toEqual([
			202,
			{ delivery_id: "dlv_00000000000000000000000001", run_id: "run_1" },
		]);
		expect(await bodyOf(rig.post("/v1/deliveries", { ...place, text: "hi", disable_streaming: true }))).toEqual({
			delivery_id: "dlv_00000000000000000000000001",
		});
		await rig.post("/v1/deliveries", { ...place, run_id: "run_1", tools: true, reasoning: false });
		expect(seen.delivered.pop()).toMatchObject({ options: { tools: true, reasoning: false } });
		expect((await rig.post("/v1/deliveries", { ...place, run_id: "run_1", tools: "yes" })).status).toBe(400);
		expect(seen.delivered).toEqual([
			{ account: { channel: "telegram", id: "main" }, target: place.target, runId: "run_1" },
			{
				account: { channel: "telegram", id: "main" },
				target: place.target,
				text: "hi",
				options: { disableStreaming: true },
			},
		]);
		expect((await rig.post("/v1/deliveries", { ...place, run_id: "run_1", text: "hi" })).status).toBe(400);
		expect((await rig.post("/v1/deliveries", { ...place, text: "hi", target: {} })).status).toBe(400);
	});

	it("are reloaded when they were stored or removed since the start", async () => {
		const { channels } = platforms();
		const changes = {
			added: [{ channel: "slack", id: "main" }],
			changed: [],
			removed: [{ channel: "sms", id: "old" }],
		};
		const rig = await rigForTest({ deps: { channels: { ...channels, reload: async () => changes } } });
		expect(await bodyOf(rig.post("/v1/accounts/reload"))).toEqual({
			added: [{ channel: "slack", account: "main" }],
			changed: [],
			removed: [{ channel: "sms", account: "old" }],
		});
		expect((await fetch(`${rig.url}/v1/accounts/reload`, { method: "POST" })).status).toBe(401);
	});

	it("are empty without channels", async () => {
		const rig = await rigForTest();
		expect(await bodyOf(rig.get("/v1/accounts"))).toEqual({ now: expect.any(Number), accounts: [] });
		expect(await bodyOf(rig.get("/v1/deliveries"))).toEqual({ deliveries: [] });
		expect(await bodyOf(rig.get("/v1/pairings"))).toEqual({ pairings: [] });
	});
});

describe("P6.13: a webhook", () => {
	const at = (rig: Rig, account = "main") => `${rig.url}/v1/webhooks/telegram/${account}`;

	it("hands over the raw bytes, query and headers without a token, from any origin, and answers as the adapter says", async () => {
		const { rig, seen } = await rigWith();
		const bytes = Buffer.from([0, 255, 123, 10, 34]);
		const headers = { origin: "https://platform.example", "x-signature": "abc", "content-type": "text/odd" };
		const response = await fetch(`${at(rig)}?a=1&b=%20`, { method: "POST", headers, body: bytes });
		expect([response.status, await response.text()]).toEqual([202, "<ok/>"]);
		expect(response.headers.get("content-type")).toBe("text/xml");
		expect(response.headers.get("set-cookie")).toBeNull();
		expect(response.headers.get("content-security-policy")).toContain("sandbox");
		expect(seen.webhooks).toEqual([
			{
				method: "POST",
				query: "a=1&b=%20",
				body: bytes.toString("base64"),
				headers: expect.objectContaining({ "x-signature": "abc", "content-type": "text/odd" }),
			},
		]);
		expect((await fetch(`${at(rig)}?hub.challenge=1`)).status).toBe(202);
		expect(seen.webhooks[1]).toMatchObject({ method: "GET", query: "hub.challenge=1", body: "" });
	});

	it("of an account that is not there is 404, too large a body is 413, another method 405", async () => {
		const { rig, seen } = await rigWith({ bodyBytesMax: 100 });
		expect((await fetch(at(rig, "other"), { method: "POST", body: "x" })).status).toBe(404);
		expect((await fetch(at(rig), { method: "POST", body: "x".repeat(101) })).status).toBe(413);
		expect((await fetch(at(rig), { method: "DELETE" })).status).toBe(405);
		expect(seen.webhooks).toEqual([]);
	});

	it("P6.14: is served to allowed names only: another Host gets nothing of the adapter", async () => {
		const { rig, seen } = await rigWith({}, { allowedHosts: ["hooks.example"] });
		const post = async (host: string) => {
			const call = request(at(rig), { method: "POST", headers: { host } });
			const [response] = (await once(call.end("x"), "response")) as [IncomingMessage];
			response.resume();
			return response.statusCode;
		};
		expect(await post("evil.example")).toBe(403);
		expect(await post("hooks.example.evil")).toBe(403);
		expect(seen.webhooks).toEqual([]);
		expect(await post("hooks.example")).toBe(202);
		expect(seen.webhooks).toHaveLength(1);
	});

	it("does not open the other endpoints", async () => {
		const { rig } = await rigWith();
		for (const path of ["/v1/webhooks/../accounts", "/v1/accounts", "/v1/webhooks/a/../../runs"])
			expect((await fetch(rig.url + path)).status).toBe(401);
	});
});

describe("the channel lab", () => {
	/** A lab with one platform, where one delivery is under way. */
	function oneChannelLab() {
		const faults: LabFault[] = [];
		const presses: string[][] = [];
		const delivery: Delivery = { ...DELIVERY, id: "dlv_00000000000000000000000002", account: "lab", createdAt: 7 };
		const message = { id: "1", text: "*Hi*", style: "marks" as const, created_at: 1, updated_at: 3, edits: 2 };
		const lab: Lab = {
			send: async (text, channels = ["telegram"]) => ({
				labId: text,
				runId: "run_1",
				session: "lab_1",
				deliveries: channels.map((channel) => ({ channel, deliveryId: "dlv_00000000000000000000000002" })),
			}),
			state: async () => ({
				now: 5,
				runId: "run_1",
				questionOpen: true,
				channels: [
					{
						channel: "telegram",
						ready: true,
						delivery,
						messages: [message],
						draft: message,
						typing: true,
						calls: [{ at: 1, call: "send", status: 429, ms: 2 }],
						calls_total: 9,
						pausedUntil: 8,
					},
				],
			}),
			async fault(fault) {
				if (fault.channel !== "telegram") throw new NexusError("not_found", "the lab has no such channel");
				faults.push(fault);
			},
			ask: async (text, channels = ["telegram"]) => `${text} ${channels.join()}`,
			async press(...press) {
				if (press[2] !== "Approve") throw new NexusError("not_found", "there is no such button");
				presses.push(press);
			},
			accounts: () => [{ channel: "telegram", account: "lab", processes: {}, deliveries: 1, restarts: 0, garbage: 0 }],
			deliveries: async ({ before = "~" }) => [delivery].filter(({ id }) => id < before),
			health: async () => ({ ok: true, detail: "a fake" }),
		};
		return { lab, faults, presses };
	}

	it("puts a question to platforms, and presses a button that is there", async () => {
		const { lab, presses } = oneChannelLab();
		const { rig } = await rigWith({}, {}, lab);
		const asked = await rig.post("/v1/lab/question", { text: "Run it?", channels: ["slack"] });
		expect([asked.status, await asked.json()]).toEqual([202, { question_id: "Run it? slack" }]);
		const press = { channel: "telegram", message: "2", label: "Approve" };
		expect(await bodyOf(rig.post("/v1/lab/press", press))).toEqual({ pressed: true });
		expect(presses).toEqual([["telegram", "2", "Approve"]]);
		expect((await rig.post("/v1/lab/press", { ...press, label: "Gone" })).status).toBe(404);
		expect((await rig.post("/v1/lab/press", { channel: "telegram" })).status).toBe(400);
		expect((await fetch(`${rig.url}/v1/lab/press`, { method: "POST", body: "{}" })).status).toBe(401);
	});

	it("tells what a platform shows with how far the delivery is", async () => {
		const { rig } = await rigWith({}, {}, oneChannelLab().lab);
		expect(await bodyOf(rig.get("/v1/lab/state"))).toMatchObject({
			now: 5,
			run_id: "run_1",
			question_open: true,
			channels: [
				{
					channel: "telegram",
					ready: true,
					mode: "stream",
					state: "active",
					position: 5,
					typing: true,
					rate_limited_until: 8,
					calls_total: 9,
					calls: [{ at: 1, call: "send", status: 429, ms: 2 }],
					messages: [{ text: "*Hi*", style: "marks", edits: 2 }],
					draft: { text: "*Hi*" },
					delivery: {
						delivery_id: "dlv_00000000000000000000000002",
						lab: true,
						messages: [{ ordinal: 1, state: "sent" }],
					},
				},
			],
		});
		expect((await rig.post("/v1/lab", { text: "hello", channels: ["telegram"] })).status).toBe(202);
	});

	it("has a platform misbehave for the next calls, which have to be named and counted", async () => {
		const { lab, faults } = oneChannelLab();
		const { rig } = await rigWith({}, {}, lab);
		const post = (body: object) => rig.post("/v1/lab/fault", body);
		expect(await bodyOf(post({ channel: "telegram", kind: "429", count: 3 }))).toEqual({ set: true });
		expect(await bodyOf(post({ channel: "telegram", kind: "hang" }))).toEqual({ set: true });
		expect(faults).toEqual([
			{ channel: "telegram", kind: "429", count: 3 },
			{ channel: "telegram", kind: "hang", count: 1 },
		]);
		expect((await post({ channel: "pigeon", kind: "429" })).status).toBe(404);
		expect((await post({ channel: "telegram", kind: "explode" })).status).toBe(400);
		expect((await post({ channel: "telegram", kind: "429", count: 0 })).status).toBe(400);
		expect((await fetch(`${rig.url}/v1/lab/fault`, { method: "POST", body: "{}" })).status).toBe(401);
		expect(faults).toHaveLength(2);
	});

	it("has accounts and deliveries, marked as its own", async () => {
		const { rig } = await rigWith({}, {}, oneChannelLab().lab);
		expect(await bodyOf(rig.get("/v1/accounts"))).toMatchObject({
			accounts: [{ account: "main" }, { account: "lab", lab: true, deliveries: { active: 1 } }],
		});
		expect(await bodyOf(rig.get("/v1/deliveries"))).toMatchObject({
			deliveries: [
				{ delivery_id: "dlv_00000000000000000000000002", lab: true },
				{ delivery_id: "dlv_00000000000000000000000001" },
			],
		});
		const { deliveries } = (await bodyOf(rig.get("/v1/deliveries?before=dlv_00000000000000000000000002"))) as {
			deliveries: object[];
		};
		expect(deliveries).toHaveLength(1);
		expect(await bodyOf(rig.post("/v1/accounts/telegram/lab/health"))).toEqual({ ok: true, detail: "a fake" });
	});
});
