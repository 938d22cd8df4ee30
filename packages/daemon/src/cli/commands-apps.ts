/** The commands about applications, with their arguments and options. */

import type { Command } from "commander";
import type { Adding } from "./commands-approvals.ts";

const commands = () => import("./commands/apps.ts");

export function addApps(nexus: Command, { remote, asJson, run }: Omit<Adding, "whole">): void {
	const app = nexus
		.command("app")
		.description("applications with tokens of their own: add, list, clear or remove them; alone it lists")
		.addHelpText(
			"after",
			'\nExamples:\n  nexus app add shop --name "Web shop"\n  nexus app list\n  nexus app clear shop\n  nexus app rm shop\n\nAn application sees only its own scenarios, jobs, workflows, artifacts and messages.',
		);

	asJson(remote(app.command("add")), "print the application and its token as JSON")
		.description("add an application and print its token: it is told once")
		.argument("<id>", "what requests call it (`app_id`)")
		.option("--name <name>", "what people call it")
		.action((id, options) => run(options, async (context) => (await commands()).addApp(context, id, options)));

	asJson(remote(app.command("list", { isDefault: true })), "one JSON object a line")
		.description("list applications, oldest first")
		.option("--all", "those that were removed, too")
		.action((options) => run(options, async (context) => (await commands()).listApps(context, options)));

	remote(app.command("clear"))
		.description("remove what is over of what an application has stored: jobs, workflows, logs of calls, artifacts")
		.argument("<id...>", "as `nexus app list` lists them")
		.action((ids, options) => run(options, async (context) => (await commands()).clearApps(context, ids)));

	remote(app.command("rm"))
		.description("take an application's token back, at once; what it made stays")
		.argument("<id...>", "as `nexus app list` lists them")
		.action((ids, options) => run(options, async (context) => (await commands()).removeApps(context, ids)));
}
