/** Retention in the background: at its intervals, through failures, and never after a stop. */

import { describe, expect, it, onTestFinished } from "vitest";
import type { Bus, Retention } from "../../packages/daemon/src/bus/bus.ts";
import { type Approval, approvalWrites } from "../../packages/daemon/src/ledger/approvals/port.ts";
import { checkpointWrites } from "../../packages/daemon/src/ledger/checkpoints/port.ts";
import { executionWrites } from "../../packages/daemon/src/ledger/execution/port.ts";
import { keepRetention } from "../../packages/daemon/src/runtime/retention.ts";
import { noticeWrites } from "../../packages/daemon/src/services/audit/rows.ts";
import { jobWrites } from "../../packages/daemon/src/services/jobs/rows.ts";
import { idempotencyWrites } from "../../packages/daemon/src/services/kit/rows.ts";
import { workflowWrites } from "../../packages/daemon/src/services/workflows/rows.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { kindRetention } from "../../packages/protocol/src/protocol.ts";
import { manualClock } from "../clock.ts";
import { storeForTest } from "../store.ts";
import { until } from "../until.ts";

const RULES = { ageDaysMax: 2, totalBytesMax: 1000, sweepIntervalMs: 60_000, auditDays: 90 };

const DAY = 86_400_000;

/** An empty store whose Bus removes logs like this. */
const busThat = (retain: (rules: Retention) => Promise<number>) => ({
	...storeForTest({ connection: "none" }),
	bus: { retain, write: async () => {} } as Partial<Bus> as Bus,
});

/** A store on a day, and how its retention sweeps for the first time. */
function storeOn(day: number) {
	const clock = manualClock(day * DAY);
	const store = storeForTest({ connection: "none" });
	const sweep = (fields: { sweepFiles?(): Promise<number> } = {}) => {
		onTestFinished(keepRetention({ ...store, ...fields }, RULES, clock, silentLog));
		clock.advance(30_000);
	};
	return { ...store, clock, sweep };
}

