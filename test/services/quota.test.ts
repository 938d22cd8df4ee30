/** How much of the disk an application may take: what counts, and that more is refused everywhere. */

import { describe, expect, it } from "vitest";
import { createClearing } from "../../packages/daemon/src/services/apps/clearing.ts";
import { AppMessageLogs } from "../../packages/daemon/src/services/apps/messages.ts";
import { StoredArtifacts } from "../../packages/daemon/src/services/artifacts/artifacts.ts";
import { artifactWrites } from "../../packages/daemon/src/services/artifacts/rows.ts";
import { noticeLogs } from "../../packages/daemon/src/services/audit/notices.ts";
import { createAudit } from "../../packages/daemon/src/services/audit/record.ts";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import type { TextEvent } from "../../packages/daemon/src/services/connectors/port.ts";
import { jobWrites } from "../../packages/daemon/src/services/jobs/rows.ts";
import { createQuota, type Quota, storedTotal } from "../../packages/daemon/src/services/kit/quota.ts";
import { workflowWrites } from "../../packages/daemon/src/services/workflows/rows.ts";
import { manualClock } from "../clock.ts";
import { freshFolder } from "../runtime/folder.ts";
import { storeForTest, type TestStore } from "../store.ts";
import { admittedOf, jobsRig, OWNER } from "./jobs-rig.ts";
import { rejectsWith } from "./parts.ts";
import { finalOf, rig as scenarioRig, admittedOf as textOf } from "./scenarios/rig.ts";

const REFUSED = { code: "busy", reason: "QUOTA_EXCEEDED" };
const FILE = { name: "a", mimeType: "text/plain", createdAt: 1, expiresAt: 1e15, complete: true };

/** 1000 bytes and a little more of everything. */
async function fill({ bus }: TestStore, appId: string, n = 1): Promise<void> {
	const text = "x".repeat(1000);
	const job = { id: `job_${appId}${n}`, appId, state: "failed", createdAt: 1, finishedAt: 2, job: {} };
	const flow = {
		id: `wf_${appId}${n}`,
		appId,
		userId: "",
		owner: false,
		name: "",
		state: "failed",
		createdAt: 1,
		finishedAt: 2,
	};
	await bus.write([
		jobWrites.submit(job, { text }),
		workflowWrites.create({ ...flow, definition: {} }, [
			{ nodeId: "a", state: "completed", status: {}, output: { text } },
		]),
		artifactWrites.add({ id: `art_${appId}${n}`, appId, sizeBytes: 1000, ...FILE }),
		noticeWrites.post("app:other", JSON.stringify({ text }), 1, appId),
		noticeWrites.post("audit", JSON.stringify({ text }), 1),
	]);
	const writer = await bus.create({ log: `run_${appId}${n}`, kind: "scenario", countedFor: appId }, [text]);
	await writer.seal([]);
}

/** For a service that is made before its quota. */
const later = (quota: () => Quota): Pick<Quota, "check" | "holding"> => ({
	check: (...args) => quota().check(...args),
	holding: (...args) => quota().holding(...args),
});

