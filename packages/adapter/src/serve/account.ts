/** An adapter process's account, from the file that the daemon names in the environment. */

import { readFileSync } from "node:fs";
import { NexusError } from "@nexus-stream/protocol";
import { appliesTo } from "../info.ts";
import type { Account } from "../platform/platform.ts";
import type { AdapterInfo } from "../port.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Without `NEXUS_ACCOUNT_FILE` an account has only the defaults of its settings. */
export function loadAccount(info: AdapterInfo, id: string, env: Environment): Account {
	const path = env.NEXUS_ACCOUNT_FILE;
	const stored = path === undefined ? { id, settings: {} } : readAccount(path);
	if (stored.id !== id) {
		throw new NexusError("config", `${path} is the file of account "${stored.id}", not of "${id}".`);
	}
	const settings: Record<string, string> = {};
	for (const { name, default: fallback } of info.settings) if (fallback !== undefined) settings[name] = fallback;
	Object.assign(settings, stored.settings);
	const missing = info.settings
		.filter((each) => each.required && !settings[each.name] && appliesTo(each, info.settings, settings))
		.map(({ name }) => name);
	if (missing.length > 0) {
		const where = path ?? "the file that NEXUS_ACCOUNT_FILE names";
		throw new NexusError("config", `Account "${id}" lacks ${missing.join(", ")}. Set it in "settings" of ${where}.`);
	}
	return { id, settings };
}

function readAccount(path: string): Account {
	let value: { id?: unknown; settings?: unknown };
	try {
		value = JSON.parse(readFileSync(path, "utf8"));
	} catch (cause) {
		throw new NexusError("config", `NEXUS_ACCOUNT_FILE ${path} cannot be read as JSON: ${reasonOf(cause)}`, { cause });
	}
	const { id, settings } = value;
	const fits =
		typeof id === "string" &&
		typeof settings === "object" &&
		settings !== null &&
		Object.values(settings).every((each) => typeof each === "string");
	if (!fits) throw new NexusError("config", `${path} must be {"id": "…", "settings": {"name": "text", …}}.`);
	return value as Account;
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
