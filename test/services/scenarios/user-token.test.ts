/** Z10: user tokens, with keys in a file that the operator may change. */

import { createSecretKey, generateKeyPairSync } from "node:crypto";
import { utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SignJWT } from "jose";
import { describe, expect, test } from "vitest";
import { completeConfig } from "../../../packages/daemon/src/runtime/config/config.ts";
import { userTokensOf } from "../../../packages/daemon/src/runtime/grpc.ts";
import {
	noUserTokens,
	type UserTokenConfig,
	userTokens,
} from "../../../packages/daemon/src/services/scenarios/metadata.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import { freshFolder } from "../../runtime/folder.ts";

const NOW = 1_700_000_000_000;
const clock = { now: () => NOW };
const SECRET = "a shared secret that is long enough to sign";
const rules = { issuer: "https://id.example", audience: "nexus" };
const refused = { code: "unauthenticated", reason: "USER_TOKEN_INVALID" };

const fileWith = (content: string): string => {
	const path = join(freshFolder(), "keys");
	writeFileSync(path, content);
	return path;
};

interface Claims {
	sub?: string | object;
	iss?: string;
	aud?: string;
	/** Seconds from now. */
	expires?: number;
}

function signed({ sub = "ann", iss = rules.issuer, aud = rules.audience, expires = 60 }: Claims, secret = SECRET) {
	const claims = {
		exp: expires === 0 ? undefined : NOW / 1000 + expires,
		sub: sub === "" ? undefined : (sub as string),
	};
	return new SignJWT(claims)
		.setProtectedHeader({ alg: "HS256" })
		.setIssuer(iss)
		.setAudience(aud)
		.sign(createSecretKey(Buffer.from(secret)));
}

const verifier = (fields: Partial<UserTokenConfig> = {}) =>
	userTokens({ ...rules, secretFile: fileWith(`${SECRET}\n`), algorithms: ["HS256"], ...fields }, clock);

describe("a shared secret", () => {
	test("the subject of a valid token is the user", async () => {
		expect(await verifier()(await signed({}))).toBe("ann");
	});

	test.each<[string, Claims]>([
		["has expired", { expires: -1 }],
		["never expires", { expires: 0 }],
		["is of another issuer", { iss: "https://other.example" }],
		["is for another audience", { aud: "other" }],
		["has no subject", { sub: "" }],
		["has a subject without end", { sub: "x".repeat(201) }],
		["has an object for a subject", { sub: { name: "ann" } }],
		["has a list for a subject", { sub: ["ann"] }],
	])("a token that %s is refused", async (_, claims) => {
		await expect(verifier()(await signed(claims))).rejects.toMatchObject(refused);
	});

	test("so is one with another signer's signature, one without a signature, and nonsense", async () => {
		const verify = verifier();
		await expect(verify(await signed({}, "another secret that is long enough!!"))).rejects.toMatchObject(refused);
		const [, body] = (await signed({})).split(".");
		const none = `${Buffer.from('{"alg":"none"}').toString("base64url")}.${body}.`;
		await expect(verify(none)).rejects.toMatchObject(refused);
		await expect(verify("nonsense")).rejects.toMatchObject(refused);
	});

	test("a changed file is read again, and one that cannot be used is the operator's fault", async () => {
		const secretFile = fileWith(SECRET);
		const verify = verifier({ secretFile });
		const other = "a rotated secret that is long enough to sign";
		const token = await signed({}, other);
		await expect(verify(token)).rejects.toMatchObject(refused);
		writeFileSync(secretFile, other);
		utimesSync(secretFile, 1, 1);
		expect(await verify(token)).toBe("ann");
		for (const unusable of ["/nowhere", fileWith("short")]) {
			const failure = verifier({ secretFile: unusable })(token);
			await expect(failure).rejects.toThrow(`cannot be read from ${unusable}`);
			// An error that is not a NexusError is logged, and callers never see its message.
			await expect(failure).rejects.not.toBeInstanceOf(NexusError);
		}
	});
});

test("a key set: only what one of its keys signed", async () => {
	const pair = () => generateKeyPairSync("ec", { namedCurve: "P-256" });
	const [own, foreign] = [pair(), pair()];
	const jwksFile = fileWith(
		JSON.stringify({ keys: [{ ...own.publicKey.export({ format: "jwk" }), kid: "a", alg: "ES256" }] }),
	);
	const verify = userTokens({ ...rules, jwksFile, algorithms: ["ES256"] }, clock);
	const sign = (key: typeof own.privateKey) =>
		new SignJWT({ exp: NOW / 1000 + 60 })
			.setProtectedHeader({ alg: "ES256", kid: "a" })
			.setSubject("bob")
			.setIssuer(rules.issuer)
			.setAudience(rules.audience)
			.sign(key);
	expect(await verify(await sign(own.privateKey))).toBe("bob");
	await expect(verify(await sign(foreign.privateKey))).rejects.toMatchObject(refused);
});

describe("grpc.jwt", () => {
	const of = (jwt: object | undefined) =>
		userTokensOf(completeConfig({ base: "/", ...(jwt && { grpc: { jwt } }) }), clock);
	const whole = { ...rules, secretFile: "s", algorithms: ["HS256"] };

	test("is optional", () => {
		expect(of(undefined)).toBe(noUserTokens);
		expect(of(whole)).toBeTypeOf("function");
	});

	test.each<[string, object]>([
		["no issuer", { ...whole, issuer: undefined }],
		["no algorithms", { ...whole, algorithms: undefined }],
		["two files", { ...whole, jwksFile: "j" }],
		["no file", { ...whole, secretFile: undefined }],
		["a secret for a key pair", { ...whole, algorithms: ["RS256"] }],
		["a public key for a secret", { ...rules, jwksFile: "j", algorithms: ["ES256", "HS256"] }],
		["no signature", { ...whole, algorithms: ["none"] }],
	])("refuses the start with %s", (_, jwt) => {
		expect(() => of(jwt)).toThrow(expect.objectContaining({ code: "config" }));
	});
});
