/** How each account on a chat platform and each sign-in is: an event updates it at once; changes that come with time alone are checked while a reader watches. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { listeners } from "../kit/listeners.ts";
import type { SignInInfo, SignInRegister } from "../signins/port.ts";

type AccountSessionState = "connecting" | "connected" | "degraded" | "disconnected" | "expired" | "removed";

export interface AccountSession {
	/** `<channel>/<account>`, or the sign-in's id. */
	id: string;
	kind: "platform" | "sign-in";
	state: AccountSessionState;
	reason?: string;
	changedAt: number;
	/** When the daemon got to know it, or when it was signed in. */
	createdAt: number;
	/** Only for a sign-in. */
	expiresAt?: number;
}

export interface AccountSessionDeps {
	/** Every configured account, and who calls when one may have changed. */
	platforms: {
		accounts(): readonly PlatformStatus[];
		onAccounts(listener: () => void): () => void;
	};
	signIns: Pick<SignInRegister, "list" | "subscribe">;
	clock: Clock;
	log: Log;
}

/** How often those that are watched are looked at: a pause ends and an old failure is forgotten without a call. */
const LOOK_MS = 1000;

export type AccountSessions = ReturnType<typeof createAccountSessions>;

export function createAccountSessions({ platforms, signIns, clock, log }: AccountSessionDeps) {
	const known = new Map<string, AccountSession>();
	const watching = listeners<AccountSession>(log);
	let cancel = () => {};
	const look = () => {
		const now = clock.now();
		const seen = new Set<string>();
		for (const status of platforms.accounts()) {
			const id = `${status.channel}/${status.account}`;
			seen.add(id);
			const found = platformState(status);
			const before = known.get(id);
			if (before && before.state === found.state && before.reason === found.reason) continue;
			const changedAt = before?.state === found.state ? before.changedAt : now;
			const session = { id, kind: "platform" as const, ...found, changedAt, createdAt: before?.createdAt ?? now };
			known.set(id, session);
			watching.tell(session);
		}
		for (const [id, session] of known) {
			if (seen.has(id)) continue;
			known.delete(id);
			watching.tell({ ...session, reason: undefined, state: "removed", changedAt: now });
		}
	};
	const keepLooking = () => {
		cancel = clock.after(LOOK_MS, () => {
			look();
			keepLooking();
		});
	};
	const stops = [platforms.onAccounts(look), signIns.subscribe((signIn) => watching.tell(sessionOf(signIn)))];
	return {
		list(): AccountSession[] {
			look();
			return [...known.values(), ...signIns.list().map(sessionOf)];
		},
		/** Called with every change from now on; returns how to stop it. */
		subscribe(listener: (session: AccountSession) => void): () => void {
			const stop = watching.add(listener);
			if (watching.size === 1) keepLooking();
			return () => {
				stop();
				if (watching.size === 0) cancel();
			};
		},
		close(): void {
			cancel();
			for (const stop of stops) stop();
		},
	};
}

const sessionOf = ({ address, ...signIn }: SignInInfo): AccountSession => ({
	...signIn,
	kind: "sign-in",
	reason: `from ${address}`,
});

/** Facts about an account on a chat platform that decide its state. */
export interface PlatformStatus {
	channel: string;
	account: string;
	/** Description that the adapter gave of itself; undefined until it was asked. */
	info?: { supports: readonly string[] };
	/** Why the adapter could not be asked. */
	infoError?: string;
	/** Processes that were started; the others start when they are needed. */
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
	const failing = processes.filter(({ state }) => FAILS.includes(state));
	if (failing.length > 0) {
		const works = processes.some(({ state }) => state === "running");
		return { state: works ? "degraded" : "disconnected", reason: failing[0]?.lastError ?? lastError };
	}
	if (infoError !== undefined) return { state: "disconnected", reason: infoError };
	const willBeHeard = info?.supports.includes("monitor") && status.processes.monitor === undefined;
	if (info === undefined || willBeHeard || processes.some(({ state }) => state === "starting"))
		return { state: "connecting" };
	if (pausedUntil !== undefined) return { state: "degraded", reason: "the platform slowed the account down" };
	return { state: "connected" };
}
