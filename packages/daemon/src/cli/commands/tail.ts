/** `nexus tail` and `replay`: a run as it is written, or again as it was. */

import { setTimeout as sleep } from "node:timers/promises";
import { createRunVerifier } from "@nexus-stream/client";
import { decodeFrame, isSessionLabel, NexusError, toNexusError } from "@nexus-stream/protocol";
import type { SessionTurnsJson } from "@nexus-stream/protocol/api";
import { InvalidArgumentError } from "commander";
import { type CommandContext, type Declarations, remoteFrames, wholeNumber, withDaemon } from "../command.ts";
import { createPrompter } from "../prompt.ts";
import { createShow, type ShowOptions } from "../show.ts";
import { Hinted, noteDrops } from "../terminal.ts";

export const declare: Declarations = {
	tail: (command, local) =>
		remoteFrames(command)
			.argument("<run|session>", "a run id, or a session's label")
			.option("--after <offset>", "begin after this offset", wholeNumber)
			.option("--reasoning", "show the reasoning, too")
			.addHelpText("after", "\nExamples:\n  nexus tail work\n  nexus tail run_01JD… --json --after 100")
			.action(withDaemon(local, tail)),
	replay: (command, local) =>
		remoteFrames(command)
			.argument("<run>", "a run id")
			.option("--speed <factor>", "2 = twice as fast; max = without pauses", speed, 1)
			.option("--reasoning", "show the reasoning, too")
			.addHelpText("after", "\nExample:\n  nexus replay run_01JD… --speed 4")
			.action(withDaemon(local, replay)),
};

const speed = (text: string): number => {
	if (text === "max") return Number.POSITIVE_INFINITY;
	const value = Number(text);
	if (!(value > 0)) throw new InvalidArgumentError("Use a number above 0, or max.");
	return value;
};

interface TailOptions extends ShowOptions {
	after?: number;
}

async function tail(context: CommandContext, target: string, options: TailOptions) {
	return target.startsWith("run_") ? tailRun(context, target, options) : tailSession(context, target, options);
}

/** Shows a run to its end. */
export async function tailRun(context: CommandContext, run: string, options: TailOptions) {
	const { client, terminal } = context;
	const show = createShow(terminal, options);
	const prompter = createPrompter(context);
	const onState = noteDrops(terminal);
	try {
		for await (const record of client.follow({ run }, { after: options.after ?? 0, onState })) {
			const code = show.record(record);
			prompter.frame(record.frame);
			if (code === undefined) continue;
			if (code !== 0 && record.violation === undefined) await noteOffers(context, run);
			return code;
		}
	} catch (cause) {
		if (toNexusError(cause).code !== "data_loss") throw cause;
		throw new Hinted(toNexusError(cause), `see what is known of it with \`nexus runs ${run}\``);
	} finally {
		prompter.close();
	}
	// Nothing was left to read after that offset.
}

/** Names the command for a run that was cut off: continue it, or answer its message again. */
async function noteOffers({ client, terminal }: CommandContext, run: string): Promise<void> {
	const found = await client.api.run(run).catch(() => undefined);
	if (found?.can_continue) terminal.note(`  hint: \`nexus continue ${run}\` continues it`);
	else if (found?.can_retry) terminal.note(`  hint: \`nexus retry ${run}\` answers the message again`);
}

/** The API answers for any name; one that nothing was ever sent to is a typing mistake. */
const isNew = ({ turns, live, queued, stream_offset }: SessionTurnsJson): boolean =>
	turns.length === 0 && queued.length === 0 && live === null && stream_offset === 0;

async function tailSession(context: CommandContext, session: string, options: TailOptions): Promise<undefined> {
	const { client, terminal } = context;
	if (!isSessionLabel(session))
		throw new NexusError("invalid", `${JSON.stringify(session)} is neither a run id nor a session label`);
	const known = await client.api.turns(session, { limit: 1 });
	if (isNew(known))
		throw new Hinted(
			new NexusError("not_found", `there is no session ${session}`),
			"`nexus sessions` lists them; a session begins with its first message",
		);
	// From the beginning of what runs now, or from the next message on.
	const after = options.after ?? known.stream_offset;
	const partial = options.after !== undefined;
	const show = createShow(terminal, options);
	const onState = noteDrops(terminal);
	const prompter = createPrompter(context);
	for await (const record of client.follow({ session }, { after, partial, onState })) {
		show.record(record);
		prompter.frame(record.frame);
	}
}

interface ReplayOptions extends ShowOptions {
	/** 2 = twice as fast; Infinity = without pauses. */
	speed: number;
}

async function replay({ client, terminal }: CommandContext, runId: string, options: ReplayOptions) {
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
	terminal.note(`${runId} is still running: \`nexus tail ${runId} --after ${after}\` continues from here`);
}
