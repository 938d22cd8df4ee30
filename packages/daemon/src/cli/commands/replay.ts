/** `nexus replay`: a run again as it was, with its own pauses. */

import { setTimeout as sleep } from "node:timers/promises";
import { createRunVerifier } from "@nexus-stream/client";
import { decodeFrame, toNexusError } from "@nexus-stream/protocol";
import type { CommandContext, CommandExit } from "../command.ts";
import { createShow, type ShowOptions } from "../show.ts";

export interface ReplayOptions extends ShowOptions {
	/** 2 = twice as fast; Infinity = without pauses. */
	speed: number;
}

export async function replay({ client, terminal }: CommandContext, runId: string, options: ReplayOptions): CommandExit {
	const show = createShow(terminal, options);
	const verifier = createRunVerifier();
	let startedAt: number | undefined;
	let firstTs = 0;
	let after = 0;
	for (;;) {
		const page = after;
		try {
			for await (const text of client.api.frames(runId, { after })) {
				after++;
				const frame = decodeFrame(text);
				startedAt ??= performance.now();
				firstTs ||= frame.ts;
				// Against the first frame, not the one before: rounding must not add up over thousands of frames.
				const due = startedAt + (frame.ts - firstTs) / options.speed - performance.now();
				if (due > 1) await sleep(due);
				const code = show.record({ text, frame, ...verifier.push(frame) });
				if (code !== undefined) return code;
			}
		} catch (cause) {
			// A cut does not say why (P4.12): the next request begins where it was, and is answered with a status.
			if (toNexusError(cause).code !== "unavailable" || after === page) throw cause;
			continue;
		}
		if (after === page) break;
	}
	terminal.note(`${runId} is still running: \`nexus tail ${runId} --after ${after}\` goes on from here`);
	return 0;
}
