/** Every key of `nexus.yaml`: its type, its default in words, and what is allowed there. Loaded only when there is a file to check. */

import { type GuardRules, isAddressBlock, isAllowEntry } from "@nexus-stream/adapter/net/address-guard";
import { z } from "zod";
import type { BROKER_LIMITS } from "../../broker/broker.ts";
import type { EdgeLimits } from "../../edge/edge.ts";
import {
	ENGINES,
	type EngineChoice,
	type EngineSections,
	sharedSchemas,
	type ToolsConfig,
} from "../../engine/engine.ts";
import type { InboxLimits } from "../../nex/nex.ts";
import type { ArtifactLimits } from "../../services/artifacts/limits.ts";
import type { JobLimits } from "../../services/jobs/port.ts";
import type { QuotaLimits } from "../../services/kit/quota.ts";
import type { MemoryConfig } from "../../services/memory/memory.ts";
import * as words from "../../std/config-words.ts";
import { approvals, channels, plugins, sessions } from "./channels-schema.ts";

const { byTool, bytes, count, flag, group, httpUrl, matching, ms, oneOf, say, text, watchdog } = words;

/** Named here again so that a client that reads the file need not load the parts; the types keep the lists the same. */
const brokerLimits = {
	textCharsMax: count,
	idempotencyKeyCharsMax: count,
	queueMessagesMax: count,
	runsMax: count,
	queuedStaleMs: ms,
	contextTokensMax: count,
	contextTurnsMax: count,
	historyCharsMax: count,
	chunkBytesMax: bytes,
	toolJsonCharsMax: count,
	reasoningCharsMax: say(z.int().min(0), "a whole number of characters, or 0 to keep none"),
	signedReasoningCharsMax: say(z.int().min(0), "a whole number of characters, or 0 to keep none"),
	toolContentCharsMax: say(z.int().min(0), "a whole number of characters, or 0 to keep none"),
	checkpointBytesMax: bytes,
	executionEntriesMax: count,
	executionCharsMax: count,
	abortGraceMs: ms,
	firstTokenMs: watchdog,
	interTokenMs: watchdog,
	totalMs: watchdog,
	toolMs: watchdog,
} satisfies Record<keyof (typeof BROKER_LIMITS & InboxLimits), z.ZodType>;

const edgeLimits = {
	bodyBytesMax: bytes,
	bodyValuesMax: count,
	bodyDepthMax: count,
	webhookBodyBytesMax: say(
		z.int().positive().max(3_000_000),
		"a whole number of bytes from 1 to 3000000, which one line to an adapter can hold",
	),
	webhookRequestsMax: count,
	webhookRequestsPerAccountMax: count,
	webhookRequestsPerClientMax: count,
	webhookBytesMax: bytes,
	webhookBytesPerAccountMax: bytes,
	webhookBytesPerClientMax: bytes,
	webhookBodyTimeoutMs: ms,
	headersBytesMax: bytes,
	connectionsMax: count,
	connectionsPerClientMax: count,
	streamsMax: count,
	streamsPerAppMax: count,
	streamsTokenlessMax: count,
	tokenlessRequestsMax: count,
	tokenlessRequestsPerClientMax: count,
	tokenlessBodyBytesMax: bytes,
	tokenlessBodyTimeoutMs: ms,
	tokenlessHeadersBytesMax: bytes,
	tokenlessCallsPerSecondMax: count,
	tokenlessRefusedMs: ms,
	tokenlessConnectionsMax: count,
	tokenlessConnectionsPerClientMax: count,
	tokenFailuresPerMinuteMax: count,
	tokenFailureDelayMs: ms,
	grpcReadBytesMax: bytes,
	grpcWriteBytesMax: bytes,
	grpcStreamsPerConnectionMax: count,
	grpcResetsPerSecondMax: count,
	headersTimeoutMs: ms,
	requestTimeoutMs: ms,
	keepAliveMs: ms,
	heartbeatMs: ms,
	stalledReaderMs: ms,
	flushMsMax: say(
		z.int().min(0).max(10_000),
		"a whole number of milliseconds up to 10000, or 0 to send every record at once",
	),
	wsMessageBytesMax: bytes,
	wsSubscriptionsMax: count,
	wsBufferedBytesMax: bytes,
	signInCodeMs: ms,
	signInCodesMax: count,
	signInFailuresPerMinuteMax: count,
	signedInMs: ms,
	listItemsMax: count,
	framesMax: count,
} satisfies Record<keyof EdgeLimits, z.ZodType>;

