/** The configuration of a daemon: flags before environment before file before defaults. */

import { existsSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { NexusError } from "@nexus-stream/protocol";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { EngineChoice, EngineSections } from "../../engine/engine.ts";
import { defined } from "../../std/defined.ts";
import type { Durability } from "../../std/sqlite/sqlite.ts";
import type { LogLevel } from "../observe/logger.ts";
import type { FileConfig } from "./config-schema.ts";

export interface RetentionConfig {
	ageDaysMax: number;
	totalBytesMax: number;
	sweepIntervalMs: number;
}

/** The keys that are there in any case, and what only a started daemon knows. */
interface CompletedConfig {
	host: string;
	port: number;
	/** Absolute. */
	data: string;
	allowedHosts: string[];
	trustedProxies: string[];
	/** Paths of engines and plugins are relative to this folder. */
	base: string;
	durability: Durability;
	/** How long a store that takes nothing is tried again: by a start, and by commits before what waits for them is given up. */
	storeRetryMsMax: number;
	stopDeadlineMs: number;
	retention: RetentionConfig;
	/** `keptDays`: events of the audit log that are older go. */
	audit: { keptDays: number };
	broker: NonNullable<FileConfig["broker"]>;
	edge: NonNullable<FileConfig["edge"]>;
	log: { level: LogLevel };
	/** The file that was read, if any. */
	file?: string;
}

/** `docs/configuration.md` explains every key. */
export type NexusConfig = CompletedConfig &
	EngineSections & { engine?: EngineChoice } & Omit<
		FileConfig,
		keyof CompletedConfig | keyof EngineSections | "engine"
	>;

/** A configuration with holes, as a file or a program that embeds the daemon gives it. */
export type PartialConfig = { [key in keyof FileConfig]?: FileConfig[key] | undefined } & {
	base?: string | undefined;
	file?: string | undefined;
};

/** The flags of the command line, all as text. */
export interface ConfigFlags {
	host?: string | undefined;
	port?: string | undefined;
	grpcPort?: string | undefined;
	data?: string | undefined;
	token?: string | undefined;
	config?: string | undefined;
}

export const CONFIG_DEFAULTS = {
	host: "127.0.0.1",
	port: 7777,
	data: "./.nexus",
	config: "./nexus.yaml",
	durability: "process",
	storeRetryMsMax: 30_000,
	stopDeadlineMs: 10_000,
	retention: { ageDaysMax: 30, totalBytesMax: 5 * 1024 ** 3, sweepIntervalMs: 10 * 60_000 },
	audit: { keptDays: 90 },
	log: { level: "info" },
} as const;

interface ConfigEnvironment {
	cwd: string;
	env: Readonly<Record<string, string | undefined>>;
}

/** Reads everything that configures a daemon. Rejects with `config` and says where the mistake is. */
export async function loadConfig(flags: ConfigFlags, source: ConfigEnvironment): Promise<NexusConfig> {
	const env = (name: string) => source.env[name] || undefined;
	refuseEmpty(flags);
	const file = configPath(flags.config ?? env("NEXUS_CONFIG"), source.cwd);
	// The parser and the schema are the slowest imports of a start; without a file they are not needed.
	const read: FileConfig =
		file === undefined ? {} : (await import("./config-file.ts")).readConfigFile(file, nameOf(file, source.cwd));
	const port = portNumber(flags.port, "--port") ?? portNumber(env("NEXUS_PORT"), "NEXUS_PORT") ?? read.port;
	const grpcPort =
		grpcPortNumber(flags.grpcPort, "--grpc-port") ??
		grpcPortNumber(env("NEXUS_GRPC_PORT"), "NEXUS_GRPC_PORT") ??
		read.grpc?.port;
	const grpc = grpcPort === undefined ? read.grpc : { ...read.grpc, port: grpcPort };
	const token = given(flags.token, "--token") ?? given(env("NEXUS_TOKEN"), "NEXUS_TOKEN") ?? read.token;
	const data = resolve(source.cwd, flags.data ?? env("NEXUS_DATA") ?? read.data ?? CONFIG_DEFAULTS.data);
	const base = file === undefined ? source.cwd : dirname(file);
	const host = flags.host ?? env("NEXUS_HOST") ?? read.host;
	const url = storeUrl(env("NEXUS_STORE"));
	const store = url === undefined ? read.store : { postgres: { ...withoutUrl(read.store?.postgres), url } };
	return completeConfig({ ...read, host, port, grpc, token, data, base, file, store });
}

/** Fills what was left out with the defaults. */
export function completeConfig(partial: PartialConfig): NexusConfig {
	const { base = process.cwd(), ...rest } = defined(partial);
	return {
		port: CONFIG_DEFAULTS.port,
		allowedHosts: [],
		trustedProxies: [],
		durability: CONFIG_DEFAULTS.durability,
		storeRetryMsMax: CONFIG_DEFAULTS.storeRetryMsMax,
		stopDeadlineMs: CONFIG_DEFAULTS.stopDeadlineMs,
		broker: {},
		edge: {},
		...rest,
		base,
		// An IPv6 address has brackets in URLs only.
		host: (partial.host ?? CONFIG_DEFAULTS.host).replace(/^\[(.*)\]$/, "$1"),
		data: resolve(partial.data ?? CONFIG_DEFAULTS.data),
		retention: withDefaults(CONFIG_DEFAULTS.retention, partial.retention),
		audit: withDefaults(CONFIG_DEFAULTS.audit, partial.audit),
		log: { level: partial.log?.level ?? CONFIG_DEFAULTS.log.level },
	};
}

/** `--data "$DIR"` with nothing in the variable would mean the working directory, `--host` every network. */
function refuseEmpty(flags: ConfigFlags): void {
	for (const [name, value] of Object.entries(flags))
		if (value === "") throw new NexusError("config", `--${flagName(name)} is empty: give it a value, or leave it out`);
}

const flagName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

/** A file that was asked for must exist; the default one may be absent. */
function configPath(asked: string | undefined, cwd: string): string | undefined {
	if (asked !== undefined) return resolve(cwd, asked);
	const usual = resolve(cwd, CONFIG_DEFAULTS.config);
	return existsSync(usual) ? usual : undefined;
}

/** As a person in this folder would call it. */
function nameOf(file: string, cwd: string): string {
	const seen = relative(cwd, file);
	return seen.startsWith("..") ? file : seen;
}

function portNumber(text: string | undefined, from: string): number | undefined {
	if (text === undefined) return undefined;
	const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
	if (port <= 65535) return port;
	throw new NexusError("config", `${from}: ${JSON.stringify(text)} is not a port; allowed: 0 (any free port) to 65535`);
}

const grpcPortNumber = (text: string | undefined, from: string): number | "off" | undefined =>
	text === "off" ? "off" : portNumber(text, from);

/** The text may hold a password, so it is not repeated. */
function storeUrl(text: string | undefined): string | undefined {
	if (text === undefined || /^postgres(?:ql)?:\/\/./.test(text)) return text;
	throw new NexusError("config", "NEXUS_STORE: allowed is an address such as postgres://user:password@host/database");
}

type PostgresSection = NonNullable<NonNullable<FileConfig["store"]>["postgres"]>;

/** The environment names another server than the file. */
const withoutUrl = ({ tls, pool }: PostgresSection = {}): PostgresSection => defined({ tls, pool });

function given(token: string | undefined, from: string): string | undefined {
	if (token === undefined) return undefined;
	if (/^[\x21-\x7e]+$/.test(token)) return token;
	throw new NexusError("config", `${from}: a token is made of visible ASCII characters without spaces`);
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/** A shorter token could be guessed from other machines. */
const TOKEN_CHARS_MIN = 16;

/** A token that a person chose is the least that should stand between the network and an agent with tools. */
export function requireTokenOnPublicHost({ host, token }: Pick<NexusConfig, "host" | "token">): void {
	if (LOOPBACK.test(host) || (token !== undefined && token.length >= TOKEN_CHARS_MIN)) return;
	const problem =
		token === undefined
			? `listening on ${host} makes this daemon reachable from other machines: set a token with --token, NEXUS_TOKEN or \`token:\` in nexus.yaml`
			: `a token of ${token.length} characters can be guessed, and ${host} makes this daemon reachable from other machines: use ${TOKEN_CHARS_MIN} characters or more`;
	throw new NexusError("config", `${problem} (for example from \`openssl rand -hex 32\`), or listen on 127.0.0.1`);
}
