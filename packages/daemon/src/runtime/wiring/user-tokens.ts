/** The `grpc.jwt` section of `nexus.yaml`: the issuer whose user tokens are accepted (Z10). An unusable section fails the start. */

import { resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { noUserTokens, userTokens, type VerifyUserToken } from "../../services/scenarios/user-token.ts";
import type { NexusConfig } from "../config/config.ts";

const SHARED_SECRET = /^HS(?:256|384|512)$/;
const KEY_PAIR = /^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$|^Ed25519$/;

export function userTokensOf(
	{ grpc, base }: Pick<NexusConfig, "grpc" | "base">,
	clock: Pick<Clock, "now">,
): VerifyUserToken {
	if (!grpc?.jwt) return noUserTokens;
	const { issuer, audience, jwksFile, secretFile, algorithms } = grpc.jwt;
	if (issuer === undefined || audience === undefined || algorithms === undefined)
		throw wrong("needs issuer, audience and algorithms");
	if ((jwksFile === undefined) === (secretFile === undefined)) throw wrong("needs jwksFile or secretFile, not both");
	// A public key that is taken for a shared secret would let anybody sign.
	const fitting = jwksFile === undefined ? SHARED_SECRET : KEY_PAIR;
	const odd = algorithms.find((name) => !fitting.test(name));
	if (odd !== undefined) throw wrong(`cannot use ${odd} with ${jwksFile === undefined ? "secretFile" : "jwksFile"}`);
	const file =
		jwksFile === undefined ? { secretFile: resolve(base, secretFile!) } : { jwksFile: resolve(base, jwksFile) };
	return userTokens({ issuer, audience, algorithms, ...file }, clock);
}

const wrong = (what: string): NexusError => new NexusError("config", `grpc.jwt ${what}`);
