/** `nexus runs`, `sessions`, `stop` and `url`: questions with one answer. */

import { isShown } from "@nexus-stream/protocol";
import type { RunJson, TraceJson } from "@nexus-stream/protocol/api";
import {
	type CommandContext,
	type Declarations,
	type JsonOption,
	type ListOptions,
	remote,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { list, since } from "../table.ts";
import { oneLine } from "../terminal.ts";

export const declare: Declarations = {
	runs: (command, local) =>
		remoteRows(command)
			.argument("[run]", "a run id")
			.option("-s, --session <session>", "only this session's")
			.option("--limit <count>", "at most this many", wholeNumber, 20)
			.action(
				withDaemon(local, (context, id: string | undefined, options: ListOptions<"session">) =>
					id === undefined ? runs(context, options) : run(context, id, options),
				),
			),
	sessions: (command, local) =>
		remoteRows(command)
			.option("--limit <count>", "at most this many", wholeNumber, 50)
			.action(withDaemon(local, sessions)),
	stop: (command, local) => remote(command).argument("<run>", "a run id").action(withDaemon(local, stop)),
	cancel: (command, local) =>
		remote(command)
			.argument("<event>", "an event id; `nexus inbox --state queued` lists them")
			.action(withDaemon(local, cancel)),
	url: (command, local) => remote(command).action(withDaemon(local, url)),
};

async function runs({ client, terminal }: CommandContext, { session, limit, json }: ListOptions<"session">) {
	const { runs } = await client.api.runs({ session, limit });
	return list(terminal, json, runs, {
		none: "no runs yet: try `nexus send hello`",
		columns: {
			RUN: (run) => run.run_id,
			STATUS: (run) => run.status,
			SESSION: (run) => run.session,
			STARTED: (run) => since(run.started_at),
			TOOK: took,
			MESSAGE: (run) => oneLine(messageOf(run), 500),
		},
		optional: ["TOOK", "STARTED", "SESSION"],
	});
}

/** The message that the run answers; a run that continues another has none. */
const messageOf = ({ messages, continues }: RunJson): string =>
	messages.find(({ role }) => role === "user")?.text ?? (continues === undefined ? "" : `(continues ${continues})`);

async function run({ client, terminal }: CommandContext, runId: string, { json }: JsonOption) {
	const found = await client.api.run(runId);
	if (json) return terminal.json(found);
	const line = (name: string, text: string) =>
		terminal.out(`${terminal.bold(name.padEnd(12))} ${oneLine(text, 500)}\n`);
	const facts: [string, string | undefined][] = [
		["run", found.run_id],
		["session", found.session],
		["engine", found.engine],
		["status", found.error ? `${found.status} (${found.error.code}: ${found.error.message})` : found.status],
		["continues", found.continues],
		["continued by", found.continued_by],
		["continue", found.can_continue ? `nexus continue ${found.run_id}` : undefined],
		["retry", found.can_retry ? `nexus retry ${found.run_id}` : undefined],
		["rolled back", found.rolled_back && "the session started over without it"],
		["started", new Date(found.started_at).toISOString()],
		["took", took(found)],
		["first token", found.first_token_ms === undefined ? undefined : `${found.first_token_ms} ms`],
		["tokens", found.usage && `${known(found.usage.input)} in, ${known(found.usage.output)} out`],
		["frames", found.frames_available ? `kept (nexus replay ${found.run_id})` : "removed by retention"],
	];
	for (const [name, value] of facts) if (value) line(name, value);
	for (const { name, status, summary } of found.tool_calls)
		line("tool", `${oneLine(name, 60)} ${status}${summary ? `: ${oneLine(summary, 80)}` : ""}`);
	if (found.trace) showTrace(found.trace, line);
	for (const message of found.messages) {
		const who = message.agent === undefined ? message.role : `${message.role} ${oneLine(message.agent, 60)}`;
		const hidden = isShown(message) ? "" : " (hidden)";
		terminal.out(`\n${terminal.bold(`${who}${hidden}:`)}\n${message.text}\n`);
	}
}

/** The way of the message through the pipeline. */
function showTrace(trace: TraceJson, line: (name: string, text: string) => void): void {
	line("from", `${trace.sender} on ${trace.channel}/${trace.account}`);
	line("stages", trace.stages.map(({ stage, ms }) => `${stage} ${Math.round(ms)} ms`).join(" ▸ "));
	for (const { plugin, hook, ms, outcome, detail } of trace.hooks)
		line("plugin", `${plugin} ${hook} ${outcome} ${Math.round(ms)} ms${detail === undefined ? "" : `: ${detail}`}`);
	for (const delivery of trace.deliveries) line("delivery", delivery);
}

async function sessions({ client, terminal }: CommandContext, { limit, json }: ListOptions) {
	const { sessions } = await client.api.sessions({ limit });
	return list(terminal, json, sessions, {
		none: "no sessions yet: try `nexus send hello`",
		columns: {
			SESSION: ({ session }) => session,
			TURNS: ({ turns }) => String(turns),
			USED: (session) => (session.live_run_id === undefined ? since(session.updated_at) : "now"),
			"LAST MESSAGE": ({ title }) => oneLine(title, 500),
		},
		optional: ["TURNS"],
	});
}

async function stop({ client, terminal }: CommandContext, runId: string) {
	const { status } = await client.api.abort(runId);
	terminal.out(`${runId} ${status}\n`);
}

async function cancel({ client, terminal }: CommandContext, eventId: string) {
	const { disposition } = await client.api.cancel(eventId);
	terminal.out(`${eventId} ${disposition}\n`);
}

async function url({ client, terminal }: CommandContext) {
	const { url } = await client.api.signInCode();
	terminal.out(`${url}\n`);
}

const known = (count: number) => (count < 0 ? "unknown" : String(count));

function took(run: RunJson): string {
	if (run.ended_at === undefined) return "";
	const ms = run.ended_at - run.started_at;
	return ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
}
