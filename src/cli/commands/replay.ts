/** `nexus replay`: a run again as it was, with its own pauses. */

import { setTimeout as sleep } from "node:timers/promises";
import { decodeFrame } from "../../protocol/protocol.ts";
import type { Context, Outcome } from "../command.ts";
import { concludeRun, createShow, type ShowOptions } from "../show.ts";

export interface ReplayOptions extends ShowOptions {
	/** 2 = twice as fast; Infinity = without pauses. */
	speed: number;
}

export async function replay({ client, terminal }: Context, runId: string, options: ReplayOptions): Outcome {
	const show = createShow(terminal, options);
	let startedAt: number | undefined;
	let firstTs = 0;
	let after = 0;
	for (;;) {
		const page = after;
		for await (const record of client.lines(`/v1/runs/${encodeURIComponent(runId)}/frames?after=${after}`)) {
			after++;
			const { ts } = decodeFrame(record);
			startedAt ??= performance.now();
			firstTs ||= ts;
			// Against the first frame, not the one before: rounding must not add up over thousands of frames.
			const due = startedAt + (ts - firstTs) / options.speed - performance.now();
			if (due > 1) await sleep(due);
			const end = show.record(record);
			if (end) return concludeRun(end, show.violation, terminal);
		}
		if (after === page) break;
	}
	terminal.note(`${runId} is still running: \`nexus tail ${runId} --after ${after}\` goes on from here`);
	return 0;
}
