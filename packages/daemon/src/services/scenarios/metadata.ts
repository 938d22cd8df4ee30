/** Metadata of a request: credentials, which come here only, and the user token (JWT, Z10). `jose` is loaded with the first token. */

import { readFile, stat } from "node:fs/promises";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { JWTVerifyGetKey } from "jose";

const NAMES = {
	userToken: "x-nexus-user-token",
	keySource: "x-nexus-key-source",
	providerType: "x-nexus-provider-type",
	providerEndpoint: "x-nexus-provider-endpoint",
	apiKey: "x-nexus-provider-api-key",
} as const;

/** Size of one value. */
const VALUE_BYTES_MAX = 4096;

export type KeySource = "managed" | "inline";

export type ScenarioMetadata = Partial<Record<Exclude<keyof typeof NAMES, "keySource">, string>> & {
	keySource?: KeySource;
};

/** An empty value counts as none. The message of an error never has the value. */
export function metadataOf(read: (name: string) => string | undefined): ScenarioMetadata {
	const metadata: Partial<Record<keyof typeof NAMES, string>> = {};
	for (const [key, name] of Object.entries(NAMES) as [keyof typeof NAMES, string][]) {
		const value = read(name) ?? "";
		if (Buffer.byteLength(value) > VALUE_BYTES_MAX)
			throw new NexusError("invalid", `metadata ${name} has more than ${VALUE_BYTES_MAX} bytes`);
		if (value !== "") metadata[key] = value;
	}
	const { keySource, ...others } = metadata;
	return keySource === undefined ? others : { ...others, keySource: keySourceOf(keySource) };
}

function keySourceOf(value: string): KeySource {
	if (value === "managed" || value === "inline") return value;
	throw new NexusError("invalid", `${NAMES.keySource} is managed or inline`);
}

/** The user of a request that names none. */
const OWNER_USER = "owner";

/** The user of a request: the subject of its token, or the one that it names. */
export async function userOf(
	userId: string,
	{ userToken }: ScenarioMetadata,
	verifyUser: VerifyUserToken,
): Promise<string> {
	if (userToken === undefined) return userId === "" ? OWNER_USER : userId;
	const subject = await verifyUser(userToken);
	if (userId === "" || userId === subject) return subject;
	throw new NexusError("forbidden", "subject_user_id is not the subject of the user token");
}

export interface UserTokenConfig {
	issuer: string;
	audience: string;
	/** A JSON Web Key Set; for tokens that are signed with a private key. */
	jwksFile?: string;
	/** A shared secret of at least 32 bytes; for HS256, HS384 and HS512. */
	secretFile?: string;
	algorithms: readonly string[];
}

/** The subject of a valid token. Rejects with `unauthenticated` (USER_TOKEN_INVALID). */
export type VerifyUserToken = (token: string) => Promise<string>;

const SECRET_BYTES_MIN = 32;
const SUBJECT_CHARS_MAX = 200;

export const noUserTokens: VerifyUserToken = () =>
	Promise.reject(refused("this daemon takes no user tokens: configure grpc.jwt, or send none"));

export function userTokens(config: UserTokenConfig, clock: Pick<Clock, "now">): VerifyUserToken {
	const keys = keysIn(config);
	return async (token) => {
		const { jwtVerify } = await import("jose");
		const key = await keys();
		const { issuer, audience, algorithms } = config;
		const options = { issuer, audience, algorithms: [...algorithms], requiredClaims: ["exp", "sub"] };
		const { payload } = await jwtVerify(token, key, { ...options, currentDate: new Date(clock.now()) }).catch(
			(cause: unknown) => {
				throw refused(`the user token is not valid: ${wordsOf(cause)}`, cause);
			},
		);
		// The type says text, the token what its issuer wrote.
		const sub: unknown = payload.sub;
		if (typeof sub !== "string" || sub === "" || sub.length > SUBJECT_CHARS_MAX)
			throw refused(`the subject of a user token has 1 to ${SUBJECT_CHARS_MAX} characters`);
		return sub;
	};
}

/** Reads the file again when it was changed: keys are rotated while the daemon runs. */
function keysIn(config: UserTokenConfig): () => Promise<JWTVerifyGetKey> {
	const path = (config.jwksFile ?? config.secretFile)!;
	let known: { at: number; key: JWTVerifyGetKey } | undefined;
	return async () => {
		try {
			const { mtimeMs } = await stat(path);
			if (known?.at !== mtimeMs) known = { at: mtimeMs, key: await keyOf(config, await readFile(path)) };
			return known.key;
		} catch (cause) {
			// The operator's fault, and for the log: paths of this machine are no caller's business.
			throw new Error(`the keys for user tokens cannot be read from ${path}: ${wordsOf(cause)}`, { cause });
		}
	};
}

async function keyOf({ jwksFile }: UserTokenConfig, content: Buffer): Promise<JWTVerifyGetKey> {
	if (jwksFile !== undefined) {
		const { createLocalJWKSet } = await import("jose");
		return createLocalJWKSet(JSON.parse(content.toString("utf8")));
	}
	const secret = Buffer.from(content.toString("utf8").trim());
	if (secret.length < SECRET_BYTES_MIN) throw new Error(`a secret has at least ${SECRET_BYTES_MIN} bytes`);
	return async () => secret;
}

const refused = (message: string, cause?: unknown): NexusError =>
	new NexusError("unauthenticated", message, { cause, reason: "USER_TOKEN_INVALID" });
