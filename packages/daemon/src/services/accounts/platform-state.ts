/** How an account on a chat platform is, from what its processes and its platform's answers say. Pure. */

import type { AccountSessionState } from "./port.ts";

/** What has to be known of an account. */
export interface PlatformStatus {
	channel: string;
	account: string;
	/** What its adapter says of itself, once it was asked. */
	info?: { supports: readonly string[] };
	/** Why the adapter could not be asked. */
	infoError?: string;
	/** Those that were started; the others are started when they are needed. */
	processes: Readonly<Partial<Record<string, { state: ProcessState; lastError?: string }>>>;
	/** The platform's rate limit holds the account until then. */
	pausedUntil?: number;
	lastError?: string;
}

type ProcessState = "stopped" | "starting" | "running" | "backing_off" | "open_circuit" | "unreachable";

const FAILS: readonly ProcessState[] = ["backing_off", "open_circuit", "unreachable"];

export function platformState(status: PlatformStatus): { state: AccountSessionState; reason?: string } {
	const { info, infoError, pausedUntil, lastError } = status;
	const processes = Object.values(status.processes).filter((process) => process !== undefined);
	const because = (reason: string | undefined) => (reason === undefined ? {} : { reason });
	const failing = processes.filter(({ state }) => FAILS.includes(state));
	if (failing.length > 0) {
		const works = processes.some(({ state }) => state === "running");
		return { state: works ? "degraded" : "disconnected", ...because(failing[0]?.lastError ?? lastError) };
	}
	if (infoError !== undefined) return { state: "disconnected", reason: infoError };
	const willBeHeard = info?.supports.includes("monitor") && status.processes.monitor === undefined;
	if (info === undefined || willBeHeard || processes.some(({ state }) => state === "starting"))
		return { state: "connecting" };
	if (pausedUntil !== undefined) return { state: "degraded", reason: "the platform slowed the account down" };
	return { state: "connected" };
}
