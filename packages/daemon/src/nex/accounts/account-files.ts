/** The files of an account: its settings for the adapter (0600), the adapter's state, and the pids of its processes. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { signalGroup } from "../../std/line-process.ts";

export type AccountFiles = ReturnType<typeof prepareAccountFiles>;

/** Makes a channel or account name safe as a file name. */
const safe = (name: string): string => encodeURIComponent(name).replaceAll(".", "%2E");

const folderOf = (dataDir: string): string => join(dataDir, "adapters");

export function prepareAccountFiles(dataDir: string, channel: string, id: string, settings: Record<string, string>) {
	const folder = join(folderOf(dataDir), safe(channel), safe(id));
	mkdirSync(folder, { recursive: true, mode: 0o700 });
	const account = join(folder, "account.json");
	// Removed first: an existing file would keep its mode.
	rmSync(account, { force: true });
	writeFileSync(account, JSON.stringify({ id, settings }), { mode: 0o600 });
	return {
		/** The environment of an adapter process. */
		env: { ...inherited(process.env), NEXUS_ACCOUNT_FILE: account, NEXUS_STATE_FILE: join(folder, "state.json") },
		/** Records a pid, so that the next daemon can end the process if it outlives this one. */
		onSpawn: (verb: string, pid: number) => note(folder, verb, pid),
	};
}

function note(folder: string, verb: string, pid: number): void {
	const startedAt = startOf(pid);
	if (startedAt !== undefined) writeFileSync(join(folder, `${safe(verb)}.pid`), `${pid} ${startedAt}`, { mode: 0o600 });
}

/** As `onSpawn`, for a verb that belongs to the channel and not to one account. */
export function noteChannelProcess(dataDir: string, channel: string, verb: string): (pid: number) => void {
	return (pid) => {
		const folder = join(folderOf(dataDir), safe(channel));
		mkdirSync(folder, { recursive: true, mode: 0o700 });
		note(folder, verb, pid);
	};
}

/** Deletes the adapter's copy of the settings, secrets included. The adapter's state stays. */
export function forgetSettings(dataDir: string, channel: string, id: string): void {
	rmSync(join(folderOf(dataDir), safe(channel), safe(id), "account.json"), { force: true });
}

/** The variables that programs generally need. An adapter must not see the daemon's keys and tokens. */
const INHERITED =
	/^(PATH|HOME|USER|LOGNAME|LANG|LC_.*|TZ|TMPDIR|TEMP|TMP|SHELL|NODE_.*|PYTHON.*|SSL_CERT_.*|(https?|no|all)_proxy|SystemRoot|ComSpec|PATHEXT|APPDATA|LOCALAPPDATA|USERPROFILE)$/i;

export const inherited = (env: NodeJS.ProcessEnv): Record<string, string> =>
	Object.fromEntries(
		Object.entries(env).filter(
			(entry): entry is [string, string] => entry[1] !== undefined && INHERITED.test(entry[0]),
		),
	);

/** Ends the adapter processes of a killed daemon: an old one that still edits would overwrite what a new one writes (I7). Returns their pids. */
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
		const [pid = 0, startedAt] = readFileSync(path, "utf8").split(" ").map(Number);
		const start = pid > 0 ? startOf(pid) : undefined;
		// Pids are reused: only the same process also has the same start time.
		if (start !== undefined && start === startedAt) {
			kill(pid);
			signalGroup(pid, "SIGKILL");
			ended.push(pid);
		} else if (pid > 0 && start === undefined) ended.push(...endOrphans(pid, dirname(path)));
		rmSync(path);
	}
	return ended;
}

/** Ends the surviving children of a process that has ended: still in its group, and started with this account's settings. */
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
		// The process has ended in the meantime.
		if ((cause as NodeJS.ErrnoException).code !== "ESRCH") throw cause;
	}
}

/** The pids of a group; empty where there is no /proc. */
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
		// The process has ended or belongs to another user, or there is no /proc.
		return undefined;
	}
}

/** The fields after the process name, which is in brackets and may contain anything: state, parent, group … */
function statOf(pid: number): string[] | undefined {
	const stat = readProc(pid, "stat");
	return stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** The start of a process in clock ticks since boot; undefined when it has ended, or where there is no /proc. */
function startOf(pid: number): number | undefined {
	const fields = statOf(pid);
	return fields === undefined || fields[0] === "Z" ? undefined : Number(fields[19]);
}
