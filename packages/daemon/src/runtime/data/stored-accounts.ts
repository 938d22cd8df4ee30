/** Accounts with their secrets, as `nexus adapter add` stores them: one file each, readable by its owner only, outside the configuration. */

import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import { makePrivateDir, writePrivate } from "./data-dir.ts";

export interface StoredAccount {
	channel: string;
	account: string;
	settings: Record<string, string>;
}

const folderOf = (data: string) => join(data, "accounts");
const safe = (name: string) => encodeURIComponent(name).replaceAll(".", "%2E");
const fileOf = (data: string, { channel, account }: Pick<StoredAccount, "channel" | "account">) =>
	join(folderOf(data), `${safe(channel)}.${safe(account)}.json`);

export function readAccounts(data: string): StoredAccount[] {
	let names: string[];
	try {
		names = readdirSync(folderOf(data));
	} catch (cause) {
		if ((cause as NodeJS.ErrnoException).code === "ENOENT") return [];
		throw cause;
	}
	return names
		.filter((name) => name.endsWith(".json"))
		.sort()
		.map((name) => readAccount(join(folderOf(data), name)));
}

function readAccount(path: string): StoredAccount {
	try {
		const value = JSON.parse(readFileSync(path, "utf8")) as StoredAccount;
		const texts = [value.channel, value.account, ...Object.values(value.settings)];
		if (texts.every((text) => typeof text === "string")) return value;
	} catch (cause) {
		throw damaged(path, cause);
	}
	throw damaged(path);
}

/** The file holds secrets, so the message does not repeat its content. */
const damaged = (path: string, cause?: unknown) =>
	new NexusError("config", `${path} is damaged: remove it, and add the account again with \`nexus adapter add\``, {
		cause,
	});

/** Returns the file. */
export function storeAccount(data: string, account: StoredAccount): string {
	makePrivateDir(folderOf(data));
	const path = fileOf(data, account);
	writePrivate(path, `${JSON.stringify(account)}\n`);
	return path;
}

/** False when there was none. */
export function removeAccount(data: string, name: Pick<StoredAccount, "channel" | "account">): boolean {
	const known = readAccounts(data).some(({ channel, account }) => channel === name.channel && account === name.account);
	if (known) rmSync(fileOf(data, name));
	return known;
}
