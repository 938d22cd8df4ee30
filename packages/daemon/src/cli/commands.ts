/** What `nexus` understands: every command with its arguments and options. A command's code is loaded when it is called. */

import { Argument, type Command, InvalidArgumentError } from "commander";
import type { WhereOptions } from "./client.ts";
import type { CommandContext, CommandExit, Local } from "./command.ts";
import { type Adding, addApprovals } from "./commands-approvals.ts";
import { addApps } from "./commands-apps.ts";
import { addAudit } from "./commands-audit.ts";
import { addConnectors } from "./commands-connectors.ts";
import { addJobs } from "./commands-jobs.ts";
import { addWorkflows } from "./commands-workflows.ts";

/** `called` is the first word of the command line: a daemon's start need not describe all the other commands. */
export function addCommands(nexus: Command, local: Local, called: string | undefined): void {
	const all = [addUp, addAnswers, addLists, addWork, addMemory, addChats, addMcp, addAccounts, addChecks];
	for (const add of called === "up" ? [addUp] : all) add(nexus, local);
	const adding: Adding = { remote, asJson, whole, run: (options, command) => withDaemon(local, options, command) };
	const others = [addApprovals, addApps, addAudit, addConnectors, addJobs, addWorkflows];
	for (const add of called === "up" ? [] : others) add(nexus, adding);
	pointToHelp(nexus, "nexus");
}

/** After a mistake, the way to the help of the very command. */
function pointToHelp(command: Command, called: string): void {
	command.showHelpAfterError(`See \`${called} --help\`.`);
	for (const each of command.commands) pointToHelp(each, `${called} ${each.name()}`);
}

/** Runs a command that talks to the daemon. */
async function withDaemon(
	local: Local,
	where: WhereOptions,
	command: (context: CommandContext) => CommandExit,
): Promise<void> {
	const { clientFor } = await import("./client.ts");
	local.host.exitCode = await command({ ...local, where, client: clientFor(local.host, where) });
}

const whole = (text: string): number => {
	if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError("Not a whole number.");
	return Number(text);
};

const speed = (text: string): number => {
	if (text === "max") return Number.POSITIVE_INFINITY;
	const value = Number(text);
	if (!(value > 0)) throw new InvalidArgumentError("Use a number above 0, or max.");
	return value;
};

const each = (value: string, earlier: string[] = []): string[] => [...earlier, value];

/** Where the daemon is. */
const remote = (command: Command): Command =>
	command
		.option("--url <url>", "the daemon's address (NEXUS_URL; default: the daemon of the data directory)")
		.option("--token <token>", "its access token (NEXUS_TOKEN; default: the one in the data directory)")
		.option("--data <dir>", "its data directory (NEXUS_DATA; default ./.nexus)")
		.option("--config <file>", "its configuration (NEXUS_CONFIG)");

const asJson = (command: Command, what: string): Command => command.option("--json", what);

function addUp(nexus: Command, local: Local): void {
	nexus
		.command("up")
		.description("start the daemon and its page")
		.option("--host <host>", "address to listen on (NEXUS_HOST; default 127.0.0.1)")
		.option("--port <port>", "port, 0 = any free one (NEXUS_PORT; default 7777)")
		.option(
			"--grpc-port <port>",
			"gRPC port, 0 = any free one, or off (NEXUS_GRPC_PORT; default: the one after --port)",
		)
		.option("--data <dir>", "where everything is kept (NEXUS_DATA; default ./.nexus)")
		.option(
			"--token <token>",
			"the access token for clients (NEXUS_TOKEN; default: generated and kept in the data directory)",
		)
		.option("--config <file>", "configuration file (NEXUS_CONFIG; default ./nexus.yaml, if there is one)")
		.addHelpText(
			"after",
			"\nExamples:\n  nexus up --port 0 --data /tmp/try\n  NEXUS_TOKEN=$(openssl rand -hex 32) nexus up --host 0.0.0.0",
		)
		.action(async (options) => {
			const { up } = await import("./commands/up.ts");
			local.host.exit(await up(local, options));
		});
}

