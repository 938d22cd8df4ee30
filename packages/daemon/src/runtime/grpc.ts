/** The section `grpc` of `nexus.yaml`: which port it opens, with which certificate, and whose user tokens it accepts. An unusable section fails the start. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Edge, GrpcTls } from "../edge/edge.ts";
import { noUserTokens, userTokens, type VerifyUserToken } from "../services/scenarios/metadata.ts";
import type { NexusConfig } from "./config/config.ts";

type GrpcConfig = Pick<NexusConfig, "host" | "port" | "grpc" | "base">;

/** Resolves with its address, or undefined when it is off. `mainPort`: what the main port came to be. */
export async function openGrpcPort(
	edge: Pick<Edge, "listenGrpc">,
	config: GrpcConfig,
	mainPort: number,
	log: Log,
): Promise<string | undefined> {
	const { host, grpc = {} } = config;
	if (grpc.port === "off") return undefined;
	const tls = await readTls(config);
	if (grpc.port !== undefined) {
		try {
			return (await edge.listenGrpc(host, grpc.port, tls)).url;
		} catch (cause) {
			throw cause instanceof NexusError && cause.code === "conflict" ? inUse(grpc.port, host, cause) : cause;
		}
	}
	const usual = config.port === 0 ? 0 : nextPort(mainPort);
	try {
		return (await edge.listenGrpc(host, usual, tls)).url;
	} catch (cause) {
		if (!(cause instanceof NexusError) || cause.code !== "conflict") throw cause;
		// The default port is not a promise: a free one serves as well, and is in the ready line and in the daemon's record.
		const { url } = await edge.listenGrpc(host, 0, tls);
		log.warn({ wanted: usual, grpc: url }, "the gRPC port is in use; a free one was taken instead");
		return url;
	}
}

/** There is none after the last. */
const nextPort = (port: number): number => (port === 65535 ? 0 : port + 1);

const inUse = (port: number, host: string, cause: unknown): NexusError =>
	new NexusError(
		"conflict",
		`the gRPC port ${port} on ${host} is in use; stop what uses it, choose another with --grpc-port, or switch it off with --grpc-port off`,
		{ cause },
	);

/** Both files or none. A problem with them is reported at the start, not to the first client. */
export async function readTls({ grpc = {}, base }: Pick<NexusConfig, "grpc" | "base">): Promise<GrpcTls | undefined> {
	const { cert, key } = grpc;
	if (cert === undefined && key === undefined) return undefined;
	if (cert === undefined || key === undefined)
		throw new NexusError("config", "grpc.cert and grpc.key belong together: give both, or neither");
	const tls = { cert: readPem(base, cert, "cert"), key: readPem(base, key, "key") };
	const { createSecureContext } = await import("node:tls");
	try {
		createSecureContext(tls);
	} catch (cause) {
		throw new NexusError("config", `grpc.cert and grpc.key cannot be used together: ${(cause as Error).message}`, {
			cause,
		});
	}
	return tls;
}

function readPem(base: string, file: string, name: string): string {
	try {
		return readFileSync(resolve(base, file), "utf8");
	} catch (cause) {
		throw new NexusError("config", `grpc.${name}: ${file} cannot be read (${(cause as Error).message})`, { cause });
	}
}

const SHARED_SECRET = /^HS(?:256|384|512)$/;
const KEY_PAIR = /^(?:RS|PS|ES)(?:256|384|512)$|^EdDSA$|^Ed25519$/;

/** The issuer whose user tokens are accepted (Z10). */
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
