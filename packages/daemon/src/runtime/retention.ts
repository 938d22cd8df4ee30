/** Removes old finished logs, checkpoints, decided questions, idempotency keys, workflows, entries of the execution log and notices now and then, in the background. */

import { kindRetention, LOG_KINDS } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Bus } from "../bus/bus.ts";
import { approvalWrites } from "../ledger/approvals/port.ts";
import { checkpointWrites } from "../ledger/checkpoints/port.ts";
import { executionWrites } from "../ledger/execution/port.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { noticeWrites } from "../services/audit/rows.ts";
import { keptNotices } from "../services/audit/topics.ts";
import { jobWrites } from "../services/jobs/rows.ts";
import { IDEMPOTENCY_KEPT_MS, idempotencyWrites } from "../services/kit/rows.ts";
import { workflowWrites } from "../services/workflows/rows.ts";
import type { Reading, Write } from "../std/write.ts";
import type { RetentionConfig } from "./config/config.ts";
import type { ServiceRows } from "./data/tables.ts";

const DAY_MS = 24 * 60 * 60_000;
/** The first sweep waits until the rush of a start is over. */
const FIRST_SWEEP_MS = 30_000;

/** In one commit. */
const ENTRIES_PER_COMMIT = 5000;
/** Each with its nodes. */
const WORKFLOWS_PER_COMMIT = 50;

interface RetentionTargets {
	bus: Bus;
	ledger: Pick<Ledger, "execution" | "approvals">;
	rows: Pick<ServiceRows, "notices" | "idempotency" | "jobs" | "workflows">;
	/** Removes files that are too old; returns how many. */
	sweepFiles?(): Promise<number>;
}

export interface RetentionRules extends RetentionConfig {
	/** Limits of the audit log. */
	auditDays: number;
}

interface Forgettable {
	isOlder(time: number): Reading<boolean>;
}

interface ForgetWrites {
	forget(time: number, most: number): Write;
}

/** Returns how to stop it. */
export function keepRetention(
	{ bus, ledger, rows, sweepFiles }: RetentionTargets,
	rules: RetentionRules,
	clock: Clock,
	log: Log,
): () => void {
	let stopped = false;
	let cancel = () => {};
	/** One commit after the other, until nothing older is left. */
	const forget = async (stored: Forgettable, writes: ForgetWrites, keptMs: number, perCommit = ENTRIES_PER_COMMIT) => {
		const time = clock.now() - keptMs;
		while (!stopped && (await stored.isOlder(time))) await bus.write([writes.forget(time, perCommit)]);
	};
	const forgetNotices = async () => {
		const { notices } = rows;
		for (const { topic: name, isPrefix, keptMs } of keptNotices(rules.auditDays))
			for (const topic of isPrefix ? await notices.topics(name) : [name]) {
				const isOlder = (time: number) => notices.isOlder(topic, time);
				await forget({ isOlder }, { forget: (time, most) => noticeWrites.forget(topic, time, most) }, keptMs);
			}
	};
	const sweep = async () => {
		try {
			const { totalBytesMax } = rules;
			const ageMsMax = rules.ageDaysMax * DAY_MS;
			const removed = await bus.retain({ ageMsMax, totalBytesMax, kinds: kindRetention() });
			await bus.write([checkpointWrites.forget(clock.now() - ageMsMax)]);
			await forget(ledger.execution, executionWrites, ageMsMax);
			await forget(ledger.approvals, approvalWrites, ageMsMax);
			await forgetNotices();
			await forget(rows.idempotency, idempotencyWrites, IDEMPOTENCY_KEPT_MS);
			// As long as their logs.
			await forget(rows.jobs, jobWrites, LOG_KINDS.job.keptMs);
			await forget(rows.workflows, workflowWrites, LOG_KINDS.workflow.keptMs, WORKFLOWS_PER_COMMIT);
			const files = (await sweepFiles?.()) ?? 0;
			if (files > 0) log.info({ files }, "retention removed artifacts");
			if (removed > 0) log.info({ removed }, "retention removed finished logs");
		} catch (cause) {
			log.error({ cause }, "the retention sweep failed; it will be tried again");
		}
		if (!stopped) cancel = clock.after(rules.sweepIntervalMs, () => void sweep());
	};
	cancel = clock.after(Math.min(FIRST_SWEEP_MS, rules.sweepIntervalMs), () => void sweep());
	return () => {
		stopped = true;
		cancel();
	};
}
