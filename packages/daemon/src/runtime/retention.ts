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

/** Returns how to stop it. */
export function keepRetention(
	{ bus, ledger, rows, sweepFiles }: RetentionTargets,
	rules: RetentionRules,
	clock: Clock,
	log: Log,
): () => void {
	let stopped = false;
	let cancel = () => {};
	const forgetBefore = async (time: number) => {
		await bus.write([checkpointWrites.forget(time)]);
		while (!stopped && (await ledger.execution.isOlder(time)))
			await bus.write([executionWrites.forget(time, ENTRIES_PER_COMMIT)]);
		while (!stopped && (await ledger.approvals.isOlder(time)))
			await bus.write([approvalWrites.forget(time, ENTRIES_PER_COMMIT)]);
	};
	const forgetNotices = async () => {
		for (const { topic: name, isPrefix, keptMs } of keptNotices(rules.auditDays)) {
			const before = clock.now() - keptMs;
			for (const topic of isPrefix ? await rows.notices.topics(name) : [name])
				while (!stopped && (await rows.notices.isOlder(topic, before)))
					await bus.write([noticeWrites.forget(topic, before, ENTRIES_PER_COMMIT)]);
		}
	};
	/** As long as their logs. */
	const forgetWorkflows = async () => {
		const time = clock.now() - LOG_KINDS.workflow.keptMs;
		while (!stopped && (await rows.workflows.isOlder(time)))
			await bus.write([workflowWrites.forget(time, WORKFLOWS_PER_COMMIT)]);
	};
	const forgetKeys = async () => {
		const time = clock.now() - IDEMPOTENCY_KEPT_MS;
		while (!stopped && (await rows.idempotency.isOlder(time)))
			await bus.write([idempotencyWrites.forget(time, ENTRIES_PER_COMMIT)]);
	};
	/** They go with their logs. */
	const forgetJobs = async () => {
		const time = clock.now() - LOG_KINDS.job.keptMs;
		while (!stopped && (await rows.jobs.isOlder(time))) await bus.write([jobWrites.forget(time, ENTRIES_PER_COMMIT)]);
	};
	const sweep = async () => {
		try {
			const { ageDaysMax, totalBytesMax } = rules;
			const removed = await bus.retain({ ageMsMax: ageDaysMax * DAY_MS, totalBytesMax, kinds: kindRetention() });
			await forgetBefore(clock.now() - ageDaysMax * DAY_MS);
			await forgetNotices();
			await forgetKeys();
			await forgetJobs();
			await forgetWorkflows();
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