function addAnswers(nexus: Command, local: Local): void {
	asJson(remote(nexus.command("send")), "print the frames as NDJSON")
		.description("send a message and stream the answer; Ctrl-C stops the run")
		.argument("<text>", "the message; - reads it from stdin")
		.option("-s, --session <session>", "the session it belongs to", "default")
		.option("-a, --attach <file>", "send a file along (repeatable)", each)
		.option("--reasoning", "show the reasoning, too")
		.addHelpText(
			"after",
			'\nExamples:\n  nexus send "hello" --session work\n  nexus send "/demo tokens=200 rate=50 tools=2" --reasoning\n  git diff | nexus send - > review.md\n  nexus send hello --json | jq -c \'select(.type == "stream.begin") | [.modality, .message_id]\'\n\nOnly the answer\'s text goes to stdout. --json prints every stream of the run; what a stream\nholds (text, reasoning, tool, card …) stands in the stream.begin of its message_id.',
		)
		.action((text, options) =>
			withDaemon(local, options, async (context) => (await import("./commands/send.ts")).send(context, text, options)),
		);

	asJson(remote(nexus.command("tail")), "print the frames as NDJSON")
		.description("follow a run to its end, or a session from now on")
		.argument("<run|session>", "a run id, or a session's label")
		.option("--after <offset>", "begin after this offset", whole)
		.option("--reasoning", "show the reasoning, too")
		.addHelpText("after", "\nExamples:\n  nexus tail work\n  nexus tail run_01JD… --json --after 100")
		.action((target, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/tail.ts")).tail(context, target, options),
			),
		);

	asJson(remote(nexus.command("replay")), "print the frames as NDJSON")
		.description("show a run again with its original timing")
		.argument("<run>", "a run id")
		.option("--speed <factor>", "2 = twice as fast; max = without pauses", speed, 1)
		.option("--reasoning", "show the reasoning, too")
		.addHelpText("after", "\nExample:\n  nexus replay run_01JD… --speed 4")
		.action((run, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/replay.ts")).replay(context, run, options),
			),
		);
}

function addLists(nexus: Command, local: Local): void {
	asJson(remote(nexus.command("runs")), "one JSON object a line")
		.description("list runs, newest first, or show one")
		.argument("[run]", "a run id")
		.option("-s, --session <session>", "only this session's")
		.option("--limit <count>", "at most this many", whole, 20)
		.action((id, options) =>
			withDaemon(local, options, async (context) => {
				const list = await import("./commands/list.ts");
				return id === undefined ? list.runs(context, options) : list.run(context, id, options);
			}),
		);

	asJson(remote(nexus.command("sessions")), "one JSON object a line")
		.description("list sessions, most recently used first")
		.option("--limit <count>", "at most this many", whole, 50)
		.action((options) =>
			withDaemon(local, options, async (context) => (await import("./commands/list.ts")).sessions(context, options)),
		);

	remote(nexus.command("stop"))
		.description("stop a run; what it said so far is kept")
		.argument("<run>", "a run id")
		.action((run, options) =>
			withDaemon(local, options, async (context) => (await import("./commands/list.ts")).stop(context, run)),
		);

	remote(nexus.command("cancel"))
		.description("take back a message that waits for its turn")
		.argument("<event>", "an event id; `nexus inbox --state queued` lists them")
		.action((event, options) =>
			withDaemon(local, options, async (context) => (await import("./commands/list.ts")).cancel(context, event)),
		);

	remote(nexus.command("url"))
		.description("print a one-time address that signs you in to the page")
		.action((options) =>
			withDaemon(local, options, async (context) => (await import("./commands/list.ts")).url(context)),
		);
}

function addMemory(nexus: Command, local: Local): void {
	const memory = nexus
		.command("memory")
		.description("what agents have noted: list, search or forget it; alone it lists")
		.addHelpText(
			"after",
			"\nExamples:\n  nexus memory\n  nexus memory search tea --bank person:telegram/main/42\n  nexus memory rm mem_01JD…",
		);
	const bank = (command: Command): Command =>
		asJson(remote(command), "one JSON object a line")
			.option("--bank <bank>", "only this bank: agent:<name> or person:<channel>/<account>/<sender>")
			.option("--limit <count>", "at most this many", whole, 20);

	bank(memory.command("list", { isDefault: true }))
		.description("list notes, newest first")
		.action((options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/memory.ts")).listMemory(context, options),
			),
		);

	bank(memory.command("search"))
		.description("find notes, best first")
		.argument("<words...>", "plain words; a note has to hold one of them")
		.action((words, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/memory.ts")).searchMemory(context, words, options),
			),
		);

	remote(memory.command("rm"))
		.description("forget notes for good; turns keep what was said in them")
		.argument("<id...>", "as `nexus memory` lists them")
		.action((ids, options) =>
			withDaemon(local, options, async (context) => (await import("./commands/memory.ts")).removeMemory(context, ids)),
		);

	asJson(remote(memory.command("log")), "one JSON object a line")
		.description("list what was noted and forgotten, newest first, without the texts")
		.option("--limit <count>", "at most this many", whole, 20)
		.action((options) =>
			withDaemon(local, options, async (context) => (await import("./commands/memory.ts")).memoryLog(context, options)),
		);
}