/** A lease below a second would lapse during a pause of the event loop. */
const cluster = group({ leaseMs: say(z.int().min(1000), "a whole number of milliseconds from 1000") });

const apps = group({ bytesPerAppMax: bytes } satisfies Record<keyof QuotaLimits, z.ZodType>);

const jobs = group({
	runningMax: count,
	runningPerAppMax: count,
	queuedMax: count,
	queuedPerAppMax: count,
	attemptsMax: count,
	backoffMsMax: ms,
	cancelGraceMs: ms,
	progressMs: ms,
	inlineBytesMax: bytes,
	audioBytesMax: bytes,
} satisfies Record<keyof JobLimits, z.ZodType>);

const artifacts = group({
	artifactBytesMax: bytes,
	bytesPerAppMax: bytes,
	bytesMax: bytes,
	countPerAppMax: count,
	uploadsMax: count,
	uploadsPerAppMax: count,
	ageMsMax: ms,
	transferIdleMs: ms,
	uploadIdleMs: ms,
} satisfies Record<keyof ArtifactLimits, z.ZodType>);

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/);

const bash = group({
	enabled: flag,
	wrapper: say(z.array(z.string().min(1)).min(1), "a list: a program that confines the shell, and its arguments"),
	env: say(z.array(variable), "a list of names of environment variables that commands may see"),
	outputBytesMax: bytes,
} satisfies Record<keyof NonNullable<ToolsConfig["bash"]>, z.ZodType>);

const tools = group({
	root: text("a folder; relative to this file"),
	fileBytesMax: bytes,
	bash,
	describe: byTool(z.string().min(1), "a map from tools to texts in which {name} stands for an argument"),
	priority: byTool(z.int(), "a map from tools to whole numbers; higher starts earlier, and 0 is the default"),
} satisfies Record<keyof ToolsConfig, z.ZodType>);

const memory = group({
	enabled: flag,
	itemsMax: count,
	itemsTotalMax: count,
	charsMax: say(z.int().positive(), "a whole number of characters above 0"),
	recallItemsMax: count,
} satisfies Record<keyof MemoryConfig, z.ZodType>);

const connectors = group({
	allow: say(
		z.array(z.string().refine(isAllowEntry)),
		"a list of hosts with their ports and of CIDR blocks, such as models.lan:11434 or 10.0.0.0/8",
	),
	allowLoopback: flag,
	inlineApps: say(z.array(z.string().min(1)), "a list of applications, such as [shop]"),
} satisfies Record<keyof GuardRules | "inlineApps", z.ZodType>);

const grpc = group({
	port: say(
		z.union([z.int().min(0).max(65535), z.literal("off")]),
		"a whole number from 0 (any free port) to 65535, or off",
	),
	cert: text("a PEM file with the certificate and its chain"),
	key: text("a PEM file with the private key of grpc.cert"),
	jwt: group({
		issuer: text("the `iss` of user tokens"),
		audience: text("the `aud` of user tokens"),
		jwksFile: text("a JSON Web Key Set with the issuer's public keys"),
		secretFile: text("a file with a shared secret of at least 32 bytes"),
		algorithms: say(z.array(z.string().min(1)).min(1), "a list such as [RS256], or [HS256] for a shared secret"),
	}),
});