/** Lets what was promised happen. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("keepRetention", () => {
	it("sweeps after the start and then at its interval, with the configured rules", async () => {
		const clock = manualClock();
		const swept: Retention[] = [];
		const store = busThat(async (rules) => swept.push(rules));
		keepRetention(store, RULES, clock, silentLog);
		expect(swept).toEqual([]);
		clock.advance(30_000);
		await turn();
		expect(swept).toEqual([{ ageMsMax: 2 * DAY, totalBytesMax: 1000, kinds: kindRetention() }]);
		clock.advance(59_999);
		expect(swept).toHaveLength(1);
		clock.advance(1);
		await turn();
		expect(swept).toHaveLength(2);
	});

	it("continues after a failure, and logs it", async () => {
		const clock = manualClock();
		const said: string[] = [];
		let tries = 0;
		const bus = busThat(async () => {
			tries++;
			throw new Error("the disk is full");
		});
		keepRetention(bus, RULES, clock, { ...silentLog, error: (_facts, message) => said.push(message) });
		clock.advance(30_000);
		await turn();
		clock.advance(60_000);
		await turn();
		expect([tries, said.length]).toEqual([2, 2]);
	});

	it("stops, also in the middle of a sweep", async () => {
		const clock = manualClock();
		const sweep = Promise.withResolvers<number>();
		let tries = 0;
		const bus = busThat(() => {
			tries++;
			return sweep.promise;
		});
		const stop = keepRetention(bus, RULES, clock, silentLog);
		clock.advance(30_000);
		stop();
		sweep.resolve(0);
		await turn();
		clock.advance(10 * 60_000);
		expect(tries).toBe(1);
	});

	it("forgets jobs with their logs, a week after their end, and has old files removed", async () => {
		const { bus, rows, sweep } = storeOn(10);
		const job = (id: string, finishedAt: number) =>
			jobWrites.submit({ id, appId: "app", state: "failed", createdAt: 1, finishedAt, job: {} }, {});
		await bus.write([job("job_old", 3 * DAY), job("job_young", 3 * DAY + 30_000)]);
		let swept = 0;
		const sweepFiles = async () => ++swept;
		sweep({ sweepFiles });
		await until("files are swept", () => swept === 1);
		expect((await rows.jobs.list({ limit: 9 })).map(({ id }) => id)).toEqual(["job_young"]);
	});

	it("forgets checkpoints and entries of the execution log by their age, in small commits", async () => {
		const { bus, stored, sweep } = storeOn(10);
		const entry = (at: number) => ({ session: "s", runId: "r", at, kind: "note", text: `${at}` });
		const before = 8 * DAY;
		const old = Array.from({ length: 5001 }, (_, n) => entry(n));
		await bus.write([executionWrites.add([...old, entry(before + 40_000)])]);
		const row = { session: "s", engine: "e", configHash: "", root: "r", data: "null", shown: "", lengths: {} };
		const put = (runId: string, at: number) => checkpointWrites.put({ ...row, runId, at });
		await bus.write([put("old", 1), put("new", before + 40_000)]);
		sweep();
		await until("the old entries are gone", () => !stored.execution.isOlder(before + 30_000));
		expect(stored.execution.list({ session: "s", limit: 10 }).map(({ at }) => at)).toEqual([before + 40_000]);
		expect([stored.checkpoints.get("old"), stored.checkpoints.get("new")?.runId]).toEqual([undefined, "new"]);
	});

	it("forgets workflows 30 days after their end, with their nodes, whatever the configuration says", async () => {
		const { bus, stored, sweep } = storeOn(100);
		const row = { appId: "a", userId: "", owner: true, name: "", definition: {}, state: "completed", createdAt: 1 };
		const node = { nodeId: "n", state: "completed", status: {} };
		const ended = (id: string, daysAgo: number) =>
			workflowWrites.create({ ...row, id, finishedAt: (100 - daysAgo) * DAY }, [node]);
		await bus.write([
			ended("wf_old", 31),
			ended("wf_new", 29),
			workflowWrites.create({ ...row, id: "wf_live" }, [node]),
		]);
		sweep();
		await until("the old one is gone", () => stored.workflows.get("wf_old") === undefined);
		expect(stored.workflows.nodes("wf_old")).toEqual([]);
		expect(stored.workflows.list({ limit: 9 }).map(({ id }) => id)).toEqual(["wf_new", "wf_live"]);
	});

	it("Z1: forgets each topic of notices by its own age: a flood of others evicts no audit", async () => {
		const { bus, stored, sweep } = storeOn(100);
		const post = (topic: string, daysAgo: number) => noticeWrites.post(topic, `${daysAgo}`, (100 - daysAgo) * DAY);
		const ages = [91, 89, 8, 6];
		const topics = ["audit", "memory", "agents", "app:a", "app:b"];
		await bus.write(topics.flatMap((topic) => ages.map((age) => post(topic, age))));
		await bus.write(Array.from({ length: 5001 }, () => post("agents", 6)));
		sweep();
		const kept = (topic: string) => stored.notices.range(topic).first;
		await until("the last topic was swept", () => kept("app:b") > 1);
		expect(topics.map(kept)).toEqual([2, 2, 4, 4, 4]);
	});

	it("forgets questions by the time of their decision, and none that waits", async () => {
		const { bus, stored, sweep } = storeOn(10);
		const open = (id: string) => {
			const row = { id, runId: "r", session: "s", callId: "c", tool: "bash", kind: "approval", args: {} } as const;
			const rest = { digest: "d", state: "pending", createdAt: 1, expiresAt: 20 * DAY } as const;
			return approvalWrites.open({ ...row, ...rest } satisfies Approval);
		};
		const asked = (id: string) => ({ id, runId: "r", session: "s", tool: "bash" });
		const decide = (id: string, at: number) => approvalWrites.decide(asked(id), { state: "denied", by: "Ann", at });
		await bus.write([open("A2A2"), open("B2B2"), open("C2C2"), decide("A2A2", 2), decide("B2B2", 9 * DAY)]);
		sweep();
		await until("the old one is gone", () => stored.approvals.get("r", "A2A2") === undefined);
		expect(stored.approvals.list().map(({ id }) => id)).toEqual(["C2C2", "B2B2"]);
	});

	it("Z15: forgets idempotency keys after their day", async () => {
		const { bus, clock, stored, sweep } = storeOn(10);
		const claim = (key: string, at: number) =>
			idempotencyWrites.claim({ appId: "a", key, digest: "d", result: "r", at });
		await bus.write([claim("old", 1), claim("new", 10 * DAY)]);
		sweep();
		await until("the old one is gone", () => !stored.idempotency.isOlder(2));
		expect(stored.idempotency.find("a", "new", clock.now())).toBeDefined();
	});
});
