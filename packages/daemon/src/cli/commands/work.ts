/** `nexus continue`, `retry`, `phase`, `trust` and `log`: going on with a run that was cut off, and how a session's work comes about. */

import { NexusError } from "@nexus-stream/protocol";
import type { LogEntryJson, PhaseJson } from "@nexus-stream/protocol/api";
import { Argument, type Command } from "commander";
import {
	type CommandContext,
	type Declarations,
	type JsonOption,
	type ListOptions,
	type Local,
	remoteFrames,
	remoteJson,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import type { ShowOptions } from "../show.ts";
import { list, since } from "../table.ts";
import { Hinted, oneLine, tell } from "../terminal.ts";
import { stopOnInterrupt } from "./send.ts";
import { tailRun } from "./tail.ts";

export const declare: Declarations = {
	continue: (command, local) =>
		goesOn(command, local, "continue", "continued").addHelpText(
			"after",
			"\nTools that had completed are not run again.",
		),
	retry: (command, local) =>
		goesOn(command, local, "retry", "retried").addHelpText(
			"after",
			"\nIt begins again: a tool that had completed may run again. Where `nexus continue` is possible, it continues instead.",
		),
	phase: (command, local) =>
		remoteJson(command)
			.argument("<session>", "its label")
			.argument("[name]", "the phase that it enters")
			.option("--because <text>", "why: its agents read it")
			.action(withDaemon(local, phase)),
	trust: (command, local) =>
		remoteJson(command)
			.argument("<session>", "its label")
			.addArgument(
				new Argument("[trusted]", "whether everything in it may act with your rights").choices(["on", "off"]),
			)
			.action(withDaemon(local, trust)),
	log: (command, local) =>
		remoteRows(command)
			.argument("<session>", "its label")
			.option("--run <run>", "only this run's entries")
			.option("--limit <count>", "at most this many of the newest", wholeNumber, 100)
			.action(withDaemon(local, log)),
};

const goesOn = (command: Command, local: Local, how: "continue" | "retry", done: string): Command =>
	remoteFrames(command)
		.argument("[run]", "a run id (default: the newest of the session)")
		.option("-s, --session <session>", `the session whose newest run is ${done}`, "default")
		.option("--reasoning", "show the reasoning, too")
		.action(
			withDaemon(local, (context, run: string | undefined, options: ContinueOptions) =>
				proceed(context, how, run, options),
			),
		);

interface ContinueOptions extends ShowOptions {
	session: string;
}

/** Without a run: the newest one of the session. `how`: where it was cut off, or from the start. */
async function proceed(
	context: CommandContext,
	how: "continue" | "retry",
	run: string | undefined,
	options: ContinueOptions,
) {
	const { client, terminal } = context;
	const stop = stopOnInterrupt(context);
	const { run_id: next } = await client.api[how](run ?? (await newestRun(context, how, options.session)));
	stop.run(next);
	const code = await tailRun(context, next, options);
	if (terminal.interactive && !options.json) terminal.note(terminal.dim(next));
	return code;
}

async function newestRun({ client }: CommandContext, how: string, session: string): Promise<string> {
	const { turns } = await client.api.turns(session, { limit: 1 });
	const newest = turns.at(-1);
	if (newest) return newest.run_id;
	throw new Hinted(
		new NexusError("not_found", `session ${session} has no run to ${how}`),
		"`nexus runs` lists them; name one, or its session with --session",
	);
}

async function phase(
	{ client, terminal }: CommandContext,
	session: string,
	name: string | undefined,
	{ because, json }: JsonOption & { because?: string },
) {
	const found =
		name === undefined ? await client.api.phase(session) : await client.api.setPhase(session, { name, because });
	if (json) terminal.json(found);
	else if (found.phase) terminal.out(`${phaseLine(found.phase)}\n`);
	else {
		terminal.note(`session ${session} has no phase yet`);
		if (found.known) terminal.note(`the phases are ${found.known.join(", ")}`);
	}
}

function phaseLine({ name, since: at, from, because, turns, completions }: PhaseJson): string {
	const why = `${from === undefined ? "" : ` from ${from}`}${because === undefined ? "" : ` (${because})`}`;
	return oneLine(`${name}, since ${since(at)}${why}: ${many(turns, "turn")}, ${many(completions, "completion")}`, 1000);
}

const many = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

async function trust(
	{ client, terminal }: CommandContext,
	session: string,
	trusted: "on" | "off" | undefined,
	{ json }: JsonOption,
) {
	const found =
		trusted === undefined
			? await client.api.settings(session)
			: await client.api.setSettings(session, { trust_history: trusted === "on" });
	tell(terminal, json, found, `${session}: the history is ${found.trust_history ? "" : "not "}trusted`);
}

async function log({ client, terminal }: CommandContext, session: string, options: ListOptions<"run">) {
	const { run, limit, json } = options;
	const { entries } = await client.api.log(session, { run, limit });
	return list(terminal, json, entries, {
		none: `the execution log of session ${session} is empty`,
		columns: {
			AT: ({ at }) => new Date(at).toISOString(),
			RUN: ({ run_id = "" }) => run_id,
			KIND: ({ kind }) => kind,
			AGENT: ({ agent = "" }) => agent,
			WHAT: (entry) => oneLine(wordsOf(entry), 1000),
		},
		optional: ["RUN", "AGENT"],
	});
}

/** A tool's entry says how it ended, and how long it took. */
function wordsOf({ kind, text, data = {} }: LogEntryJson): string {
	if (kind !== "tool") return text;
	const took = typeof data.ms === "number" ? ` after ${data.ms} ms` : "";
	return `${String(data.tool)} ${String(data.status)}${took}: ${text}`;
}
