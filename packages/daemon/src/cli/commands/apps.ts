/** `nexus app`: applications with tokens of their own, which the owner adds and removes. */

import { AddAppResponseSchema, type App, AppSchema } from "@nexus-stream/client/runtime";
import type { CommandContext, CommandExit } from "../command.ts";
import { jsonOf, runtimeOf, sinceTime } from "../runtime.ts";
import { table } from "../table.ts";
import { oneLine } from "../terminal.ts";

export async function addApp(
	context: CommandContext,
	appId: string,
	{ name = "", json }: { name?: string; json?: boolean },
): CommandExit {
	const { terminal } = context;
	const added = await runtimeOf(context).apps.addApp({ appId, name });
	if (json) terminal.json(jsonOf(AddAppResponseSchema, added));
	else {
		terminal.out(`${added.token}\n`);
		terminal.note(`This is the token of ${oneLine(appId, 100)}. Keep it: it cannot be shown again.`);
	}
	return 0;
}

export async function listApps(context: CommandContext, { all, json }: { all?: boolean; json?: boolean }): CommandExit {
	const { terminal } = context;
	const { apps } = await runtimeOf(context).apps.listApps({});
	const shown = all ? apps : apps.filter(({ removedAt }) => removedAt === undefined);
	if (shown.length === 0) terminal.note("there are no applications; `nexus app add <id>` adds one");
	if (json) for (const app of shown) terminal.json(jsonOf(AppSchema, app));
	else
		table(
			terminal,
			["APP", "NAME", "ADDED", "REMOVED", "STORED"],
			shown.map((app) => [
				app.appId,
				oneLine(app.name, 80),
				sinceTime(app.createdAt),
				sinceTime(app.removedAt),
				storedText(app),
			]),
		);
	return 0;
}

export async function clearApps(context: CommandContext, ids: readonly string[]): CommandExit {
	const { apps } = runtimeOf(context);
	for (const appId of ids) {
		const app = await apps.clearApp({ appId });
		context.terminal.out(`cleared ${oneLine(appId, 100)}: ${storedText(app)}\n`);
	}
	return 0;
}

const MIB = 1024 ** 2;

const storedText = ({ storedBytes, storedBytesMax }: Pick<App, "storedBytes" | "storedBytesMax">): string =>
	`${(Number(storedBytes) / MIB).toFixed(1)} of ${(Number(storedBytesMax) / MIB).toFixed(1)} MiB`;

export async function removeApps(context: CommandContext, ids: readonly string[]): CommandExit {
	const { apps } = runtimeOf(context);
	for (const appId of ids) {
		await apps.removeApp({ appId });
		context.terminal.out(`removed ${oneLine(appId, 100)}\n`);
	}
	return 0;
}
