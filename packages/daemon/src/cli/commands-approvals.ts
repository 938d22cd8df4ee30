/** The commands about approvals and questions, with their arguments and options. */

import type { Command } from "commander";
import type { CommandContext, CommandExit } from "./command.ts";

/** What adding a command needs of the others. */
export interface Adding {
	remote(command: Command): Command;
	asJson(command: Command, what: string): Command;
	whole(text: string): number;
	run(options: object, command: (context: CommandContext) => CommandExit): Promise<void>;
}

const commands = () => import("./commands/approvals.ts");

export function addApprovals(nexus: Command, { remote, asJson, whole, run }: Adding): void {
	asJson(remote(nexus.command("approvals")), "one JSON object a line")
		.description("list what runs wait for a person to decide or answer")
		.option("--all", "those that were decided, too")
		.option("--remembered", "what was allowed for the rest of a session")
		.option("--revoke <id>", "ask again about something that was allowed for a session")
		.option("--limit <count>", "at most this many", whole, 50)
		.addHelpText(
			"after",
			"\nExamples:\n  nexus approvals\n  nexus approvals --remembered\n  nexus approvals --revoke K7Q2-m3x9",
		)
		.action((options) => run(options, async (context) => (await commands()).approvals(context, options)));

	asJson(remote(nexus.command("approve")), "print the decision as JSON")
		.description("let a tool call act that waits for approval")
		.argument("<id>", "as `nexus approvals` lists it")
		.option("--remember", "allow the same for the rest of the session")
		.option("--reason <text>", "why, for the record")
		.addHelpText("after", "\nExample:\n  nexus approve K7Q2")
		.action((id, options) =>
			run(options, async (context) => (await commands()).decide(context, id, "approve", options)),
		);

	asJson(remote(nexus.command("deny")), "print the decision as JSON")
		.description("refuse a tool call that waits for approval; the model is told")
		.argument("<id>", "as `nexus approvals` lists it")
		.argument("[reason...]", "why: the model reads it")
		.addHelpText("after", "\nExample:\n  nexus deny K7Q2 use the staging server")
		.action((id, words: string[], options) => {
			const reason = words.length === 0 ? {} : { reason: words.join(" ") };
			return run(options, async (context) => (await commands()).decide(context, id, "deny", { ...options, ...reason }));
		});

	asJson(remote(nexus.command("answer")), "print the answer as JSON")
		.description("answer what a run asks")
		.argument("<id>", "as `nexus approvals` lists it")
		.argument("<text...>", "the answer, or the number of a choice")
		.addHelpText("after", "\nExample:\n  nexus answer K7Q2 the second one")
		.action((id, words: string[], options) =>
			run(options, async (context) => (await commands()).answer(context, id, words.join(" "), options)),
		);
}
