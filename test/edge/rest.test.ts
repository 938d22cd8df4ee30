/** The REST contract (PROTOCOL §6), answer by answer. */

import { beforeEach, describe, expect, it } from "vitest";
import { turnWrites } from "../../packages/daemon/src/ledger/turns/port.ts";
import { removeUpTo } from "../bus/remove.ts";
import { BEARER, expectAnswer, expectError, type Rig, readAll, rigForTest, waitFor } from "./rig.ts";

interface RunJson {
	run_id: string;
	status: string;
	messages: { role: string; text: string; message_id?: string }[];
	tool_calls: { call_id: string; args?: unknown; result?: unknown }[];
	frames_available: boolean;
}

describe("REST", () => {
	let rig: Rig;
	beforeEach(async () => {
		rig = await rigForTest({ limits: { listItemsMax: 5 } });
	});

	const settled = async (runId: string) => {
		await rig.settled(runId);
		return runId;
	};
	const completed = async (session: string, text: string, answer: string) => {
		const { runId, puppet } = await rig.start(session, text);
		puppet.say(answer);
		puppet.finish();
		return settled(runId);
	};

	it("P6.3: a message starts a run; one for a busy session is queued and says so (I10)", async () => {
		const first = (await expectAnswer(
			"postMessage",
			await rig.post("/v1/sessions/s/messages", { text: "one" }),
		)) as Record<string, string>;
		expect(first).toMatchObject({ disposition: "started", run_id: expect.stringMatching(/^run_/) });
		const second = (await expectAnswer(
			"postMessage",
			await rig.post("/v1/sessions/s/messages", { text: "two" }),
		)) as Record<string, string>;
		expect(second).toEqual({ event_id: expect.stringMatching(/^evt_/), disposition: "queued" });

		expect(await expectAnswer("getEvent", await rig.get(`/v1/events/${second.event_id}`))).toMatchObject({
			session: "s",
			text: "two",
			disposition: "queued",
		});
		rig.puppet(first.run_id!).finish();
		await settled(first.run_id!);
		await waitFor(async () => (await rig.ledger.inbox.get(second.event_id!))?.disposition.state === "started");
		const event = (await expectAnswer("getEvent", await rig.get(`/v1/events/${second.event_id}`))) as {
			run_id: string;
		};
		expect(event.run_id).toMatch(/^run_/);
		rig.puppet(event.run_id).finish();
	});

	it("P6.3: the caller's traceparent is the run's trace, and its frames say so", async () => {
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736";
		const answer = await fetch(`${rig.url}/v1/sessions/s/messages`, {
			method: "POST",
			headers: { ...BEARER, "content-type": "application/json", traceparent: `00-${trace}-00f067aa0ba902b7-01` },
			body: JSON.stringify({ text: "hi" }),
		});
		const { run_id: run } = (await expectAnswer("postMessage", answer)) as { run_id: string };
		rig.puppet(run).finish();
		await settled(run);
		const [begin] = (await (await rig.get(`/v1/runs/${run}/frames`)).text()).split("\n");
		expect(JSON.parse(begin!)).toMatchObject({ type: "stream.begin", trace_id: trace });
	});

	it("P6.3: the same idempotency key gets the same answer and starts no second run", async () => {
		const send = () => rig.post("/v1/sessions/s/messages", { text: "once", idempotency_key: "k1" });
		const answers = await Promise.all([send(), send(), send()].map(async (sent) => (await sent).json()));
		answers.push(await (await send()).json());
		expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1);
		expect(rig.broker.liveRuns()).toHaveLength(1);
	});

	it("P6.3: attachments arrive whole and are listed with their size", async () => {
		const data = Buffer.from("hello, file").toString("base64");
		const response = await rig.post("/v1/sessions/s/messages", {
			text: "see file",
			attachments: [{ name: "a.txt", content_type: "text/plain", data }],
		});
		const { run_id } = (await expectAnswer("postMessage", response)) as { run_id: string };
		const live = (await expectAnswer("getRun", await rig.get(`/v1/runs/${run_id}`))) as RunJson;
		expect(live.messages[0]).toMatchObject({
			role: "user",
			text: "see file",
			attachments: [{ name: "a.txt", content_type: "text/plain", bytes: 11 }],
		});
	});

	it("P6.4: a message that waits can be taken back, one that has started cannot", async () => {
		const { eventId } = await rig.start("s", "first");
		const sent = await rig.post("/v1/sessions/s/messages", { text: "second" });
		const { event_id: waiting } = (await sent.json()) as { event_id: string };
		const remove = (event: string) => rig.get(`/v1/events/${event}`, {}, "DELETE");
		expect(await expectAnswer("cancelEvent", await remove(waiting))).toMatchObject({ disposition: "cancelled" });
		expect(await (await rig.get(`/v1/events/${waiting}`)).json()).toMatchObject({ disposition: "cancelled" });
		expect((await (await rig.get("/v1/sessions/s/turns")).json()) as object).toMatchObject({ queued: [] });
		for (const event of [waiting, eventId]) expect((await remove(event)).status).toBe(409);
		expect((await remove("evt_nope")).status).toBe(404);
	});

	it("P6.5: a turn that was rolled back says so", async () => {
		const runId = await completed("s", "1", "one");
		await rig.bus.write([turnWrites.rollBack(runId)]);
		expect(await expectAnswer("getRun", await rig.get(`/v1/runs/${runId}`))).toMatchObject({ rolled_back: true });
	});

	it("P6.5: a run shows its messages one by one and its tools, while they are still at work and after it settled", async () => {
		const { runId, puppet } = await rig.start("s", "question");
		puppet.say("Looking.");
		puppet.yield(
			{ type: "tool", callId: "c1", name: "clock", status: "started", args: { zone: "UTC" } },
			{ type: "tool", callId: "c1", name: "clock", status: "completed", result: { hour: 12 } },
			{ type: "message" },
			{ type: "text", delta: "Once more." },
			{ type: "tool", callId: "c2", name: "search", status: "started", summary: "reading" },
		);
		await waitFor(() => rig.broker.live(runId)?.toolCalls.length === 2);
		const live = {
			status: "running",
			frames_available: true,
			messages: [
				{ role: "user", text: "question", event_id: expect.stringMatching(/^evt_/) },
				{ role: "assistant", text: "Looking.", message_id: `${runId}.1` },
				{ role: "assistant", text: "Once more.", message_id: expect.stringContaining(runId) },
			],
			tool_calls: [
				{ call_id: "c1", status: "completed", message: 1, args: { zone: "UTC" }, result: { hour: 12 } },
				{ call_id: "c2", name: "search", status: "started", message: 2, summary: "reading" },
			],
		};
		const run = (await expectAnswer("getRun", await rig.get(`/v1/runs/${runId}`))) as RunJson;
		expect(run).toMatchObject(live);
		expect(run.tool_calls[1]).not.toHaveProperty("ended_at");
		const turns = await expectAnswer("listTurns", await rig.get("/v1/sessions/s/turns"));
		expect(turns).toMatchObject({ live });
		puppet.yield({ type: "usage", input: 3, output: 4 });
		puppet.finish();
		await settled(runId);
		expect(await expectAnswer("getRun", await rig.get(`/v1/runs/${runId}`))).toMatchObject({
			status: "completed",
			reason: "completed",
			usage: { input: 3, output: 4 },
			messages: live.messages,
			tool_calls: [live.tool_calls[0], { call_id: "c2", status: "failed" }],
		});
	});

	it("P6.5: a failed run says why", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.fail("the model is on fire");
		await settled(runId);
		expect(await expectAnswer("getRun", await rig.get(`/v1/runs/${runId}`))).toMatchObject({
			status: "failed",
			reason: "error",
			error: { message: expect.stringContaining("on fire") },
		});
	});

	it("P6.6: abort answers once the run has settled, keeps the partial text, and is idempotent", async () => {
		const { runId, puppet } = await rig.start("s");
		puppet.say("so far");
		await waitFor(() => rig.broker.live(runId)?.text === "so far");
		for (let i = 0; i < 2; i++) {
			const answer = await expectAnswer("abortRun", await rig.post(`/v1/runs/${runId}/abort`));
			expect(answer).toEqual({ run_id: runId, status: "aborted" });
		}
		expect(await expectAnswer("getRun", await rig.get(`/v1/runs/${runId}`))).toMatchObject({
			status: "aborted",
			messages: [{ role: "user" }, { role: "assistant", text: "so far" }],
		});
		const done = await completed("other", "q", "a");
		expect(await expectAnswer("abortRun", await rig.post(`/v1/runs/${done}/abort`))).toEqual({
			run_id: done,
			status: "completed",
		});
	});

	it.each(["/v1/runs", "/v1/sessions/s/turns", "/v1/events", "/v1/deliveries", "/v1/audit", "/v1/sessions"])(
		"P6.5: a position that is not an id of the list's items is 400: %s",
		async (path) => {
			for (const before of ["nonsense", "run_1", "abc_01JD0000000000000000000000"]) {
				const answer = await rig.get(`${path}?before=${before}`);
				expect([answer.status, await answer.json()]).toMatchObject([400, { error: { code: "invalid" } }]);
			}
		},
	);

	it("I11: a list is never longer than the limit of the daemon", async () => {
		for (let i = 0; i < 7; i++) await completed("s", `${i}`, "x");
		const { runs } = (await (await rig.get("/v1/runs?limit=1000")).json()) as { runs: unknown[] };
		expect(runs).toHaveLength(5);
	});

	it("P6.4: events are listed newest first, by session and state", async () => {
		await completed("a", "1", "x");
		await rig.start("b", "2");
		await rig.post("/v1/sessions/b/messages", { text: "3" });
		const texts = async (query: string) =>
			(
				(await expectAnswer("listEvents", await rig.get(`/v1/events${query}`))) as { events: { text: string }[] }
			).events.map(({ text }) => text);
		expect(await texts("")).toEqual(["3", "2", "1"]);
		expect(await texts("?state=queued")).toEqual(["3"]);
		expect(await texts("?session=b&limit=1")).toEqual(["3"]);
	});

	it("P6.5: the list of sessions says what answers", async () => {
		const named = await rigForTest({ deps: { engine: { name: "demo", scripted: true } } });
		expect(await expectAnswer("listSessions", await named.get("/v1/sessions"))).toEqual({
			sessions: [],
			engine: "demo",
			scripted: true,
		});
	});

	it("P6.5: sessions are listed most recent first, with the live run", async () => {
		await completed("a", "first of a", "x");
		// Sessions used in the same millisecond are equally recent.
		await waitFor(async () => Date.now() > (await rig.ledger.sessions.get("a"))!.updatedAt);
		const { runId } = await rig.start("b", "first of b");
		const { sessions } = (await expectAnswer("listSessions", await rig.get("/v1/sessions"))) as { sessions: object[] };
		expect(sessions).toMatchObject([
			{ session: "b", title: "first of b", turns: 0, live_run_id: runId },
			{ session: "a", title: "first of a", turns: 1 },
		]);
		expect(sessions[1]).not.toHaveProperty("live_run_id");
	});

	it("P6.5: turns, oldest first, with live run, queue and the offset where the stream continues", async () => {
		const first = await completed("s", "1", "one");
		const second = await completed("s", "2", "two");
		const { runId } = await rig.start("s", "3");
		await rig.post("/v1/sessions/s/messages", { text: "4" });
		const page = (await expectAnswer("listTurns", await rig.get("/v1/sessions/s/turns"))) as {
			turns: RunJson[];
			live: RunJson;
			queued: { text: string }[];
			stream_offset: number;
		};
		expect(page.turns.map(({ run_id }) => run_id)).toEqual([first, second]);
		expect(page.live.run_id).toBe(runId);
		expect(page.queued.map(({ text }) => text)).toEqual(["4"]);
		expect(page.stream_offset).toBe(
			((await rig.bus.describe(first))?.head ?? 0) + (await rig.bus.describe(second))!.head,
		);

		const older = (await (await rig.get(`/v1/sessions/s/turns?limit=1&before=${second}`)).json()) as {
			turns: RunJson[];
		};
		expect(older.turns.map(({ run_id }) => run_id)).toEqual([first]);
		expect(await expectAnswer("listTurns", await rig.get("/v1/sessions/unknown/turns"))).toEqual({
			turns: [],
			live: null,
			queued: [],
			stream_offset: 0,
		});
	});

	it("P6.7: frames are NDJSON, line k has offset after + k, while it runs and after", async () => {
		const { runId, puppet } = await rig.start("s");
		const lines = async (query = "") => {
			const response = await rig.get(`/v1/runs/${runId}/frames${query}`);
			expect(response.status).toBe(200);
			expect(response.headers.get("content-type")).toBe("application/x-ndjson");
			return (await response.text()).split("\n").slice(0, -1);
		};
		expect(await lines()).toHaveLength(1);
		puppet.say("a", "b", "c");
		puppet.finish();
		await settled(runId);
		const all = await lines();
		expect(all.map((line) => JSON.parse(line).type)).toEqual([
			"stream.begin",
			"stream.chunk",
			"stream.chunk",
			"stream.chunk",
			"stream.end",
		]);
		expect((await readAll(`${rig.url}/v1/runs/${runId}/stream`)).map(({ data }) => data)).toEqual(all);
		for (let after = 0; after <= all.length; after++) {
			expect(await lines(`?after=${after}`)).toEqual(all.slice(after));
			expect(await lines(`?after=${after}&limit=2`)).toEqual(all.slice(after, after + 2));
		}
		await expectError(await rig.get(`/v1/runs/${runId}/frames?after=6`), 400, "invalid");
	});

	it("I11: one answer has at most framesMax frames, however many are asked for", async () => {
		const short = await rigForTest({ limits: { framesMax: 3 } });
		const { runId, puppet } = await short.start("s");
		puppet.say("a", "b", "c", "d");
		puppet.finish();
		await short.settled(runId);
		const count = async (query: string) =>
			(await (await short.get(`/v1/runs/${runId}/frames${query}`)).text()).split("\n").length - 1;
		expect([await count(""), await count("?limit=5"), await count("?limit=2"), await count("?after=3")]).toEqual([
			3, 3, 2, 3,
		]);
	});

	it("P6.11: frames that retention removed are expired, and the turn says so", async () => {
		const runId = await completed("s", "q", "a");
		await removeUpTo(rig.bus, runId);
		await expectError(await rig.get(`/v1/runs/${runId}/frames`), 410, "expired");
		await expectError(await rig.get(`/v1/runs/${runId}/stream`), 410, "expired");
		expect(await expectAnswer("getRun", await rig.get(`/v1/runs/${runId}`))).toMatchObject({ frames_available: false });
	});

	it.each([
		"/v1/runs/run_X",
		"/v1/runs/run_X/frames",
		"/v1/runs/run_X/stream",
		"/v1/events/evt_X",
		"/v1/none",
		"/x.js",
	])("P6.1: not found: %s", async (path) => expectError(await rig.get(path), 404, "not_found"));
	it("not found: abort", async () => expectError(await rig.post("/v1/runs/run_X/abort"), 404, "not_found"));

	it.each([
		["GET", "/v1/sessions/s/messages", "POST"],
		["DELETE", "/v1/runs", "GET"],
		["PUT", "/v1/runs/x/abort", "POST"],
		["HEAD", "/v1/sessions/s/stream", "GET"],
	])("P6.1: 405 with Allow: %s %s", async (method, path, allow) => {
		const response = await fetch(rig.url + path, { method, headers: BEARER });
		expect(response.status).toBe(405);
		expect(response.headers.get("allow")).toBe(allow);
	});

	it.each([
		["a label with a slash", "/v1/sessions/a%2Fb/messages", { text: "x" }],
		["a label that is too long", `/v1/sessions/${"a".repeat(129)}/messages`, { text: "x" }],
		["no text", "/v1/sessions/s/messages", {}],
		["an empty message", "/v1/sessions/s/messages", { text: "  " }],
		["a text that is a number", "/v1/sessions/s/messages", { text: 1 }],
		[
			"an attachment that is not base64",
			"/v1/sessions/s/messages",
			{ text: "x", attachments: [{ name: "a", content_type: "b", data: "%%" }] },
		],
		["an array", "/v1/sessions/s/messages", []],
	])("P6.1: invalid: %s", async (_, path, body) => {
		await expectError(await rig.post(path, body), 400, "invalid");
		expect(rig.broker.liveRuns()).toEqual([]);
	});

	it.each([
		"/v1/runs?limit=0",
		"/v1/runs?limit=x",
		"/v1/runs?limit=1e1",
		"/v1/runs/r/stream?after=-1",
		"/v1/runs/r/stream?after=0x1",
		"/v1/runs/r/stream?after=",
		"/v1/events?state=none",
		"/v1/sessions/s/stream?after=x",
		"/v1/sessions/s/stream?after=%201",
	])("P6.1: invalid query: %s", async (path) => expectError(await rig.get(path), 400, "invalid"));

	it("an answer has its length, and no body for HEAD", async () => {
		const { runId } = await rig.start("s", "größer");
		for (const path of ["/healthz", "/v1/sessions", `/v1/runs/${runId}`]) {
			const response = await rig.get(path);
			expect(response.headers.get("content-length")).toBe(`${(await response.arrayBuffer()).byteLength}`);
			expect(response.headers.has("transfer-encoding")).toBe(false);
		}
		const head = await rig.get("/healthz", {}, "HEAD");
		expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "15", ""]);
		const posted = await rig.post("/v1/sessions/other/messages", { text: "hello" });
		expect([posted.status, posted.headers.has("content-length")]).toEqual([202, true]);
	});

	it("an answer that cannot be spelled is a failure that says so", async () => {
		const broken = await rigForTest({ deps: { engine: { name: 1n as never } } });
		await expectError(await broken.get("/v1/sessions"), 500, "internal");
		expect((await broken.get("/healthz")).status).toBe(200);
	});

	it("P6.13: health and readiness need no token", async () => {
		expect(await (await fetch(`${rig.url}/healthz`)).json()).toEqual({ status: "ok" });
		expect(await (await fetch(`${rig.url}/readyz`)).json()).toEqual({ ready: true, state: "READY" });
	});

	it("P6.13: metrics need one", async () => {
		await expectError(await fetch(`${rig.url}/metrics`), 401, "unauthenticated");
		const response = await rig.get("/metrics");
		expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4");
		expect(await response.text()).toBe("nexus_up 1\n");
	});
});

it("readyz is 503 with the state while the daemon is not ready", async () => {
	const rig = await rigForTest({
		deps: { readiness: () => ({ ready: false, state: "DEGRADED", detail: "disk full" }) },
	});
	const response = await fetch(`${rig.url}/readyz`);
	expect(response.status).toBe(503);
	expect(await response.json()).toEqual({ ready: false, state: "DEGRADED", detail: "disk full" });
	expect((await fetch(`${rig.url}/healthz`)).status).toBe(200);
});

it("I9: an error before the first begin is a status, and an unknown one tells nothing of the inside", async () => {
	const rig = await rigForTest({ deps: { submit: () => Promise.reject(new Error("secret path /etc/x")) } });
	const response = await rig.post("/v1/sessions/s/messages", { text: "x" });
	const body = await response.text();
	expect(response.status).toBe(500);
	expect(JSON.parse(body).error.code).toBe("internal");
	expect(body).not.toContain("secret");
});
