/** An adapter process's account and its small durable memory, from the files that the daemon names in the environment. */

import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { NexusError } from "../../protocol/protocol.ts";
import { appliesTo } from "../info.ts";
import type { AdapterInfo } from "../port.ts";
import type { Account, Tools } from "./platform.ts";

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

/** Every change is on disk when `set` returns: the file is whole at any moment. Without a file it lasts as long as the process. */
export function openState(path: string | undefined): Tools["state"] {
	const memory: Record<string, string> = path === undefined ? {} : readState(path);
	// Another verb of the account may have written since.
	const refresh = () => {
		if (path !== undefined) Object.assign(memory, readState(path));
	};
	return {
		get(key) {
			refresh();
			return memory[key];
		},
		set(key, value) {
			refresh();
			if (memory[key] === value) return;
			memory[key] = value;
			if (path === undefined) return;
			const draft = `${path}.${process.pid}.tmp`;
			writeFileSync(draft, JSON.stringify(memory), { mode: 0o600 });
			renameSync(draft, path);
		},
	};
}

function readState(path: string): Record<string, string> {
	let text: string;
	try {
		text = readFileSync(path, "utf8");
	} catch (cause) {
		if (cause instanceof Error && "code" in cause && cause.code === "ENOENT") return {};
		throw new NexusError("config", `NEXUS_STATE_FILE ${path} cannot be read: ${reasonOf(cause)}`, { cause });
	}
	try {
		return JSON.parse(text);
	} catch (cause) {
		throw new NexusError("data_loss", `${path} is damaged: ${reasonOf(cause)}. Delete it to start afresh.`, { cause });
	}
}

const reasonOf = (cause: unknown): string => (cause instanceof Error ? cause.message : String(cause));
