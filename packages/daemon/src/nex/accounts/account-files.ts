/** Where an account's files are: its settings for the adapter (0600), the adapter's own memory, and the processes that were started for it. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { signalGroup } from "../../std/process-group.ts";

export interface AccountFiles {
	/** What an adapter process finds in its environment. */
	env: Record<string, string>;
	/** Remembers a process, so that it is ended should it outlive the daemon. */
	onSpawn(verb: string, pid: number): void;
}

/** Names of channels and accounts become names of files. */
const safe = (name: string): string => encodeURIComponent(name).replaceAll(".", "%2E");

const folderOf = (dataDir: string): string => join(dataDir, "adapters");

export function prepareAccountFiles(
	dataDir: string,
	channel: string,
	id: string,
	settings: Record<string, string>,
): AccountFiles {
	const folder = join(folderOf(dataDir), safe(channel), safe(id));
	mkdirSync(folder, { recursive: true, mode: 0o700 });
	const account = join(folder, "account.json");
	// Removed first: the mode of an existing file would stay what it was.
	rmSync(account, { force: true });
	writeFileSync(account, JSON.stringify({ id, settings }), { mode: 0o600 });
	return {
		env: { ...inherited(process.env), NEXUS_ACCOUNT_FILE: account, NEXUS_STATE_FILE: join(folder, "state.json") },
		onSpawn: (verb, pid) => note(folder, verb, pid),
	};
}

function note(folder: string, verb: string, pid: number): void {
	const begun = beginningOf(pid);
	if (begun !== undefined) writeFileSync(join(folder, `${safe(verb)}.pid`), `${pid} ${begun}`, { mode: 0o600 });
}

/** As `onSpawn`, for a verb of the channel as a whole. */
export function noteChannelProcess(dataDir: string, channel: string, verb: string): (pid: number) => void {
	return (pid) => {
		const folder = join(folderOf(dataDir), safe(channel));
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		note(folder, verb, pid);
	};
}

/** The adapter's copy of the settings, secrets included; what it remembers stays. */
export function forgetSettings(dataDir: string, channel: string, id: string): void {
	rmSync(join(folderOf(dataDir), safe(channel), safe(id), "account.json"), { force: true });
}

/** What programs in general need; the daemon's own keys and tokens are none of an adapter's business. */
const INHERITED =
	/^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|TEMP|TMP|SHELL|NODE_.*|PYTHON.*|SSL_CERT_.*|(https?|no|all)_proxy|SystemRoot|ComSpec|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE)$/i;

export const inherited = (env: NodeJS.ProcessEnv): Record<string, string> =>
	Object.fromEntries(
		Object.entries(env).filter(
			(entry): entry is [string, string] => entry[1] !== undefined && INHERITED.test(entry[0]),
		),
	);

/** Ends processes of a daemon that was killed: an old one that still edits would undo what a new one writes (I7). Returns their pids. */
export function endOrphanedProcesses(dataDir: string): number[] {
	const ended: number[] = [];
	let files: string[];
	try {
		files = readdirSync(folderOf(dataDir), { recursive: true, encoding: "utf8" });
	} catch (cause) {
		if ((cause as NodeJS.ErrnoException).code === "ENOENT") return ended;
		throw cause;
	}
	for (const name of files.filter((file) => file.endsWith(".pid"))) {
		const path = join(folderOf(dataDir), name);
		const [pid = 0, begun] = readFileSync(path, "utf8").split(" ").map(Number);
		const beginning = pid > 0 ? beginningOf(pid) : undefined;
		// A pid is used again: the same process also began at the same time.
		if (beginning !== undefined && beginning === begun) {
			kill(pid);
			signalGroup(pid, "SIGKILL");
			ended.push(pid);
		} else if (pid > 0 && beginning === undefined) ended.push(...endOrphans(pid, dirname(path)));
		rmSync(path);
	}
	return ended;
}

/** What a process that has ended left behind: still of its group, and given this account's settings. */
function endOrphans(leader: number, folder: string): number[] {
	const account = `NEXUS_ACCOUNT_FILE=${join(folder, "account.json")}`;
	const orphans = pidsOf(leader).filter((pid) => readProc(pid, "environ")?.split("\0").includes(account));
	for (const pid of orphans) kill(pid);
	return orphans;
}

function kill(pid: number): void {
	try {
		process.kill(pid, "SIGKILL");
	} catch (cause) {
		// It has ended meanwhile.
		if ((cause as NodeJS.ErrnoException).code !== "ESRCH") throw cause;
	}
}

/** Of a group; none where there is no /proc. */
function pidsOf(group: number): number[] {
	try {
		const pids = readdirSync("/proc").map(Number).filter(Number.isInteger);
		return pids.filter((pid) => statOf(pid)?.[2] === String(group));
	} catch {
		return [];
	}
}

function readProc(pid: number, name: string): string | undefined {
	try {
		return readFileSync(`/proc/${pid}/${name}`, "utf8");
	} catch {
		// It is gone, or somebody else's, or there is no /proc.
		return undefined;
	}
}

/** State, parent, group …: the second field before them is the name in brackets and may hold anything. */
function statOf(pid: number): string[] | undefined {
	const stat = readProc(pid, "stat");
	return stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** When a process began, in clock ticks since boot; undefined when it is gone, or where there is no /proc. */
function beginningOf(pid: number): number | undefined {
	const fields = statOf(pid);
	return fields === undefined || fields[0] === "Z" ? undefined : Number(fields[19]);
}
