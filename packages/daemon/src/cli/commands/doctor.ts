/** `nexus doctor`: what a daemon started here would need, looked at one by one, with what to do about it. */

import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import {
	chooseEngine,
	ENGINES,
	engineNamed,
	loadEngine,
	mcpProblems,
	sectionFor,
	unusedSettings,
} from "../../engine/engine.ts";
import {
	adapterCheck,
	type ConfigFlags,
	dataPaths,
	deepCheck,
	engineServicesModule,
	grpcCheck,
	isDataDirLocked,
	loadConfig,
	type NexusConfig,
	pageDir,
	readDaemonRecord,
	readToken,
	requireTokenOnPublicHost,
	secretKey,
	storeCheck,
} from "../../runtime/runtime.ts";
import { type CommandExit, type Declarations, type Local, onThisMachine } from "../command.ts";
import { configSourceOf, type Host } from "../host.ts";
import { oneLine, type Terminal } from "../terminal.ts";
import { agentsWithout } from "./doctor-agents.ts";

export const declare: Declarations = {
	doctor: (command, local) =>
		command
			.option("--json", "one JSON object a line")
			.option("--host <host>", "as for `nexus up`")
			.option("--port <port>", "as for `nexus up`")
			.option("--grpc-port <port>", "as for `nexus up`")
			.option("--data <dir>", "as for `nexus up`")
			.option("--token <token>", "as for `nexus up`")
			.option("--config <file>", "as for `nexus up`")
			.option("--deep", "read all of the database and look for damage, however large it is")
			.action(onThisMachine(local, doctor)),
};

export interface Finding {
	check: string;
	result: "ok" | "warn" | "fail";
	detail: string;
	/** The remedy, when there is something to do. */
	todo?: string;
}

type Seen = Omit<Finding, "check">;
type Check = [name: string, look: () => Promise<Seen>];

const NODE_MAJOR_MIN = 24;
const DISK_BYTES_MIN = 100 * 1024 ** 2;
const DISK_BYTES_COMFORTABLE = 1024 ** 3;
/** A database up to here is read through without being asked: it takes a second. */
const READ_THROUGH_BYTES_MAX = 32 * 1024 ** 2;
const PROBLEMS_SHOWN_MAX = 20;
/** A machine that is busy is slow to answer, not dead. */
const ANSWER_MS_MAX = 10_000;

const ok = (detail: string): Seen => ({ result: "ok", detail });
const warn = (detail: string, todo: string): Seen => ({ result: "warn", detail, todo });
const fail = (detail: string, todo: string): Seen => ({ result: "fail", detail, todo });

export async function doctor(
	{ host, terminal }: Local,
	options: ConfigFlags & { json?: boolean; deep?: boolean },
): CommandExit {
	const findings: Finding[] = [];
	const look = async (checks: Check[]) => {
		for (const [check, run] of checks) {
			const finding = { check, ...(await run().catch(unexpected)) };
			findings.push(finding);
			if (options.json) terminal.json(finding);
			else terminal.out(line(finding, terminal));
		}
	};
	let config: NexusConfig | undefined;
	await look([
		["node", async () => node()],
		[
			"config",
			async () => {
				config = await loadConfig(options, configSourceOf(host));
				requireTokenOnPublicHost(config);
				return ok(config.file ?? "no nexus.yaml: the defaults apply");
			},
		],
	]);
	// Only the configuration says which directory, port and engine are meant.
	if (config) {
		await look(checksOf(config, host.env, options.deep === true));
		await look(await accountChecks(config).catch((cause) => [["accounts", async () => unexpected(cause)]]));
	} else if (!options.json) terminal.out("      the other checks follow once the configuration is right\n");
	return findings.some((finding) => finding.result === "fail") ? 1 : 0;
}

const unexpected = (cause: unknown) =>
	fail(cause instanceof Error ? cause.message : String(cause), "correct this, then run it again");

/** As wide as what stands before a detail. */
const INDENT = " ".repeat(16);

function line({ check, result, detail, todo }: Finding, terminal: Terminal): string {
	const mark = terminal.paint(result === "ok" ? "green" : result === "warn" ? "yellow" : "red", result.padEnd(4));
	const lines = [...detail.trimEnd().split("\n"), ...(todo ? [`→ ${todo}`] : [])];
	return `${mark}  ${check.padEnd(8)}  ${lines.join(`\n${INDENT}`).replace(/ +$/gm, "")}\n`;
}