function addWork(nexus: Command, local: Local): void {
	asJson(remote(nexus.command("continue")), "print the frames as NDJSON")
		.description("go on with a run that was stopped, failed or crashed; Ctrl-C stops it")
		.argument("[run]", "a run id (default: the newest of the session)")
		.option("-s, --session <session>", "the session whose newest run is continued", "default")
		.option("--reasoning", "show the reasoning, too")
		.addHelpText("after", "\nTools that had completed are not run again.")
		.action((run, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/work.ts")).proceed(context, "continue", run, options),
			),
		);

	asJson(remote(nexus.command("retry")), "print the frames as NDJSON")
		.description("answer the message of a run that was stopped, failed or crashed again, as a new run; Ctrl-C stops it")
		.argument("[run]", "a run id (default: the newest of the session)")
		.option("-s, --session <session>", "the session whose newest run is retried", "default")
		.option("--reasoning", "show the reasoning, too")
		.addHelpText(
			"after",
			"\nIt begins again: a tool that had completed may run again. Where `nexus continue` is possible it goes on instead.",
		)
		.action((run, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/work.ts")).proceed(context, "retry", run, options),
			),
		);

	asJson(remote(nexus.command("phase")), "print it as JSON")
		.description("show what a session works on, or set it")
		.argument("<session>", "its label")
		.argument("[name]", "the phase that it enters")
		.option("--because <text>", "why: its agents read it")
		.action((session, name, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/work.ts")).phase(context, session, name, options),
			),
		);

	asJson(remote(nexus.command("trust")), "print it as JSON")
		.description("show whether a session's history is trusted, or set it")
		.argument("<session>", "its label")
		.addArgument(new Argument("[trusted]", "whether everything in it may act with your rights").choices(["on", "off"]))
		.action((session, trusted, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/work.ts")).trust(context, session, trusted, options),
			),
		);

	asJson(remote(nexus.command("log")), "one JSON object a line")
		.description("show how a session's answers came about: tools, routing, phases, attempts")
		.argument("<session>", "its label")
		.option("--run <run>", "only this run's entries")
		.option("--limit <count>", "at most this many of the newest", whole, 100)
		.action((session, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/work.ts")).log(context, session, options),
			),
		);
}

function addChats(nexus: Command, local: Local): void {
	asJson(remote(nexus.command("inbox")), "one JSON object a line")
		.description("list incoming messages and their outcome, newest first")
		.option("--channel <channel>", "only this channel's")
		.option("-s, --session <session>", "only this session's")
		.option(
			"--state <state>",
			"started, queued, batched, injected, superseded, rejected, dropped, cancelled, handled or answered",
		)
		.option("--limit <count>", "at most this many", whole, 20)
		.action((options) =>
			withDaemon(local, options, async (context) => (await import("./commands/channels.ts")).inbox(context, options)),
		);

	asJson(remote(nexus.command("pair")), "one JSON object a line")
		.description("list pairing requests, or approve one")
		.argument("[code]", "the code that the sender received")
		.option("--remove <channel/account/sender>", "withdraw a sender's access")
		.addHelpText("after", "\nExamples:\n  nexus pair\n  nexus pair AB2CD3\n  nexus pair --remove telegram/main/42")
		.action((code, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/channels.ts")).pair(context, code, options),
			),
		);

	asJson(remote(nexus.command("deliver")), "print the delivery as JSON")
		.description("send a text, or a run's answer, to a chat")
		.argument("[text]", "the text; - reads it from stdin")
		.requiredOption("--channel <channel>", "telegram, slack …")
		.option("--account <account>", "which account of the channel", "main")
		.requiredOption("--to <address>", "the chat's id on the platform (see the platform's README)")
		.option("--thread <id>", "the thread or topic in it")
		.option(
			"--run <run>",
			"deliver this run's answer, live or finished; continues a delivery that failed or went stale",
		)
		.option("--tools", "show tool status while the answer is written (default: as the channel's config says)")
		.option("--no-tools", "do not show it")
		.option("--reasoning", "show the reasoning, quoted (default: as the channel's config says)")
		.option("--no-reasoning", "do not show it")
		.option("--no-wait", "do not wait until it is delivered")
		.addHelpText(
			"after",
			'\nExamples:\n  nexus deliver "Backup done" --channel telegram --to 1001\n  nexus deliver --run run_01JD… --channel slack --to C012345',
		)
		.action((text, options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/deliver.ts")).deliver(context, text, options),
			),
		);

	asJson(remote(nexus.command("deliveries")), "one JSON object a line")
		.description("list deliveries, newest first")
		.option("--run <run>", "only this run's")
		.option("--channel <channel>", "only this channel's")
		.option("--state <state>", "active, complete, failed, unknown, stale or damaged")
		.option("--limit <count>", "at most this many", whole, 20)
		.action((options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/channels.ts")).deliveries(context, options),
			),
		);

	asJson(remote(nexus.command("adapters")), "one JSON object a line")
		.description("list accounts on chat platforms and their state")
		.action((options) =>
			withDaemon(local, options, async (context) =>
				(await import("./commands/channels.ts")).adapters(context, options),
			),
		);
}

