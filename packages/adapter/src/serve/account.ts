/** An adapter process's account, from the file that the daemon names in the environment, and its secrets, which stay out of all output. */

import { readFileSync } from "node:fs";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
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
		throw new NexusError("config", `NEXUS_ACCOUNT_FILE ${path} cannot be read as JSON: ${wordsOf(cause)}`, { cause });
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

export type Redact = (text: string) => string;

/** A shorter one would be found in ordinary words. */
const SECRET_CHARS_MIN = 6;

/** Removes the account's secrets from a text: an SDK's error may quote the address that it called. Also as they are spelled in an address or in JSON. */
export function createRedactor({ settings }: AdapterInfo, account: Account): Redact {
	const values = settings.flatMap(({ name, secret }) => (secret ? [account.settings[name] ?? ""] : []));
	const spellings = values
		.filter((value) => value.length >= SECRET_CHARS_MIN)
		.flatMap((value) => [value, encodeURIComponent(value), JSON.stringify(value).slice(1, -1)])
		.toSorted((a, b) => b.length - a.length);
	return (text) => spellings.reduce((rest, spelling) => rest.replaceAll(spelling, "[secret]"), text);
}

/** Fields that quote errors. */
const ERROR_FIELDS = ["error", "detail"] as const;

export function withoutSecrets(line: object, redact: Redact): object {
	const redacted = ERROR_FIELDS.flatMap((field) => {
		const value = (line as Record<string, unknown>)[field];
		return typeof value === "string" ? [[field, redact(value)]] : [];
	});
	return redacted.length === 0 ? line : { ...line, ...Object.fromEntries(redacted) };
}
