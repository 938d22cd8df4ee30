/** The commands about connectors, with their arguments and options. */

import type { Command } from "commander";
import type { Adding } from "./commands-approvals.ts";

const commands = () => import("./commands/connector.ts");

const each = (value: string, earlier: string[] = []): string[] => [...earlier, value];

const withKey = (command: Command): Command =>
	command
		.option("--key-env <variable>", "take the key from an environment variable")
		.option("--key-file <file>", "take the key from a file")
		.option("--no-test", "do not test the connection");

export function addConnectors(nexus: Command, { remote, asJson, run }: Adding): void {
	const connector = nexus
		.command("connector")
		.description(
			"model providers that jobs, workflows and applications may use: add, list, test or remove them; alone it lists",
		);

	withKey(remote(connector.command("add")))
		.description("add a model provider: ask for its key, test the connection, and keep the key encrypted")
		.argument("<id>", "its name, of your choice")
		.option("--type <type>", "openai, anthropic, google, openai-compatible or demo")
		.option("--endpoint <url>", "its address; needed for openai-compatible")
		.option("--model <model>", "the model that is asked when a request names none")
		.option("--only <model>", "a model that may be asked for; without it any may (repeatable)", each)
		.option("--app <app>", "only this application may use it")
		.addHelpText(
			"after",
			"\nExamples:\n  nexus connector add main --type openai\n  nexus connector add lan --type openai-compatible --endpoint https://models.example/v1 --key-env MODELS_KEY\n  pass show anthropic | nexus connector add claude --type anthropic",
		)
		.action((id, options) => run(options, async (context) => (await commands()).add(context, id, options)));

	asJson(remote(connector.command("list", { isDefault: true })), "one JSON object a line")
		.description("list connectors, with the last four characters of their keys")
		.action((options) => run(options, async (context) => (await commands()).list(context, options)));

	remote(connector.command("test"))
		.description("ask providers for their models; costs nothing there")
		.argument("[id...]", "which ones; without it all")
		.action((ids, options) => run(options, async (context) => (await commands()).test(context, ids)));

	withKey(remote(connector.command("key")))
		.description("give a connector another key")
		.argument("<id>", "its name")
		.action((id, options) => run(options, async (context) => (await commands()).key(context, id, options)));

	remote(connector.command("rm"))
		.description("remove connectors and their keys")
		.argument("<id...>", "their names")
		.action((ids, options) => run(options, async (context) => (await commands()).remove(context, ids)));
}
