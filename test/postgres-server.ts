/**
 * A PostgreSQL server for the tests of a run: started when the first test asks for it, as a user that is not root, with a socket and no
 * port. It ends with the run, also when that is killed.
 */

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { accessSync, chownSync, constants, globSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import pg from "pg";
import { until } from "./until.ts";

function isProgram(file: string): boolean {
	try {
		accessSync(file, constants.X_OK);
		return true;
	} catch {
		return false;
	}
}

/** The folder with the newest server's programs: Debian puts them outside of the PATH. */
export function postgresBin(): string | undefined {
	const folders = [
		process.env.PG_BIN ?? "",
		...(process.env.PATH ?? "").split(delimiter),
		...globSync("/usr/lib/postgresql/*/bin").sort().reverse(),
	];
	return folders.find(
		(folder) => folder !== "" && isProgram(join(folder, "initdb")) && isProgram(join(folder, "postgres")),
	);
}

const isRequired = !["", "0", "false", undefined].includes(process.env.CI);

/** False where the tests on PostgreSQL are skipped. With CI they fail instead. */
export const hasPostgres = postgresBin() !== undefined || isRequired;

export const MISSING = "skipped: no PostgreSQL found. Install it, for example: sudo apt-get install postgresql";

/** initdb refuses to run as root. */
function userForServer(): { uid?: number; gid?: number } {
	if (process.getuid?.() !== 0) return {};
	for (const name of ["postgres", "nobody"]) {
		try {
			const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, name], { stdio: "pipe" })));
			return { uid: uid!, gid: gid! };
		} catch {}
	}
	throw new Error("no user to run PostgreSQL as: run the tests as a user that is not root");
}

const SETTINGS = {
	listen_addresses: "",
	fsync: "off",
	full_page_writes: "off",
	shared_buffers: "32MB",
	max_connections: "200",
	max_wal_size: "256MB",
	autovacuum_naptime: "60s",
};

/** Ends the server and removes its files when its input ends, however the process that holds the other end did. */
const WATCH = '"$0" -D "$1/data" -k "$1" & server=$!; cat > /dev/null; kill -QUIT $server; wait $server; rm -rf "$1"';

const FOLDERS = join(tmpdir(), "nexus-pg-");

export interface PostgresServer {
	/** The folder with its socket. */
	folder: string;
	url(database: string): string;
	/** Ends the server as if its machine had lost power, and starts it again on the same files. */
	restart(): Promise<void>;
	stop(): Promise<void>;
}

export const urlIn = (folder: string, database: string): string =>
	`postgres://postgres@${encodeURIComponent(folder)}:5432/${database}`;

export async function startPostgres(folder = mkdtempSync(FOLDERS)): Promise<PostgresServer> {
	const bin = postgresBin();
	if (bin === undefined) throw new Error(MISSING);
	const user = userForServer();
	if (user.uid !== undefined) chownSync(folder, user.uid, user.gid!);
	const data = join(folder, "data");
	const init = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"];
	execFileSync(join(bin, "initdb"), init, { ...user, cwd: folder, stdio: "pipe" });
	const lines = Object.entries(SETTINGS).map(([name, value]) => `${name} = '${value}'\n`);
	writeFileSync(join(data, "postgresql.auto.conf"), lines.join(""));
	const start = async (): Promise<ChildProcess> => {
		const log = openSync(join(folder, "server.log"), "a");
		const child = spawn("sh", ["-c", WATCH, join(bin, "postgres"), folder], {
			...user,
			cwd: folder,
			// A signal for all processes of the run is not for this one: it has to end the server.
			detached: true,
			stdio: ["pipe", log, log],
		});
		await until("the PostgreSQL server", () =>
			asked(urlIn(folder, "postgres"), "SELECT 1").then(
				() => true,
				() => false,
			),
		);
		return child;
	};
	let child = await start();
	const ended = () => new Promise<void>((resolve) => child.once("exit", () => resolve()));
	return {
		folder,
		url: (database) => urlIn(folder, database),
		async restart() {
			const pid = execFileSync("head", ["-1", join(data, "postmaster.pid")], { encoding: "utf8" }).trim();
			process.kill(Number(pid), "SIGQUIT");
			await until("the end of the server", () => !isAlive(Number(pid)));
			child = await start();
		},
		async stop() {
			const end = ended();
			child.stdin!.end();
			await end;
			rmSync(folder, { recursive: true, force: true });
		},
	};
}

function isAlive(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

/** Runs statements on a connection of their own. */
export async function asked(url: string, ...statements: string[]): Promise<Record<string, unknown>[]> {
	const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 });
	client.on("error", () => {});
	try {
		await client.connect();
		let rows: Record<string, unknown>[] = [];
		for (const statement of statements) ({ rows } = await client.query(statement));
		return rows;
	} finally {
		await client.end().catch(() => {});
	}
}

/** The path of a socket that answers with the folder of the server; asking starts it. */
export const DOOR = "NEXUS_TEST_POSTGRES";
/** Asks the caller to make the template and to say when it is there. */
export const MAKE = "make ";

/** Before the tests of a run, in the process that outlives all of them. */
export default function setup(): (() => Promise<void>) | undefined {
	if (process.env[DOOR] !== undefined || postgresBin() === undefined) return undefined;
	const own = mkdtempSync(FOLDERS);
	const path = join(own, "door");
	let starting: Promise<PostgresServer> | undefined;
	let hasTemplate = false;
	/** One caller after another: the first one makes the template. */
	const answer = async (socket: Socket) => {
		starting ??= startPostgres(own);
		const { folder } = await starting;
		if (hasTemplate) {
			socket.end(folder);
			return;
		}
		socket.write(`${MAKE}${folder}`);
		hasTemplate = (await text(socket)) !== "";
		socket.end();
	};
	let last: Promise<unknown> = Promise.resolve();
	const door = createServer({ allowHalfOpen: true }, (socket) => {
		socket.on("error", () => {});
		last = last.then(() => answer(socket)).catch((cause: unknown) => socket.end(`failed: ${String(cause)}`));
	});
	door.listen(path).unref();
	process.env[DOOR] = path;
	return async () => {
		delete process.env[DOOR];
		door.close();
		await starting?.then((server) => server.stop());
		rmSync(own, { recursive: true, force: true });
	};
}
