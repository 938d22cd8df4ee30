/** Secrets in the data directory: the daemon's key, and the accounts of chat platforms. One file each, readable by its owner only. */

import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import type { SecretKey } from "../../services/connectors/connectors.ts";
import { type DataPaths, makePrivateDir, reasonOf, writePrivate } from "./data-dir.ts";

export const SECRET_VARIABLE = "NEXUS_SECRET_KEY";
const KEY_BYTES = 32;

/** Encrypts the keys of connectors: from the environment, or a file that is made when it is first needed. `env` is the process's. */
export function secretKey({ secret }: DataPaths, env: Readonly<Record<string, string | undefined>>): SecretKey {
	const read = (): Buffer | undefined => {
		const given = env[SECRET_VARIABLE]?.trim();
		if (given) return keyOf(given, SECRET_VARIABLE);
		return existsSync(secret) ? keyOf(textOf(secret), secret) : undefined;
	};
	return {
		read,
		make() {
			const known = read();
			if (known) return known;
			const made = randomBytes(KEY_BYTES);
			writePrivate(secret, `${made.toString("hex")}\n`);
			return made;
		},
	};
}

function textOf(path: string): string {
	try {
		return readFileSync(path, "utf8").trim();
	} catch (cause) {
		throw unusable(path, `cannot be read (${reasonOf(cause)})`, cause);
	}
}

/** Never with the text itself: it is a secret, or was meant to be one. */
function keyOf(text: string, from: string): Buffer {
	const key = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : Buffer.from(text, "base64");
	if (key.length === KEY_BYTES && /^[\w+/=-]+$/.test(text)) return key;
	throw unusable(from, "is not 32 bytes in hexadecimal or base64");
}

const unusable = (from: string, why: string, cause?: unknown): NexusError =>
	new NexusError(
		"precondition",
		`${from} ${why}: bring back the right one, or make a new one with \`openssl rand -hex 32\` and give the keys of the connectors again`,
		{ cause, reason: "AI_CONNECTOR_CREDENTIAL_MISSING" },
	);

/** An account as `nexus adapter add` stores it, outside the configuration. */
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
