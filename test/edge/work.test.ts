/** Continuing, phases and the execution log over HTTP. */

import { beforeEach, describe, expect, it } from "vitest";
import type { RunJson, SessionLogJson, SessionPhaseJson } from "../../packages/protocol/src/gen/api.ts";
import { BEARER, Puppet, type Rig, rigForTest } from "./rig.ts";

let rig: Rig;
const puppets = new Map<string, Puppet>();
const puppetOf = (runId: string): Puppet => {
	const found = puppets.get(runId) ?? new Puppet();
	puppets.set(runId, found);
	return found;
};

beforeEach(async () => {
	const engine = {
		name: "puppet",
		continues: true,
		phases: ["plan", "execute"],
		run: ({ runId }: { runId: string }, { signal }: { signal: AbortSignal }) => puppetOf(runId).run(signal),
	};
	rig = await rigForTest({ engine });
});

const json = async <T>(response: Promise<Response>): Promise<T> => (await (await response).json()) as T;
const runOf = (runId: string) => json<RunJson>(rig.get(`/v1/runs/${runId}`));
const put = (path: string, body: unknown) =>
	fetch(rig.url + path, {
		method: "PUT",
		headers: { ...BEARER, "content-type": "application/json" },
		body: JSON.stringify(body),
	});

describe("POST /v1/runs/{run}/continue", () => {
	it("starts the continuing run, and both runs say so", async () => {
		const { runId } = await rig.start("main");
		puppetOf(runId).say("half");
		puppetOf(runId).fail("cut off");
		await rig.settled(runId);
		expect(await runOf(runId)).toMatchObject({ status: "failed", can_continue: true });
		const response = await rig.post(`/v1/runs/${runId}/continue`);
		expect(response.status).toBe(202);
		const { run_id: next, continues } = (await response.json()) as { run_id: string; continues: string };
		expect(continues).toBe(runId);
		expect(await runOf(next)).toMatchObject({ status: "running", continues: runId });
		expect(await runOf(runId)).toMatchObject({ continued_by: next, can_continue: false });
		expect(await json(rig.post(`/v1/runs/${runId}/continue`))).toEqual({ run_id: next, continues: runId });
		puppetOf(next).finish();
		await rig.settled(next);
		const done = await runOf(next);
		expect(done).toMatchObject({ status: "completed", continues: runId });
		expect(done.can_continue).toBeUndefined();
	});

	it("is refused with 409 and the reason, or 404", async () => {
		const { runId } = await rig.start("main");
		puppetOf(runId).finish();
		await rig.settled(runId);
		const refused = await rig.post(`/v1/runs/${runId}/continue`);
		expect(refused.status).toBe(409);
		expect(await refused.json()).toMatchObject({ error: { message: expect.stringContaining("has completed") } });
		expect((await rig.post("/v1/runs/run_x/continue")).status).toBe(404);
	});
});

describe("POST /v1/runs/{run}/retry", () => {
	it("P6.6: answers the same message with a new run, once", async () => {
		const { runId } = await rig.start("main");
		puppetOf(runId).fail("cut off");
		await rig.settled(runId);
		expect(await runOf(runId)).toMatchObject({ status: "failed", can_retry: true });
		const response = await rig.post(`/v1/runs/${runId}/retry`);
		expect(response.status).toBe(202);
		const { run_id: next, retries } = (await response.json()) as { run_id: string; retries: string };
		expect(retries).toBe(runId);
		const [before, after] = await Promise.all([runOf(runId), runOf(next)]);
		expect(after.continues).toBeUndefined();
		expect(after.messages[0]).toEqual(before.messages[0]);
		expect(before.can_retry).toBe(false);
		expect((await rig.post(`/v1/runs/${runId}/retry`)).status).toBe(409);
		puppetOf(next).finish();
		await rig.settled(next);
		expect((await runOf(next)).can_retry).toBeUndefined();
		expect((await rig.post(`/v1/runs/${next}/retry`)).status).toBe(409);
		expect((await rig.post("/v1/runs/run_x/retry")).status).toBe(404);
	});
});

describe("/v1/sessions/{session}/settings", () => {
	it("P6.6: tells and sets whether the history is trusted, and takes nothing else", async () => {
		const path = "/v1/sessions/main/settings";
		expect(await json(rig.get(path))).toEqual({ session: "main", trust_history: false });
		const set = await put(path, { trust_history: true });
		expect([set.status, await set.json()]).toEqual([200, { session: "main", trust_history: true }]);
		expect(await json(rig.get(path))).toEqual({ session: "main", trust_history: true });
		for (const wrong of [{}, { trust_history: "yes" }, { trust_history: true, all: true }])
			expect((await put(path, wrong)).status).toBe(400);
		await put(path, { trust_history: false });
		expect(await json(rig.get(path))).toEqual({ session: "main", trust_history: false });
		expect(await json(rig.get("/v1/sessions/other/settings"))).toEqual({ session: "other", trust_history: false });
	});
});

describe("/v1/sessions/{session}/phase", () => {
	it("tells the phase, and sets it", async () => {
		expect(await json(rig.get("/v1/sessions/main/phase"))).toEqual({
			session: "main",
			phase: null,
			known: ["plan", "execute"],
		});
		const set = await put("/v1/sessions/main/phase", { name: "plan" });
		expect(set.status).toBe(200);
		await put("/v1/sessions/main/phase", { name: "execute", because: "it is time" });
		const { phase } = await json<SessionPhaseJson>(rig.get("/v1/sessions/main/phase"));
		expect(phase).toMatchObject({ name: "execute", from: "plan", because: "it is time", turns: 0, completions: 0 });
	});
});

describe("GET /v1/sessions/{session}/log", () => {
	it("has the entries, oldest first, in pages and by run", async () => {
		const { runId } = await rig.start("main");
		const entry = (text: string) => ({ type: "log" as const, entry: { kind: "note" as const, text } });
		puppetOf(runId).yield(entry("one"), entry("two"), entry("three"));
		puppetOf(runId).finish();
		await rig.settled(runId);
		const logOf = (query: string) => json<SessionLogJson>(rig.get(`/v1/sessions/main/log${query}`));
		const { entries } = await logOf("?limit=2");
		expect(entries.map(({ text, kind, run_id }) => [text, kind, run_id])).toEqual([
			["two", "note", runId],
			["three", "note", runId],
		]);
		const older = await logOf(`?limit=2&before=${entries[0]!.id}`);
		expect(older.entries.map(({ text }) => text)).toEqual(["one"]);
		expect((await logOf("?run=run_x")).entries).toEqual([]);
	});
});
