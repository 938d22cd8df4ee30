/** Where an account's files are: its settings for the adapter (0600), the adapter's own memory, and the processes that were started for it. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Places {
	/** What an adapter process finds in its environment. */
	env: Record<string, string>;
	/** Remembers a process, so that it is ended should it outlive the daemon. */
	born(verb: string, pid: number): void;
}

/** Names of channels and accounts become names of files. */
const safe = (name: string): string => encodeURIComponent(name).replaceAll(".", "%2E");

const folderOf = (dataDir: string): string => join(dataDir, "adapters");

export function preparePlaces(dataDir: string, channel: string, id: string, settings: Record<string, string>): Places {
	const folder = join(folderOf(dataDir), safe(channel), safe(id));
	mkdirSync(folder, { recursive: true, mode: 0o700 });
	const account = join(folder, "account.json");
	// Removed first: the mode of an existing file would stay what it was.
	rmSync(account, { force: true });
	writeFileSync(account, JSON.stringify({ id, settings }), { mode: 0o600 });
	return {
		env: { ...inherited(process.env), NEXUS_ACCOUNT_FILE: account, NEXUS_STATE_FILE: join(folder, "state.json") },
		born(verb, pid) {
			const begun = beginningOf(pid);
			if (begun !== undefined) writeFileSync(join(folder, `${safe(verb)}.pid`), `${pid} ${begun}`, { mode: 0o600 });
		},
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
export function endLeftProcesses(dataDir: string): number[] {
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
		// A pid is used again: the same process also began at the same time.
		if (pid > 0 && beginningOf(pid) === begun) {
			process.kill(pid, "SIGKILL");
			ended.push(pid);
		}
		rmSync(path);
	}
	return ended;
}

/** When a process began, in clock ticks since boot; undefined when it is gone, or where there is no /proc. */
function beginningOf(pid: number): number | undefined {
	try {
		const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
		// The second field is the name in brackets and may hold anything; the 22nd is the time.
		const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
		return fields[0] === "Z" ? undefined : Number(fields[19]);
	} catch {
		return undefined;
	}
}
