/** `nexus app`: applications with their own tokens, which the owner adds and removes. */

import { AddAppResponseSchema, type App, AppSchema } from "@nexus-stream/client/gen/nexus/runtime/v1/app_pb";
import {
	type CommandContext,
	type Declarations,
	type JsonOption,
	remote,
	remoteJson,
	remoteRows,
	withDaemon,
} from "../command.ts";
import { forEach, jsonOf, runtimeOf, sinceTime } from "../runtime.ts";
import { list } from "../table.ts";
import { oneLine, tell } from "../terminal.ts";

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

async function addApp(context: CommandContext, appId: string, { name = "", json }: JsonOption & { name?: string }) {
	const { terminal } = context;
	const added = await runtimeOf(context).apps.addApp({ appId, name });
	tell(terminal, json, jsonOf(AddAppResponseSchema, added), added.token);
	if (!json) terminal.note(`This is the token of ${oneLine(appId, 100)}. Keep it: it cannot be shown again.`);
}

async function listApps(context: CommandContext, { all, json }: JsonOption & { all?: boolean }) {
	const { apps } = await runtimeOf(context).apps.listApps({});
	const shown = all ? apps : apps.filter(({ removedAt }) => removedAt === undefined);
	return list(context.terminal, json, shown, {
		none: "there are no applications; `nexus app add <id>` adds one",
		json: (app) => jsonOf(AppSchema, app),
		columns: {
			APP: (app) => app.appId,
			NAME: (app) => oneLine(app.name, 80),
			ADDED: (app) => sinceTime(app.createdAt),
			REMOVED: (app) => sinceTime(app.removedAt),
			STORED: storedText,
		},
	});
}

const clearApps = (context: CommandContext, ids: readonly string[]) =>
	forEach(context, ids, async (appId) => {
		const app = await runtimeOf(context).apps.clearApp({ appId });
		return `cleared ${appId}: ${storedText(app)}`;
	});

const removeApps = (context: CommandContext, ids: readonly string[]) =>
	forEach(context, ids, async (appId) => {
		await runtimeOf(context).apps.removeApp({ appId });
		return `removed ${appId}`;
	});

const MIB = 1024 ** 2;

const storedText = ({ storedBytes, storedBytesMax }: Pick<App, "storedBytes" | "storedBytesMax">): string =>
	`${(Number(storedBytes) / MIB).toFixed(1)} of ${(Number(storedBytesMax) / MIB).toFixed(1)} MiB`;