function addMcp(nexus: Command, local: Local): void {
	asJson(remote(nexus.command("mcp")), "one JSON object a line")
		.description("list MCP servers, their tools and their state")
		.option("--start", "start those that are not running first; the exit code says whether all of them run")
		.action((options) =>
			withDaemon(local, options, async (context) => (await import("./commands/mcp.ts")).mcp(context, options)),
		);
}

function addAccounts(nexus: Command, local: Local): void {
	const adapter = nexus.command("adapter").description("add or remove an account on a chat platform");

	adapter
		.command("add")
		.description("ask for an account's settings, test the connection, and store them readable only by you")
		.argument(
			"<channel>",
			"telegram, discord, slack, whatsapp, sms, gmail, imessage, signal, nostr, or one of nexus.yaml",
		)
		.option("--account <account>", "the account's name in Nexus, of your choice", "main")
		.option("--set <name=value>", "a setting, without being asked (repeatable)", each)
		.option("--secret-file <name=file>", "a setting from a file (repeatable)", each)
		.option("--secret-env <name=variable>", "a setting from an environment variable (repeatable)", each)
		.option("--no-test", "do not test the connection")
		.option("--data <dir>", "the daemon's data directory (NEXUS_DATA)")
		.option("--config <file>", "its configuration (NEXUS_CONFIG)")
		.addHelpText(
			"after",
			"\nExamples:\n  nexus adapter add telegram\n  nexus adapter add telegram --secret-env token=BOT_TOKEN < /dev/null",
		)
		.action(async (channel, options) => {
			const { add } = await import("./commands/adapter.ts");
			local.host.exitCode = await add(local, channel, options);
		});

	adapter
		.command("remove")
		.description("forget an account's settings and secrets")
		.argument("<channel>", "its channel")
		.option("--account <account>", "its name", "main")
		.option("--data <dir>", "the daemon's data directory (NEXUS_DATA)")
		.option("--config <file>", "its configuration (NEXUS_CONFIG)")
		.action(async (channel, options) => {
			const { remove } = await import("./commands/adapter.ts");
			local.host.exitCode = await remove(local, channel, options);
		});
}

function addChecks(nexus: Command, local: Local): void {
	asJson(nexus.command("conformance"), "print the report as JSON")
		.description("check an adapter in any language against the protocol")
		.argument(
			"<command...>",
			"the adapter's command line without its verb, after --; or the name of one that comes with Nexus",
		)
		.option("--account <id>", "the account of NEXUS_ACCOUNT_FILE, for adapters that need one")
		.option("--to <address>", "where test messages go")
		.option("--only <text>", "only cases whose name contains this")
		.addHelpText(
			"after",
			"\nExamples:\n  nexus conformance -- python3 my_adapter.py\n  NEXUS_ACCOUNT_FILE=account.json nexus conformance telegram --account main --to 42",
		)
		.action(async (command, options) => {
			const { conformance } = await import("./commands/conformance.ts");
			local.host.exitCode = await conformance(local, command, options);
		});

	asJson(nexus.command("doctor"), "one JSON object a line")
		.description("check the machine, configuration, data, engine and accounts, and say what to do")
		.option("--host <host>", "as for `nexus up`")
		.option("--port <port>", "as for `nexus up`")
		.option("--grpc-port <port>", "as for `nexus up`")
		.option("--data <dir>", "as for `nexus up`")
		.option("--token <token>", "as for `nexus up`")
		.option("--config <file>", "as for `nexus up`")
		.option("--deep", "read all of the database and look for damage, however large it is")
		.action(async (options) => {
			const { doctor } = await import("./commands/doctor.ts");
			local.host.exitCode = await doctor(local, options);
		});
}
