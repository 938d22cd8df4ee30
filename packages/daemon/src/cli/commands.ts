/** All commands of `nexus`, by the files that hold them. A file is loaded when one of its commands is called, or its help is shown. */

import { type Command, Help } from "commander";
import type { Declarations, Local } from "./command.ts";

interface CommandFile {
	load(): Promise<{ readonly declare: Declarations }>;
	/** Descriptions by the command's name with its arguments, as the list of all commands shows them. */
	readonly commands: Readonly<Record<string, string>>;
}

export const COMMAND_FILES: readonly CommandFile[] = [
	{ load: () => import("./commands/up.ts"), commands: { "up [options]": "start the daemon and its page" } },
	{
		load: () => import("./commands/send.ts"),
		commands: { "send [options] <text>": "send a message and stream the answer; Ctrl-C stops the run" },
	},
	{
		load: () => import("./commands/tail.ts"),
		commands: {
			"tail [options] <run|session>": "follow a run to its end, or a session from now on",
			"replay [options] <run>": "show a run again with its original timing",
		},
	},
	{
		load: () => import("./commands/list.ts"),
		commands: {
			"runs [options] [run]": "list runs, newest first, or show one",
			"sessions [options]": "list sessions, most recently used first",
			"stop [options] <run>": "stop a run; what it said so far is kept",
			"cancel [options] <event>": "take back a message that waits for its turn",
			"url [options]": "print a one-time address that signs you in to the page",
		},
	},
	{
		load: () => import("./commands/work.ts"),
		commands: {
			"continue [options] [run]": "continue a run that was stopped, failed or crashed; Ctrl-C stops it",
			"retry [options] [run]":
				"answer the message of a run that was stopped, failed or crashed again, as a new run; Ctrl-C stops it",
			"phase [options] <session> [name]": "show what a session works on, or set it",
			"trust [options] <session> [trusted]": "show whether a session's history is trusted, or set it",
			"log [options] <session>": "show how a session's answers came about: tools, routing, phases, attempts",
		},
	},
	{
		load: () => import("./commands/memory.ts"),
		commands: { memory: "what agents have noted: list, search or forget it; alone it lists" },
	},
	{
		load: () => import("./commands/chats.ts"),
		commands: {
			"inbox [options]": "list incoming messages and their outcome, newest first",
			"pair [options] [code]": "list pairing requests, or approve one",
			"deliver [options] [text]": "send a text, or a run's answer, to a chat",
			"deliveries [options]": "list deliveries, newest first",
			"adapters [options]": "list accounts on chat platforms and their state",
		},
	},
	{
		load: () => import("./commands/mcp.ts"),
		commands: { "mcp [options]": "list MCP servers, their tools and their state" },
	},
	{
		load: () => import("./commands/adapter.ts"),
		commands: {
			adapter: "add or remove an account on a chat platform",
			"conformance [options] <command...>": "check an adapter in any language against the protocol",
		},
	},
	{
		load: () => import("./commands/doctor.ts"),
		commands: {
			"doctor [options]": "check the machine, configuration, data, engine and accounts, and say what to do",
		},
	},
	{
		load: () => import("./commands/approvals.ts"),
		commands: {
			"approvals [options]": "list what runs wait for a person to decide or answer",
			"approve [options] <id>": "let a tool call act that waits for approval",
			"deny [options] <id> [reason...]": "refuse a tool call that waits for approval, and tell the model",
			"answer [options] <id> <text...>": "answer what a run asks",
		},
	},
	{
		load: () => import("./commands/apps.ts"),
		commands: { app: "applications with their own tokens: add, list, clear or remove them; alone it lists" },
	},
	{
		load: () => import("./commands/audit.ts"),
		commands: { audit: "what happened: list it, or export it; alone it lists" },
	},
	{
		load: () => import("./commands/connector.ts"),
		commands: {
			connector:
				"model providers that jobs, workflows and applications may use: add, list, test or remove them; alone it lists",
		},
	},
	{
		load: () => import("./commands/jobs.ts"),
		commands: {
			jobs: "model calls that applications have submitted: list, show, watch or cancel them; alone it lists",
		},
	},
	{
		load: () => import("./commands/workflow.ts"),
		commands: {
			workflow:
				"graphs of model calls, scripts and agent runs that survive the daemon: run, list, show, watch or cancel them; alone it lists",
		},
	},
];

/** Adds all commands; the called one alone gets its arguments, options and code. */
export async function addCommands(nexus: Command, local: Local, args: readonly string[]): Promise<void> {
	// Also the one whose help is wanted: `nexus help send`, `nexus --help send`.
	const called = args.find((arg) => arg !== "help" && !arg.startsWith("-"));
	for (const { load, commands } of COMMAND_FILES)
		for (const [usage, description] of Object.entries(commands)) {
			const [name = ""] = usage.split(" ");
			const command = nexus.command(name).description(description);
			if (name === called) (await load()).declare[name]!(command, local);
		}
	// The arguments of the others are not declared, so the table says how they are called.
	const usages = COMMAND_FILES.flatMap(({ commands }) => Object.keys(commands));
	const usageOf = (command: Command) => usages.find((usage) => usage.split(" ")[0] === command.name());
	const subcommandTerm = (command: Command) => usageOf(command) ?? new Help().subcommandTerm(command);
	nexus.configureHelp({ ...nexus.configureHelp(), subcommandTerm });
	pointToHelp(nexus, "nexus");
}

/** After a mistake, the message names the help of that very command. */
function pointToHelp(command: Command, called: string): void {
	command.showHelpAfterError(`See \`${called} --help\`.`);
	for (const each of command.commands) pointToHelp(each, `${called} ${each.name()}`);
}
