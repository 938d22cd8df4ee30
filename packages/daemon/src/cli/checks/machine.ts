/** Checks of the machine, the data directory and the ports. */

import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { silentLog } from "@nexus-stream/protocol/log";
import {
	databaseCheck,
	dataPaths,
	grpcCheck,
	isDataDirLocked,
	type NexusConfig,
	pageDir,
	readDaemonRecord,
	readToken,
	secretKey,
	storeCheck,
} from "../../runtime/runtime.ts";
import type { Host } from "../host.ts";
import { fail, ok, type Seen, warn } from "./finding.ts";

const NODE_MAJOR_MIN = 24;
const DISK_BYTES_MIN = 100 * 1024 ** 2;
const DISK_BYTES_COMFORTABLE = 1024 ** 3;
/** A database up to here is read through without being asked: it takes a second. */
const READ_THROUGH_BYTES_MAX = 32 * 1024 ** 2;
const PROBLEMS_SHOWN_MAX = 20;
/** A machine that is busy is slow to answer, not dead. */
const ANSWER_MS_MAX = 10_000;

export function node(): Seen {
	const { node } = process.versions;
	if (Number.parseInt(node, 10) >= NODE_MAJOR_MIN) return ok(`Node ${node}`);
	return fail(
		`Node ${node} is too old`,
		`use Node ${NODE_MAJOR_MIN} or newer; in the repository \`npm ci\` brings it along`,
	);
}

/** The directory itself, or the nearest one above it that exists. */
const standing = (dir: string): string => (existsSync(dir) || dirname(dir) === dir ? dir : standing(dirname(dir)));

export function dataDir({ data }: NexusConfig): Seen {
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

export function disk({ data }: NexusConfig): Seen {
	const { bavail, bsize } = statfsSync(standing(data));
	const free = bavail * bsize;
	const detail = `${(free / 1024 ** 3).toFixed(1)} GiB free`;
	if (free < DISK_BYTES_MIN) return fail(detail, "free some space: a full disk stops all runs");
	if (free < DISK_BYTES_COMFORTABLE) return warn(detail, "free some space, or lower retention.totalBytesMax");
	return ok(detail);
}

/** Beyond it, times that people read are wrong; leases are counted by the server alone. */
const CLOCK_DIFFERENCE_MS_MAX = 1000;
const ANSWER_MS_COMFORTABLE = 20;

async function server({ store, base }: NexusConfig): Promise<Seen> {
	const { at, version, answerMs, aheadMs, areas } = await (await databaseCheck()).checkDatabase(
		store!.postgres!,
		base,
		silentLog,
	);
	const schema = areas.size === 0 ? "empty: the first start makes its tables" : `${areas.size} areas`;
	const times = `answers in ${answerMs.toFixed(1)} ms, its clock differs by ${Math.abs(aheadMs)} ms`;
	const detail = `${at}: PostgreSQL ${version}, ${schema}, ${times}`;
	if (Math.abs(aheadMs) > CLOCK_DIFFERENCE_MS_MAX)
		return warn(detail, "set the clocks of both machines by the same time server");
	if (answerMs > ANSWER_MS_COMFORTABLE)
		return warn(detail, "run the daemon near its database: every commit waits so long");
	return ok(detail);
}

export async function database(config: NexusConfig, deep: boolean): Promise<Seen> {
	if (config.store?.postgres) return server(config);
	const { data } = config;
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
	const { logs, problems } = (await storeCheck()).checkDeeply(path);
	if (problems.length === 0) return ok(`${size}, ${logs} ${logs === 1 ? "log" : "logs"} without damage`);
	const shown = problems.slice(0, PROBLEMS_SHOWN_MAX);
	const more = problems.length - shown.length;
	return fail(
		[`${size}, damaged:`, ...shown, ...(more > 0 ? [`and ${more} more`] : [])].join("\n"),
		"restore the data directory from a backup; what is not damaged can still be read",
	);
}

export function token(config: NexusConfig): Seen {
	if (config.token !== undefined) return ok("given by flag, environment or configuration");
	const paths = dataPaths(config.data);
	if (readToken(paths) === undefined) return ok("none yet: the first start makes one");
	if ((statSync(paths.token).mode & 0o077) !== 0)
		return fail(`${paths.token} can be read by other users`, `chmod 600 ${paths.token}, or delete it to get a new one`);
	return ok("kept in the data directory, readable by its owner only");
}

/** Without it the keys of connectors cannot be read. */
export function secret({ data }: NexusConfig, env: Host["env"]): Seen {
	const paths = dataPaths(data);
	if (!secretKey(paths, env).read()) return ok("none yet: the first connector with a key makes one");
	if (env.NEXUS_SECRET_KEY?.trim()) return ok("given by NEXUS_SECRET_KEY");
	if ((statSync(paths.secret).mode & 0o077) !== 0)
		return fail(`${paths.secret} can be read by other users`, `chmod 600 ${paths.secret}`);
	return ok("kept in the data directory; `nexus connector test` asks the providers");
}

export async function daemon({ data }: NexusConfig): Promise<Seen> {
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

export async function port({ host, port, data }: NexusConfig): Promise<Seen> {
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
export async function grpcPort(config: NexusConfig): Promise<Seen> {
	const { grpc: { port } = {}, host, data } = config;
	if (port === "off") return ok("off");
	await (await grpcCheck()).readTls(config);
	const paths = dataPaths(data);
	const ours = isDataDirLocked(paths) ? readDaemonRecord(paths)?.grpc : undefined;
	if (ours !== undefined) return ok(`${new URL(ours).port}, used by the running daemon`);
	if (port === undefined) return ok("the one after the main port, or a free one");
	return port === 0 ? ok("any free one") : listenable(host, port, "--grpc-port");
}

export function page(): Seen {
	return pageDir() === undefined ? warn("the page is not built", "npm run build:web") : ok("built");
}