describe("I11: the quota of an application", () => {
	it("counts jobs, workflows, logs, artifacts and messages, each for whom it is stored", async () => {
		const store = storeForTest();
		const quota = createQuota({ ...store, limits: { bytesPerAppMax: 6000 } });
		await fill(store, "shop");
		await fill(store, "press");
		const stored = await quota.usage("shop");
		for (const bytes of Object.values(stored)) expect([bytes >= 1000, bytes < 1100]).toEqual([true, true]);
		expect(await quota.usage("other")).toEqual({ jobs: 0, workflows: 0, logs: 0, artifacts: 0, messages: 0 });
		await quota.check("shop", 6000 - storedTotal(stored));
		const refused = quota.check("shop", 6001 - storedTotal(stored));
		await expect(refused).rejects.toMatchObject(REFUSED);
		await expect(refused).rejects.toThrow(/apps\.bytesPerAppMax.*/);
		await expect(refused).rejects.toThrow(/artifacts 1000/);
	});

	it("what is on its way counts already, until it is stored or has failed", async () => {
		const quota = createQuota({ ...storeForTest(), limits: { bytesPerAppMax: 100 } });
		const { promise, reject } = Promise.withResolvers<void>();
		const work = quota.holding("shop", 60, () => promise);
		await quota.check("press", 60);
		await expect(quota.holding("shop", 60, async () => {})).rejects.toMatchObject(REFUSED);
		reject(new Error("refused"));
		await expect(work).rejects.toThrow("refused");
		expect(await quota.holding("shop", 60, async () => "stored")).toBe("stored");
	});

	it("is refused to a job by the size of its request, and nothing of the job is stored", async () => {
		const rig: ReturnType<typeof jobsRig> = jobsRig({
			deps: { quota: later(() => quota) },
		});
		const quota: Quota = createQuota({ ...rig, limits: { bytesPerAppMax: 5000 } });
		const submit = (chars: number, appId = "app") =>
			rig.jobs.submit(admittedOf({ inputs: ["x".repeat(chars)] }, { appId }));
		await submit(3000);
		await expect(submit(3000)).rejects.toMatchObject(REFUSED);
		await submit(3000, "other");
		await submit(100);
		expect((await rig.jobs.list({ limit: 9 }, OWNER)).jobs.map(({ appId }) => appId)).toEqual(["app", "other", "app"]);
	});

	it("is refused to uploads and messages, and to a model call before it begins", async () => {
		const store = storeForTest();
		const quota = createQuota({ ...store, limits: { bytesPerAppMax: 6000 } });
		await fill(store, "shop");
		const clock = manualClock(1000);
		const artifacts = new StoredArtifacts({ dir: freshFolder(), ...store, clock, quota });
		const file = { appId: "shop", name: "big", mimeType: "text/plain" };
		await expect(artifacts.store(file, Buffer.alloc(1000))).rejects.toMatchObject(REFUSED);
		const notices = noticeLogs(store);
		const messages = new AppMessageLogs({ ...store, apps: { has: () => true }, notices, clock, quota });
		const message = { from: "shop", to: "press", messageType: "m", requireAck: false };
		const send = (bytes: number) => messages.send({ ...message, payload: Buffer.alloc(bytes) }, OWNER);
		await expect(send(1000)).rejects.toMatchObject(REFUSED);
		await send(100);
		expect((await quota.usage("shop")).messages).toBeGreaterThan(1100);
		await fill(store, "shop", 2);
		const call = scenarioRig(async function* () {}, { quota });
		await expect(call.scenarios.start(textOf())).rejects.toMatchObject(REFUSED);
		expect(await call.bus.list({})).toEqual([]);
	});

	it("ends a model call that grows beyond it, with the reason", async () => {
		const piece: TextEvent = { type: "text", delta: "x".repeat(32 * 1024) };
		const call: ReturnType<typeof scenarioRig> = scenarioRig(
			async function* () {
				for (let n = 0; n < 200; n++) yield piece;
			},
			{ quota: later(() => quota) },
		);
		const quota: Quota = createQuota({ ...call, limits: { bytesPerAppMax: 1024 * 1024 } });
		const { runId } = await call.scenarios.start(textOf());
		const end = finalOf(await call.frames(runId));
		expect(end).toMatchObject({ reason: "error", error: { code: "busy", reason: "QUOTA_EXCEEDED" } });
		expect(await call.bus.bytesOf("shop")).toBeLessThan(200 * 32 * 1024);
	});

	it("clearing removes what is over of one application, and nothing else", async () => {
		const store = storeForTest();
		const { bus, rows } = store;
		const quota = createQuota(store);
		for (const app of ["shop", "press"]) for (const n of [1, 2, 3]) await fill(store, app, n);
		const live = { id: "job_live", appId: "shop", state: "running", createdAt: 1, job: {} };
		await bus.write([jobWrites.submit(live, {})]);
		const artifacts = new StoredArtifacts({ dir: freshFolder(), bus, rows, clock: manualClock() });
		const clear = createClearing({ bus, rows, artifacts, audit: createAudit(manualClock()) });
		const before = await quota.usage("press");
		await rejectsWith(clear("shop", { ...OWNER, owner: false, appId: "shop" }), "forbidden");
		await clear("shop", OWNER);
		const { messages, ...rest } = await quota.usage("shop");
		expect(rest).toEqual({ jobs: 4, workflows: 0, logs: 0, artifacts: 0 });
		expect(messages).toBe(before.messages);
		expect(await quota.usage("press")).toEqual(before);
		expect((await rows.jobs.list({ appId: "shop", limit: 9 })).map(({ id }) => id)).toEqual(["job_live"]);
	});
});