const checksOf = (config: NexusConfig, env: Host["env"], deep: boolean): Check[] => [
	["data", async () => dataDir(config)],
	["disk", async () => disk(config)],
	["database", () => database(config, deep)],
	["token", async () => token(config)],
	["secret", async () => secret(config, env)],
	["daemon", () => daemon(config)],
	["port", () => port(config)],
	["grpc", () => grpcPort(config)],
	["engine", () => engine(config, env)],
	["keys", async () => keys(config, env)],
	["tools", async () => tools(config, env)],
	...(config.agents ? [["agents", async () => agents(config)] satisfies Check] : []),
	["plugins", () => plugins(config)],
	["mcp", async () => mcp(config, env)],
	["page", async () => page()],
];

function node(): Seen {
	const { node } = process.versions;
	if (Number.parseInt(node, 10) >= NODE_MAJOR_MIN) return ok(`Node ${node}`);
	return fail(
		`Node ${node} is too old`,
		`use Node ${NODE_MAJOR_MIN} or newer; in the repository \`npm ci\` brings it along`,
	);
}

/** The directory itself, or the nearest one above it that exists. */
const standing = (dir: string): string => (existsSync(dir) || dirname(dir) === dir ? dir : standing(dirname(dir)));

function dataDir({ data }: NexusConfig): Seen {
	const dir = standing(data);
	if (!statSync(dir).isDirectory()) return fail(`${dir} is not a folder`, "choose another with --data");
	try {
		accessSync(dir, constants.R_OK | constants.W_OK | constants.X_OK);
	} catch {
		return fail(`${dir} is not writable for this user`, "change its owner or mode, or choose another with --data");
	}
	if (dir !== data) return ok(`${data} will be made`);
	const { mode, uid } = statSync(data);
	if (process.getuid && uid !== process.getuid())
		return warn(
			`${data} belongs to another user (uid ${uid})`,
			"start the daemon as that user, or choose another with --data",
		);
	if ((mode & 0o077) !== 0) return warn(`${data} can be entered by other users`, `chmod 700 ${data}`);
	return ok(data);
}

function disk({ data }: NexusConfig): Seen {
	const { bavail, bsize } = statfsSync(standing(data));
	const free = bavail * bsize;
	const detail = `${(free / 1024 ** 3).toFixed(1)} GiB free`;
	if (free < DISK_BYTES_MIN) return fail(detail, "free some space: a full disk stops all runs");
	if (free < DISK_BYTES_COMFORTABLE) return warn(detail, "free some space, or lower retention.totalBytesMax");
	return ok(detail);
}

async function database({ data }: NexusConfig, deep: boolean): Promise<Seen> {
	const { db: path, marker } = dataPaths(data);
	const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
	if (bytes === 0 && existsSync(marker))
		return fail(
			`${path} is empty or missing, but this directory has held data`,
			`restore it from a backup, or delete ${marker} to start empty`,
		);
	if (!existsSync(path)) return ok("none yet: the first start makes it");
	(await storeCheck()).checkStore(path);
	const size = `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
	if (!deep && bytes > READ_THROUGH_BYTES_MAX)
		return ok(`${size}; not read through, \`nexus doctor --deep\` looks for damage`);
	const { logs, problems } = (await deepCheck()).checkDeeply(path);
	if (problems.length === 0) return ok(`${size}, ${logs} ${logs === 1 ? "log" : "logs"} without damage`);
	const shown = problems.slice(0, PROBLEMS_SHOWN_MAX);
	const more = problems.length - shown.length;
	return fail(
		[`${size}, damaged:`, ...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("\n"),
		"restore the data directory from a backup; what is not damaged can still be read",
	);
}

function token(config: NexusConfig): Seen {
	if (config.token !== undefined) return ok("given by flag, environment or configuration");
	const paths = dataPaths(config.data);
	if (readToken(paths) === undefined) return ok("none yet: the first start makes one");
	if ((statSync(paths.token).mode & 0o077) !== 0)
		return fail(`${paths.token} can be read by other users`, `chmod 600 ${paths.token}, or delete it to get a new one`);
	return ok("kept in the data directory, readable by its owner only");
}

/** Without it the keys of connectors cannot be read. */
function secret({ data }: NexusConfig, env: Host["env"]): Seen {
	const paths = dataPaths(data);
	if (!secretKey(paths, env).read()) return ok("none yet: the first connector with a key makes one");
	if (env.NEXUS_SECRET_KEY?.trim()) return ok("given by NEXUS_SECRET_KEY");
	if ((statSync(paths.secret).mode & 0o077) !== 0)
		return fail(`${paths.secret} can be read by other users`, `chmod 600 ${paths.secret}`);
	return ok("kept in the data directory; `nexus connector test` asks the providers");
}

