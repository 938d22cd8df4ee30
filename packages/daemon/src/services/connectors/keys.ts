/** Keys at rest: encrypted with the daemon's secret key, and bound to the connector they were given for. */

import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { NexusError } from "@nexus-stream/protocol";

/** Where the secret key comes from. Both throw `precondition` when it is there and cannot be used. */
export interface SecretKey {
	/** Undefined when there is none yet. 32 bytes. */
	read(): Buffer | undefined;
	/** The one there is, or a new one. */
	make(): Buffer;
}

/** The connector that a key is bound to: the key cannot be opened for another. */
export interface KeyBinding {
	id: string;
	appId?: string | undefined;
	providerType: string;
	/** The address that is dialled. */
	endpoint: string | undefined;
}

const ALGORITHM = "aes-256-gcm";
const VERSION = "v1";
const IV_BYTES = 12;

const associated = ({ id, appId, providerType, endpoint }: KeyBinding): Buffer =>
	Buffer.from(JSON.stringify([VERSION, id, appId ?? null, providerType, endpoint ?? null]));

/** Tells one secret key from another without telling what it is. */
const keyIdOf = (secret: Buffer): string =>
	createHash("sha256").update("nexus secret key id").update(secret).digest("base64url").slice(0, 8);

export function sealKey(apiKey: string, binding: KeyBinding, secret: Buffer): string {
	const iv = randomBytes(IV_BYTES);
	const cipher = createCipheriv(ALGORITHM, secret, iv).setAAD(associated(binding));
	const sealed = Buffer.concat([cipher.update(apiKey, "utf8"), cipher.final(), cipher.getAuthTag()]);
	return [VERSION, keyIdOf(secret), iv.toString("base64url"), sealed.toString("base64url")].join(".");
}

const TAG_BYTES = 16;

/** Throws `precondition` with what to do, never with anything of the key. */
export function openKey(sealed: string, binding: KeyBinding, source: SecretKey): string {
	const secret = source.read();
	if (!secret) throw unusable(binding.id, "the daemon's secret key is gone");
	const [version, keyId, iv = "", text = ""] = sealed.split(".");
	if (version !== VERSION) throw unusable(binding.id, "it was stored by a newer version of Nexus");
	if (keyId !== keyIdOf(secret)) throw unusable(binding.id, "it was stored under another secret key than today's");
	const bytes = Buffer.from(text, "base64url");
	try {
		const decipher = createDecipheriv(ALGORITHM, secret, Buffer.from(iv, "base64url"))
			.setAAD(associated(binding))
			.setAuthTag(bytes.subarray(-TAG_BYTES));
		return Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString("utf8");
	} catch (cause) {
		throw unusable(binding.id, "it is damaged, or was given for another address", cause);
	}
}

const unusable = (id: string, why: string, cause?: unknown): NexusError =>
	new NexusError(
		"precondition",
		`the key of the connector ${id} cannot be used: ${why}. Bring back NEXUS_SECRET_KEY or the file secret.key of the data directory, or give the key again with \`nexus connector key ${id}\``,
		{ cause, reason: "AI_CONNECTOR_CREDENTIAL_MISSING" },
	);

const HINT_CHARS = 4;
/** Four characters would reveal too much of a shorter key. */
const HINT_KEY_CHARS_MIN = 12;

export const keyHint = (apiKey: string): string =>
	`…${apiKey.length < HINT_KEY_CHARS_MIN ? "" : apiKey.slice(-HINT_CHARS)}`;
