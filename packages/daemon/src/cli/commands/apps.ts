/** `nexus app`: applications with tokens of their own, for the owner who lets them in. */

import type { AppJson } from "@nexus-stream/protocol";
import {
	type CommandContext,
	type CommandExit,
	type Declarations,
	remote,
	remoteJson,
	remoteRows,
	withDaemon,
} from "../command.ts";
import { since, table } from "../table.ts";
import { oneLine } from "../terminal.ts";

export const declare: Declarations = {
	app(command, local) {
		command.addHelpText(
			"after",
			'\nExamples:\n  nexus app add shop --name "Web shop"\n  nexus app list\n  nexus app clear shop\n  nexus app rm shop\n\nAn application sees only its own scenarios, jobs, workflows, artifacts and messages.',
		);
		remoteJson(command.command("add"), "print the application and its token as JSON")
			.description("add an application and print its token, which cannot be shown again")
			.argument("<id>", "what requests call it (`app_id`)")
			.option("--name <name>", "what people call it")
			.action(withDaemon(local, addApp));
		remoteRows(command.command("list", { isDefault: true }))
			.description("list applications, oldest first")
			.option("--all", "those that were removed, too")
			.action(withDaemon(local, listApps));
		remote(command.command("clear"))
			.description("remove an application's finished jobs and workflows, logs of calls and artifacts")
			.argument("<id...>", "as `nexus app list` lists them")
			.action(withDaemon(local, clearApps));
		remote(command.command("rm"))
			.description("take an application's token back, at once; what it made stays")
			.argument("<id...>", "as `nexus app list` lists them")
			.action(withDaemon(local, removeApps));
	},
};

export async function addApp(
	{ client, terminal }: CommandContext,
	id: string,
	{ name, json }: { name?: string; json?: boolean },
): CommandExit {
	const added = await client.api.addApp({ app_id: id, name });
	if (json) terminal.json(added);
	else {
		terminal.out(`${added.token}\n`);
		terminal.note(`This is the token of ${oneLine(added.app.app_id, 100)}. Keep it: it cannot be shown again.`);
	}
	return 0;
}

export async function listApps(
	{ client, terminal }: CommandContext,
	{ all, json }: { all?: boolean; json?: boolean },
): CommandExit {
	const { apps } = await client.api.apps();
	const shown = all ? apps : apps.filter(({ removed_at }) => removed_at === undefined);
	if (shown.length === 0) terminal.note("there are no applications; `nexus app add <id>` adds one");
	if (json) for (const app of shown) terminal.json(app);
	else
		table(
			terminal,
			["APP", "NAME", "ADDED", "REMOVED", "STORED"],
			shown.map((app) => [
				app.app_id,
				oneLine(app.name, 80),
				since(app.created_at),
				app.removed_at === undefined ? "" : since(app.removed_at),
				storedText(app),
			]),
		);
	return 0;
}

export async function clearApps({ client, terminal }: CommandContext, ids: readonly string[]): CommandExit {
	for (const id of ids) {
		const app = await client.api.clearApp(id);
		terminal.out(`cleared ${oneLine(id, 100)}: ${storedText(app)}\n`);
	}
	return 0;
}

const MIB = 1024 ** 2;

const storedText = ({
	stored_bytes: bytes = 0,
	stored_bytes_max: max = 0,
}: Pick<AppJson, "stored_bytes" | "stored_bytes_max">): string =>
	`${(bytes / MIB).toFixed(1)} of ${(max / MIB).toFixed(1)} MiB`;

export async function removeApps({ client, terminal }: CommandContext, ids: readonly string[]): CommandExit {
	for (const id of ids) {
		await client.api.removeApp(id);
		terminal.out(`removed ${oneLine(id, 100)}\n`);
	}
	return 0;
}
