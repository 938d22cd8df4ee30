/** The daemon's secret key, which encrypts the keys of connectors: from the environment, or a file of the data directory that is made when it is first needed. */

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { NexusError } from "@nexus-stream/protocol";
import type { SecretKey } from "../../services/connectors/connectors.ts";
import { type DataPaths, reasonOf, writePrivate } from "./data-dir.ts";

export const SECRET_VARIABLE = "NEXUS_SECRET_KEY";
const KEY_BYTES = 32;

/** `env` is the process's. */
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