const postgresUrl = matching(/^postgres(?:ql)?:\/\/./, "an address such as postgres://user:password@host/database");

/** Where everything is stored. Left out: in the data directory. */
const store = group({
	postgres: group({
		url: postgresUrl,
		urlFile: text("a file that holds the address; relative to the configuration file"),
		listenUrl: postgresUrl,
		tls: group({ ca: text("a file with the certificate of the authority that signed the server's"), verify: flag }),
		pool: say(z.int().min(1).max(100), "a whole number of connections for reads, from 1 to 100"),
	}),
});

type SectionShape = {
	[S in keyof EngineSections]-?: z.ZodExactOptional<z.ZodType<NonNullable<EngineSections[S]>>>;
};

/** Each engine's own section, checked by its own schema. */
const sectionsOf = (engines: typeof ENGINES): SectionShape =>
	Object.fromEntries(
		engines.flatMap(({ section, configSchema }) =>
			section !== undefined && configSchema !== undefined ? [[section, configSchema(words)]] : [],
		),
	) as SectionShape;

export const configSchemaFor = (engines: typeof ENGINES) =>
	z.strictObject({
		host: text("a host name or an IP address, such as 127.0.0.1"),
		port: say(z.int().min(0).max(65535), "a whole number from 0 (any free port) to 65535"),
		grpc,
		cluster,
		data: text("a folder; relative to the working directory"),
		token: matching(/^[\x21-\x7e]+$/, "a text of visible ASCII characters without spaces; digits alone in quotes"),
		allowedHosts: say(z.array(z.string().min(1)), "a list of host names that a browser may use for this daemon"),
		trustedProxies: say(
			z.array(z.string().refine(isAddressBlock)),
			"a list of IP addresses and CIDR blocks of reverse proxies, such as 127.0.0.1 or 10.0.0.0/8",
		),
		engine: say(
			z.union([
				z.enum(engines.map(({ name }) => name as Extract<EngineChoice, string>)),
				z.strictObject({ module: z.string().min(1) }),
			]),
			`${engines.map(({ name }) => name).join(", ")}, or { module: ./my-agent.ts }`,
		),
		...sectionsOf(engines),
		...sharedSchemas(words),
		durability: oneOf(["process", "power"]),
		store,
		storeRetryMsMax: ms,
		stopDeadlineMs: ms,
		retention: group({
			ageDaysMax: say(z.number().positive(), "a number of days above 0"),
			totalBytesMax: bytes,
			sweepIntervalMs: ms,
		}),
		audit: group({ keptDays: say(z.number().positive(), "a number of days above 0") }),
		broker: group(brokerLimits),
		execution: group({ arguments: flag }),
		otel: group({ endpoint: httpUrl("an http or https address of an OTLP receiver"), arguments: flag, flushMs: ms }),
		edge: group(edgeLimits),
		approvals,
		channels,
		sessions,
		plugins,
		tools,
		memory,
		connectors,
		apps,
		jobs,
		artifacts,
		log: group({ level: oneOf(["debug", "info", "warn", "error", "silent"]) }),
	});

export const configSchema = configSchemaFor(ENGINES);

export type FileConfig = z.infer<typeof configSchema>;

/** The values that a path allows, and the keys of a map there. */
export function schemaAt(root: z.ZodType, path: readonly PropertyKey[]): { allowed?: string; keys: string[] } {
	let schema = root;
	let allowed: string | undefined;
	for (const key of path) {
		const shape: Record<string, z.ZodType> = schema instanceof z.ZodObject ? schema.shape : {};
		const next = schema instanceof z.ZodRecord ? (schema.valueType as z.ZodType) : shape[String(key)];
		if (!next) break;
		const said = next.meta()?.allowed;
		if (typeof said === "string") allowed = said;
		schema = next instanceof z.ZodExactOptional ? (next.unwrap() as z.ZodType) : next;
	}
	const keys = schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
	return { allowed, keys };
}
