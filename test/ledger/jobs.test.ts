import { describe, expect, test } from "vitest";
import { artifactWrites, type StoredArtifact } from "../../packages/daemon/src/services/artifacts/rows.ts";
import { jobWrites, type StoredJob } from "../../packages/daemon/src/services/jobs/rows.ts";
import { stores } from "./rig.ts";

const jobOf = (n: number, fields: Partial<StoredJob> = {}): StoredJob => ({
	id: `job_${n}`,
	appId: "app",
	state: "queued",
	createdAt: n,
	job: { model: "a\0b" },
	...fields,
});

describe.each(stores)("jobs %s", (_name, open) => {
	test("are listed newest first, by application, state and page", async () => {
		const { ledger, write } = await open();
		for (const n of [1, 2, 3]) await write(jobWrites.submit(jobOf(n), { model: "m" }));
		await write(jobWrites.submit(jobOf(4, { appId: "other", state: "running" }), { model: "m" }));
		const ids = async (query: object) => (await ledger.jobs.list({ limit: 9, ...query })).map(({ id }) => id);
		expect(await ids({})).toEqual(["job_4", "job_3", "job_2", "job_1"]);
		expect(await ids({ appId: "app", limit: 2 })).toEqual(["job_3", "job_2"]);
		expect(await ids({ before: "job_2" })).toEqual(["job_1"]);
		// A job that was forgotten since.
		expect(await ids({ before: "job_2a" })).toEqual(["job_2", "job_1"]);
		expect(await ids({ before: "job_0" })).toEqual([]);
		expect(await ids({ states: ["running", "failed"] })).toEqual(["job_4"]);
		const stored = jobOf(1, { job: { model: "a\uFFFDb" } });
		expect(await ledger.jobs.get("job_1")).toEqual(stored);
		expect(await ledger.jobs.scenario("job_1")).toEqual({ model: "m" });
		expect(await ledger.jobs.scenario("job_9")).toBeUndefined();
		const ended = { id: "job_1", state: "completed", job: stored.job, finishedAt: 5 };
		await write(jobWrites.change({ ...ended, result: { text: "long\0" } }));
		const row = { ...stored, state: "completed", finishedAt: 5 };
		expect(await ledger.jobs.get("job_1")).toEqual({ ...row, result: { text: "long\uFFFD" } });
		expect([await ledger.jobs.head("job_1"), (await ledger.jobs.list({ limit: 9 })).at(-1)]).toEqual([row, row]);
	});

	test("count for their application with requests and results, until they are forgotten", async () => {
		const { ledger, write } = await open();
		const bytes = () => Promise.all(["app", "other"].map(async (app) => ledger.jobs.bytes(app)));
		await write(
			jobWrites.submit(jobOf(1, { job: {} }), { text: "é".repeat(500) }),
			jobWrites.submit(jobOf(2, { job: {} }), {}),
		);
		expect(await bytes()).toEqual([2 + 1011 + 2 + 2, 0]);
		const result = { text: "x".repeat(100) };
		await write(jobWrites.change({ id: "job_1", state: "completed", job: {}, result, finishedAt: 10 }));
		expect(await bytes()).toEqual([1017 + 111, 0]);
		await write(jobWrites.forget(11, 5));
		expect(await bytes()).toEqual([4, 0]);
		expect(await ledger.jobs.scenario("job_1")).toBeUndefined();
	});

	test("I3: one that has ended never changes, and is forgotten after its time", async () => {
		const { ledger, write } = await open();
		await write(jobWrites.submit(jobOf(1), {}), jobWrites.submit(jobOf(2), {}));
		await write(jobWrites.change({ id: "job_1", state: "failed", job: {}, finishedAt: 10 }));
		await expect(write(jobWrites.change({ id: "job_1", state: "completed", job: {} }))).rejects.toThrow("has ended");
		expect(await ledger.jobs.isOlder(10)).toBe(false);
		expect(await ledger.jobs.isOlder(11)).toBe(true);
		await write(jobWrites.forget(11, 5));
		expect((await ledger.jobs.list({ limit: 9 })).map(({ id }) => id)).toEqual(["job_2"]);
	});
});

const artifactOf = (id: string, fields: Partial<StoredArtifact> = {}): StoredArtifact => ({
	id,
	appId: "app",
	name: "a.txt",
	mimeType: "text/plain",
	sizeBytes: 5,
	createdAt: 1,
	expiresAt: 10,
	complete: false,
	...fields,
});

describe.each(stores)("artifacts %s", (_name, open) => {
	test("are whole once, count with what they announced, and expire", async () => {
		const { ledger, write } = await open();
		await write(
			artifactWrites.add(artifactOf("art_1", { sha256: "ab" })),
			artifactWrites.add(artifactOf("art_2", { appId: "b" })),
		);
		expect(await ledger.artifacts.usage("app")).toEqual({ bytes: 5, count: 1 });
		expect(await ledger.artifacts.usage()).toEqual({ bytes: 10, count: 2 });
		expect((await ledger.artifacts.unfinished()).map(({ id }) => id)).toEqual(["art_1", "art_2"]);
		const { id: _, ...same } = artifactOf("", { sha256: "ab" });
		expect(await ledger.artifacts.same(same)).toMatchObject({ id: "art_1" });
		expect(await ledger.artifacts.same({ ...same, appId: "b" })).toBeUndefined();
		await write(artifactWrites.complete("art_2", "cd"));
		await expect(write(artifactWrites.complete("art_2", "cd"))).rejects.toThrow("no unfinished");
		expect(await ledger.artifacts.get("art_2")).toEqual(
			artifactOf("art_2", { appId: "b", sha256: "cd", complete: true }),
		);
		await write(artifactWrites.renew("art_2", 20));
		expect((await ledger.artifacts.expired(10, 9)).map(({ id }) => id)).toEqual(["art_1"]);
		await write(artifactWrites.remove("art_1"), artifactWrites.remove("art_1"));
		expect(await ledger.artifacts.get("art_1")).toBeUndefined();
	});
});
