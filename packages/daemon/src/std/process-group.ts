/** A child process with all that it starts in turn: they get signals together, and none of them outlives this process. */

import type { ChildProcess } from "node:child_process";

/**
 * For `spawn`: the child leads its own group. A terminal's Ctrl-C does not reach it then, so its parent has to end it. There
 * are no groups on Windows, where only the child itself gets the signals.
 */
export const OWN_GROUP = { detached: process.platform !== "win32" } as const;

const leaders = new Set<number>();

/** Kills the groups that are left when this process ends by a second Ctrl-C or an error. */
const endAll = () => {
	for (const pid of leaders) signalGroup(pid, "SIGKILL");
};

/** Returns how to signal the group, and what to call once nothing of it is of interest any more: what is left of it is killed. */
export function watchGroup(child: ChildProcess): { signal(signal: NodeJS.Signals): void; end(): void } {
	const { pid } = child;
	if (pid === undefined) return { signal() {}, end() {} };
	if (leaders.size === 0) process.on("exit", endAll);
	leaders.add(pid);
	return {
		signal: (signal) => signalGroup(pid, signal),
		end() {
			if (!leaders.delete(pid)) return;
			signalGroup(pid, "SIGKILL");
			if (leaders.size === 0) process.off("exit", endAll);
		},
	};
}

/** Does nothing for a group that has ended. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
	try {
		process.kill(OWN_GROUP.detached ? -leader : leader, signal);
	} catch (cause) {
		const { code } = cause as NodeJS.ErrnoException;
		// EPERM: macOS says it of a group in which only zombies are left.
		if (code !== "ESRCH" && code !== "EPERM") throw cause;
	}
}
