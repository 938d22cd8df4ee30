/** `nexus jobs` and the procedures about jobs, against a whole daemon, offline: the connector `default` is the demonstration. */

import { expect, test } from "vitest";
import { ScenarioJobState } from "../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { dataPaths, readToken } from "../../packages/daemon/src/runtime/runtime.ts";
import { asking, clientOf, head } from "../ai-client.ts";
import { readStream } from "../edge/grpc/kit.ts";
import { until } from "../until.ts";
import { daemonWith, jsonLines } from "./in-process.ts";

/** As `--json` prints a job, and an event of one. */
interface Job {
	state: string;
	text: string;
	run_id: string;
	reason_code: string;
	artifacts: { artifact_id: string; size_bytes: string; mime_type: string }[];
}
interface JobEvent {
	event_type: string;
	job: Job;
}

async function house() {
	const { data, daemon, restart, start: run } = await daemonWith();
	const start = (args: string[], tty = false) => run(["jobs", ...args], { tty });
	return {
		ai: () => clientOf(daemon()),
		authorization: { authorization: `Bearer ${readToken(dataPaths(data))}` },
		url: () => daemon().url,
		start,
		on: (...args: string[]) => start(args).end(),
		restart,
	};
}

test("a text is watched to its end, read by its run, listed and shown; it outlives the daemon", async () => {
	const { ai, on, restart } = await house();
	const { job } = await ai().submitScenarioJob({ scenario: asking("hello") });
	const { jobId } = job!;
	const watched = await on("watch", jobId, "--json", "--after", "0");
	expect(watched.code).toBe(0);
	const events = jsonLines<JobEvent>(watched.out);
	expect(events[0]!.event_type).toBe("SCENARIO_JOB_EVENT_TYPE_SUBMITTED");
	expect(events.at(-1)).toMatchObject({
		event_type: "SCENARIO_JOB_EVENT_TYPE_COMPLETED",
		job: { state: "SCENARIO_JOB_STATE_COMPLETED", demo: true },
	});
	const { text, run_id: runId } = events.at(-1)!.job;
	expect(text).toMatch(/\S/);
	const run = await readStream(ai().streamScenario({ runId }));
	expect(run.messages.map(({ textDelta }) => textDelta).join("")).toBe(text);
	expect((await on("watch", jobId)).out.trim()).toBe(text.trim());
	expect((await on()).out).toMatch(new RegExp(`^${jobId}\tcompleted\ttext\t`));
	const [listed] = jsonLines<Job>((await on("list", "--state", "completed", "--json")).out);
	expect(listed).toMatchObject({ job_id: jobId, app_id: "shop" });
	expect(listed!.text).toBe("");
	await restart();
	expect(jsonLines<Job>((await on("show", jobId, "--json")).out)[0]).toMatchObject({
		text,
		state: "SCENARIO_JOB_STATE_COMPLETED",
	});
	expect((await ai().getScenarioJob({ jobId })).job).toMatchObject({ text, state: ScenarioJobState.COMPLETED });
	expect((await on("show", "job_none")).code).toBe(4);
});

test("speech and an image become artifacts that can be downloaded", async () => {
	const { ai, on, url, authorization } = await house();
	const speech = { head, spec: { case: "speechSynthesize" as const, value: { text: "good morning" } } };
	const image = { head, spec: { case: "imageGenerate" as const, value: { prompt: "a log", count: 2 } } };
	for (const [scenario, count, type] of [
		[speech, 1, /^audio\//],
		[image, 2, /^image\//],
	] as const) {
		const { job } = await ai().submitScenarioJob({ scenario });
		const watched = await on("watch", job!.jobId, "--json");
		const { artifacts, state, reason_code } = jsonLines<JobEvent>(watched.out).at(-1)!.job;
		expect([state, reason_code, artifacts.length]).toEqual([
			"SCENARIO_JOB_STATE_COMPLETED",
			"REASON_CODE_UNSPECIFIED",
			count,
		]);
		for (const { artifact_id: id, size_bytes: size, mime_type } of artifacts) {
			expect(mime_type).toMatch(type);
			const response = await fetch(`${url()}/v1/artifacts/${id}`, { headers: authorization });
			expect((await response.arrayBuffer()).byteLength).toBe(Number(size));
			expect((await ai().getArtifact({ artifactId: id })).chunk).toHaveLength(Number(size));
		}
	}
});

test("one that runs is cancelled, and its watcher hears of it; a person sees each snapshot in the place of the one before", async () => {
	const { ai, on, start } = await house();
	const { job } = await ai().submitScenarioJob({ scenario: asking("/demo tokens=100000 rate=10") });
	const { jobId } = job!;
	const watching = start(["watch", jobId], true);
	await until("its run is known", async () => (await ai().getScenarioJob({ jobId })).job!.runId !== "");
	await until("it is shown", () => watching.err.includes("running"));
	expect((await on("cancel", jobId, "too", "long")).out).toBe(`${jobId}: canceled\n`);
	const { code, err } = await watching.end();
	expect(code).toBe(130);
	expect(err).toMatch(new RegExp(`\\r\\x1b\\[2K${jobId}  .*running[^]*\\r\\x1b\\[2K${jobId}  .*canceled`));
	expect((await on("show", jobId, "--json")).out).toContain('"reason":"it was cancelled: too long"');
});

test("Z18: what ran when the daemon stopped ends as STOPPING, and its watcher reads that at the next one", async () => {
	const { ai, on, start, restart } = await house();
	const { job } = await ai().submitScenarioJob({ scenario: asking("/demo tokens=100000 rate=10") });
	const { jobId } = job!;
	await until("it runs", async () => (await ai().getScenarioJob({ jobId })).job!.runId !== "");
	const watching = start(["watch", jobId, "--json"]);
	await until("it is watched", () => watching.out.includes("\n"));
	await restart();
	const { out } = await watching.end();
	expect(jsonLines<JobEvent>(out).at(-1)).toMatchObject({
		event_type: "SCENARIO_JOB_EVENT_TYPE_FAILED",
		job: { reason_code: "REASON_CODE_STOPPING" },
	});
	expect((await on("list", "--state", "failed")).out).toContain(jobId);
});
