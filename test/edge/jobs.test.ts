/** The endpoints about jobs and artifacts. */

import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Services } from "../../packages/daemon/src/runtime/wiring/port.ts";
import { StoredArtifacts } from "../../packages/daemon/src/services/artifacts/artifacts.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { freshFolder } from "../runtime/folder.ts";
import { admittedOf, jobsRig, OWNER } from "../services/jobs-rig.ts";
import { until } from "../until.ts";
import { BEARER, expectError, readAll, readSse, rigForTest } from "./rig.ts";

async function started() {
	const played = jobsRig({ limits: { runningMax: 1 } });
	const artifacts = new StoredArtifacts({
		...played,
		dir: join(freshFolder(), "artifacts"),
		clock: systemClock,
	});
	const services = { jobs: played.jobs, artifacts } as unknown as Services;
	const rig = await rigForTest({ limits: { listItemsMax: 2 }, services: () => services });
	return { ...played, rig, artifacts, submit: () => played.jobs.submit(admittedOf()) };
}

const eventsIn = (events: readonly { data: string }[]) =>
	events
		.map(({ data }) => JSON.parse(data) as { event_type: string; job: object })
		.map(({ event_type, job }) => ({ type: event_type.replace("SCENARIO_JOB_EVENT_TYPE_", ""), job }))
		.filter(({ type }) => type !== "PROGRESS");

describe("jobs over HTTP", () => {
	it("R4-45: stream to their terminal and close cleanly; a browser that has everything gets 204", async () => {
		const { rig, submit, calls } = await started();
		const { id } = await submit();
		await until("it runs", () => calls.length === 1);
		const path = `${rig.url}/v1/jobs/${id}/stream`;
		const reader = await readSse(path);
		await reader.until((events) => events.length > 0);
		calls[0]!.answer();
		expect(await reader.ended).toBe("clean");
		// On a slow machine it may begin with progress: a job that runs, too.
		const jobs = reader.events.map(({ data }) => (JSON.parse(data) as { job: { state: string } }).job);
		expect([...new Set(jobs.map(({ state }) => state))]).toEqual([
			"SCENARIO_JOB_STATE_RUNNING",
			"SCENARIO_JOB_STATE_COMPLETED",
		]);
		expect(jobs.at(-1)).toMatchObject({
			job_id: id,
			state: "SCENARIO_JOB_STATE_COMPLETED",
			embeddings: [{ values: [1] }],
		});
		const all = await readAll(`${path}?after=0`);
		expect(eventsIn(all).map(({ type }) => type)).toEqual(["SUBMITTED", "RUNNING", "COMPLETED"]);
		expect(eventsIn(await readAll(path, { "last-event-id": "1" })).map(({ type }) => type)).toEqual([
			"RUNNING",
			"COMPLETED",
		]);
		expect(eventsIn(await readAll(path)).map(({ type }) => type)).toEqual(["COMPLETED"]);
		const again = await fetch(path, { headers: { ...BEARER, "last-event-id": all.at(-1)!.id! } });
		expect(again.status).toBe(204);
		await expectError(await rig.get("/v1/jobs/job_none/stream"), 404, "not_found");
	});
});

describe("artifacts over HTTP", () => {
	it("Z20: are saved, never shown, whatever they are called and are", async () => {
		const { rig, artifacts } = await started();
		const page = Buffer.from("<script>alert(1)</script>");
		const stored = await artifacts.store({ appId: "app", name: 'a"b\r\nü.html', mimeType: "text/html" }, page);
		const response = await rig.get(`/v1/artifacts/${stored.id}`);
		expect(response.status).toBe(200);
		expect(await response.text()).toBe(page.toString());
		expect(Object.fromEntries(response.headers)).toMatchObject({
			"content-type": "text/html",
			"content-length": String(page.length),
			"content-disposition": `attachment; filename="a_b___.html"; filename*=UTF-8''a%22b%0D%0A%C3%BC.html`,
			"x-content-type-options": "nosniff",
			"content-security-policy": "sandbox; default-src 'none'",
		});
		expect((await rig.get(`/v1/artifacts/${stored.id}`, {}, "HEAD")).headers.get("content-length")).toBe(
			String(page.length),
		);
		await until("its transfer is over", () =>
			artifacts.transfers.list(OWNER).some(({ state }) => state === "completed"),
		);
		expect((await fetch(`${rig.url}/v1/artifacts/${stored.id}`)).status).toBe(401);
		await expectError(await rig.get("/v1/artifacts/art_none"), 404, "not_found");
		await expectError(await rig.get("/v1/artifacts/..%2F..%2Fnexus.db"), 404, "not_found");
	});

	it.each([
		["bytes=2-4", 206, "llo", "bytes 2-4/11"],
		["bytes=6-", 206, "world", "bytes 6-10/11"],
		["bytes=-3", 206, "rld", "bytes 8-10/11"],
		["bytes=6-99", 206, "world", "bytes 6-10/11"],
		["bytes=11-", 416, "", "bytes */11"],
		["bytes=4-2", 200, "hello world", null],
		["bytes=0-1,3-4", 200, "hello world", null],
	])("answer the range %s with %i", async (range, status, body, contentRange) => {
		const { rig, artifacts } = await started();
		const { id } = await artifacts.store(
			{ appId: "app", name: "a", mimeType: "text/plain" },
			Buffer.from("hello world"),
		);
		const response = await rig.get(`/v1/artifacts/${id}`, { range });
		expect([response.status, await response.text(), response.headers.get("content-range")]).toEqual([
			status,
			body,
			contentRange,
		]);
	});

	it("are refused until they are whole", async () => {
		const { rig, artifacts } = await started();
		const chunk = new Uint8Array(3);
		const piece = { appId: "app", name: "a", mimeType: "", sizeBytes: 9, sha256: "", offset: 0, chunk };
		const { artifact } = await artifacts.upload(piece, OWNER);
		await expectError(await rig.get(`/v1/artifacts/${artifact.id}`), 409, "precondition");
	});
});

it("Z25: a download ends when its token is taken back", async () => {
	const { rig, artifacts } = await started();
	const { token } = await rig.apps.add({ id: "shop" }, OWNER);
	// More than what is on its way to a reader that does not read.
	const { id } = await artifacts.store({ appId: "shop", name: "a", mimeType: "" }, Buffer.alloc(64 * 1024 ** 2));
	const answer = await rig.get(`/v1/artifacts/${id}`, { authorization: `Bearer ${token}` });
	expect(answer.status).toBe(200);
	await rig.apps.remove("shop", OWNER);
	await expect(answer.arrayBuffer()).rejects.toThrow();
});
