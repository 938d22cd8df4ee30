/** Processes that a command has left behind, as /proc tells: those of its group, and those that left it but carry its mark. */

import { readdirSync, readFileSync } from "node:fs";

/** Undefined where there is no /proc to ask. */
export function survivorsOf(group: number, mark: string): number[] | undefined {
	const pids = processes();
	return pids?.filter((pid) => {
		const found = statOf(pid);
		return found !== undefined && !found.isGone && (found.group === group || hasMark(pid, mark));
	});
}

function processes(): number[] | undefined {
	if (process.platform !== "linux") return undefined;
	try {
		return readdirSync("/proc")
			.filter((name) => /^\d+$/.test(name))
			.map(Number)
			.filter((pid) => pid !== process.pid);
	} catch {
		return undefined;
	}
}

/** `pid (name) state ppid pgrp …`; a name may hold anything, so what counts stands behind the last bracket. */
function statOf(pid: number): { group: number; isGone: boolean } | undefined {
	try {
		const text = readFileSync(`/proc/${pid}/stat`, "utf8");
		const [state, , group] = text.slice(text.lastIndexOf(")") + 2).split(" ");
		// A zombie does nothing; its parent has to collect it.
		return { group: Number(group), isGone: state === "Z" || state === "X" };
	} catch {
		return undefined;
	}
}

function hasMark(pid: number, mark: string): boolean {
	try {
		return readFileSync(`/proc/${pid}/environ`).includes(mark);
	} catch {
		// Another user's process, or one that has ended.
		return false;
	}
}