async function daemon({ data }: NexusConfig): Promise<Seen> {
	const paths = dataPaths(data);
	const record = readDaemonRecord(paths);
	if (!isDataDirLocked(paths))
		return ok(
			record ? "not running; it ended without a stop, and the next start settles what was live" : "not running",
		);
	if (!record) return warn("a process holds the data directory but is not ready", "wait a moment, then run this again");
	try {
		const response = await fetch(`${record.url}/readyz`, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
		if (response.ok) return ok(`running at ${record.url} (pid ${record.pid})`);
		return warn(
			`${record.url} answers ${response.status}`,
			`see its log (pid ${record.pid}): ${(await response.text()).slice(0, 200)}`,
		);
	} catch (cause) {
		return fail(
			`pid ${record.pid} does not answer at ${record.url} (${String(cause)})`,
			"see its log, or stop it and start again",
		);
	}
}

async function port({ host, port, data }: NexusConfig): Promise<Seen> {
	if (port === 0) return ok("any free one");
	const paths = dataPaths(data);
	const ours = isDataDirLocked(paths) ? readDaemonRecord(paths)?.url : undefined;
	if (ours !== undefined) {
		const { port: used } = new URL(ours);
		return ok(`${used}, used by the running daemon${Number(used) === port ? "" : ` (configured: ${port})`}`);
	}
	return listenable(host, port, "--port");
}

async function listenable(host: string, port: number, flag: string): Promise<Seen> {
	const server = createServer();
	const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | undefined>();
	server.once("error", resolve);
	server.listen(port, host, () => server.close(() => resolve(undefined)));
	const trouble = await promise;
	if (!trouble) return ok(`${port} is free on ${host}`);
	if (trouble.code === "EADDRINUSE")
		return fail(`${port} is in use on ${host}`, `stop the program that uses it, or choose another with ${flag}`);
	return fail(`cannot listen on ${host}:${port} (${trouble.code})`, `choose another with --host and ${flag}`);
}

/** The default one gives way when it is in use: only a port that was asked for can be a problem. */
async function grpcPort(config: NexusConfig): Promise<Seen> {
	const { grpc: { port } = {}, host, data } = config;
	if (port === "off") return ok("off");
	await (await grpcCheck()).readTls(config);
	const paths = dataPaths(data);
	const ours = isDataDirLocked(paths) ? readDaemonRecord(paths)?.grpc : undefined;
	if (ours !== undefined) return ok(`${new URL(ours).port}, used by the running daemon`);
	if (port === undefined) return ok("the one after the main port, or a free one");
	return port === 0 ? ok("any free one") : listenable(host, port, "--grpc-port");
}

async function engine(config: NexusConfig, env: Host["env"]): Promise<Seen> {
	const chosen = chooseEngine(config.engine, config, env);
	const services = (await engineServicesModule()).createEngineServices(config, { warn: () => {} });
	const loaded = await loadEngine(chosen, { base: config.base, env, config, services });
	await loaded.close?.();
	const because = typeof chosen === "object" ? undefined : engineNamed(chosen)?.because;
	return ok(config.engine === undefined && because !== undefined ? `${loaded.name} (${because})` : loaded.name);
}

function keys(config: NexusConfig, env: Host["env"]): Seen {
	const chosen = chooseEngine(config.engine, config, env);
	if (typeof chosen === "object") return ok("managed by your module");
	const entry = engineNamed(chosen);
	if (entry?.checkKeys === undefined) {
		const hints = new Set(ENGINES.flatMap(({ hint }) => hint ?? []));
		return ok([`none: the ${chosen} engine needs none`, ...hints].join("; "));
	}
	const { ok: set, detail, todo = "" } = entry.checkKeys(sectionFor(entry, config), env);
	return set ? ok(detail) : fail(detail, todo);
}

/** Whether commands of agents are confined. Whether the folder may be used, the engine says. */
function tools(config: NexusConfig, env: Host["env"]): Seen {
	const unused = unusedOf(config, env, "tools.");
	if (unused) return unused;
	const { tools: { root, bash } = {}, pi } = config;
	if (chooseEngine(config.engine, config, env) === "pi-coding-agent") {
		const place = `files below ${pi?.filesRoot ?? "the daemon's folder"}, and all that this user may for the owner`;
		return bash?.enabled === false ? ok(`${place}; no commands`) : commands(place, bash?.wrapper, env);
	}
	if (root === undefined) return ok("no folder: agents reach no files");
	return bash?.enabled ? commands(`files below ${root}`, bash.wrapper, env) : ok(`files below ${root}, no commands`);
}

function commands(place: string, [wrapper]: readonly string[] = [], env: Host["env"]): Seen {
	if (wrapper === undefined)
		return warn(
			"commands run without a wrapper: an approved one may do whatever this user may",
			"confine them with tools.bash.wrapper, such as bwrap; see docs/tools.md",
		);
	const places = wrapper.includes("/") ? [wrapper] : (env.PATH ?? "").split(":").map((dir) => `${dir}/${wrapper}`);
	if (places.some(isExecutable)) return ok(`${place}, commands in ${wrapper}`);
	return fail(`${wrapper} of tools.bash.wrapper was not found`, "install it, or correct tools.bash.wrapper");
}

/** A setting without an effect must not look as if it had one. */
function unusedOf(config: NexusConfig, env: Host["env"], below: string): Seen | undefined {
	const chosen = chooseEngine(config.engine, config, env);
	const unused = unusedSettings(chosen, config).filter((path) => path.startsWith(below));
	if (unused.length === 0) return undefined;
	const name = typeof chosen === "object" ? chosen.module : chosen;
	return warn(`the engine ${name} does not use ${unused.join(", ")}`, "set `engine: reason-act`, or remove it");
}

function agents(config: NexusConfig): Seen {
	const without = agentsWithout(config);
	if (without.length === 0) return ok(Object.keys(config.agents ?? {}).join(", "));
	return warn(without.join("\n"), "switch it on, or take it off the agent's `tools`");
}

function isExecutable(path: string): boolean {
	try {
		accessSync(path, constants.X_OK);
		return true;
	} catch {
		return false;
	}
}

async function plugins({ plugins: modules = [], base }: NexusConfig): Promise<Seen> {
	if (modules.length === 0) return ok("none");
	const { loadPlugins } = await import("../../nex/nex.ts");
	const loaded = await loadPlugins(modules, base);
	return ok(loaded.map(({ name }) => name).join(", "));
}

/** Without starting a server: it may act as soon as it runs. */
function mcp(config: NexusConfig, env: Host["env"]): Seen {
	const { mcp: section, base } = config;
	const names = Object.keys(section?.servers ?? {});
	if (section === undefined || names.length === 0) return ok("no servers");
	const problems = mcpProblems(section, env, base).map(({ server, problem }) => `${server}: ${problem}`);
	if (problems.length > 0) return fail(problems.join("\n"), "correct it in `mcp.servers`, or set what is missing");
	const found = ok(`${names.join(", ")}; \`nexus mcp --start\` tries them`);
	// The demo is what runs until there is a model: then it is another engine's turn.
	if (chooseEngine(config.engine, config, env) === "demo") return found;
	return unusedOf(config, env, "mcp") ?? found;
}

function page(): Seen {
	return pageDir() === undefined ? warn("the page is not built", "npm run build:web") : ok("built");
}

/** One for each account: whether its settings are complete, and whether the platform takes them. */
async function accountChecks(config: NexusConfig): Promise<Check[]> {
	const { accountsOf, askAdapter, checkAccount, idleOf } = await adapterCheck();
	const accounts = accountsOf(config);
	const idle = idleOf(config).map(
		({ channel, todo }): Check => [
			"account",
			async () => warn(`${channel} has an adapter and no account, so it is not started`, todo),
		],
	);
	if (accounts.length === 0 && idle.length === 0)
		return [["accounts", async () => ok("none; `nexus adapter add telegram` adds one")]];
	const checks = accounts.map(
		({ channel, account, settings }): Check => [
			"account",
			async () => {
				const name = `${channel}/${account}`;
				const { appliesTo } = await import("@nexus-stream/adapter/host");
				const inFile = config.channels?.[channel]?.accounts?.[account] !== undefined;
				const add = `nexus adapter add ${channel}${account === "main" ? "" : ` --account ${account}`}`;
				const todo = inFile ? `correct it in ${config.file}` : `add it again with \`${add}\``;
				const { settings: wanted } = await askAdapter(config, channel);
				const needed = wanted.filter((each) => each.required && appliesTo(each, wanted, settings));
				const missing = needed.filter((each) => !settings[each.name] && !each.default).map((each) => each.name);
				if (missing.length > 0) return fail(`${name} lacks ${missing.join(", ")}`, todo);
				const { ok: works, detail } = await checkAccount(config, { channel, account, settings });
				return works ? ok(`${name}: ${oneLine(detail, 500)}`) : fail(`${name}: ${oneLine(detail, 500)}`, todo);
			},
		],
	);
	return [...idle, ...checks];
}
