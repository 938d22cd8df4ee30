/** The small durable memory of an account, in a file that its processes share. The daemon writes it; without a daemon, the running process does. */

import { renameSync, rmSync, writeFileSync } from "node:fs";
import { NexusError, wordsOf } from "@nexus-stream/protocol";
import { type Log, silentLog } from "@nexus-stream/protocol/log";
import type { AccountState } from "../platform/platform.ts";
import { PlatformError } from "../platform/platform-error.ts";
import { type LineRecorder, openNotes, readIfAny } from "./notes.ts";

type State = Record<string, string>;

/** With a recorder the daemon writes the file, so that processes cannot undo each other's changes; without one, `set` does. Without a file it lasts as long as the process. */
export function openState(path: string | undefined, recorder?: LineRecorder, log: Log = silentLog): AccountState {
	/** Not in the file, or not yet. */
	const unwritten = new Map<string, { value: string }>();
	let last: Promise<void> = Promise.resolve();
	const stored = () => (path === undefined ? {} : readState(path));
	const get = (key: string) => unwritten.get(key)?.value ?? stored()[key];
	return {
		get,
		set(key, value) {
			const before = get(key);
			if (before === value) return;
			if (path !== undefined && !recorder) return writeState(path, { ...stored(), [key]: value });
			const own = { value };
			unwritten.set(key, own);
			if (path === undefined || !recorder) return;
			last = recorder.record({ type: "state", key, value }).then(() => {
				if (unwritten.get(key) === own) unwritten.delete(key);
			});
			last.catch((cause: unknown) => {
				log.debug({ key, error: wordsOf(cause) }, "a state may not be on record");
				openNotes(leftOf(path)).add(JSON.stringify({ key, before, value } satisfies OrphanedState));
			});
		},
		async recorded() {
			try {
				await last;
			} catch (cause) {
				throw new PlatformError("unavailable", `The account's state is not on record: ${wordsOf(cause)}`, { cause });
			}
		},
	};
}

/** A change that no daemon answered, perhaps because it was killed: the next one makes it if the key still has the value from before. */
interface OrphanedState {
	key: string;
	/** Absent: it had none. */
	before?: string | undefined;
	value: string;
}

const leftOf = (path: string): string => `${path}.left`;

/** The unanswered changes that still apply to a state. */
export function orphanedStates(path: string, state: ReadonlyMap<string, string>): [key: string, value: string][] {
	const changed = new Map<string, string>();
	for (const line of openNotes(leftOf(path)).all()) {
		const { key, before, value } = parsed(line);
		if (key !== undefined && value !== undefined && (changed.get(key) ?? state.get(key)) === before)
			changed.set(key, value);
	}
	return [...changed];
}

/** A damaged line has no fields. */
function parsed(line: string): Partial<OrphanedState> {
	try {
		return JSON.parse(line) as OrphanedState;
	} catch {
		return {};
	}
}

export function forgetOrphan(path: string): void {
	for (const file of [leftOf(path), `${leftOf(path)}.1`]) rmSync(file, { force: true });
}

export function readState(path: string): State {
	let text: string | undefined;
	try {
		text = readIfAny(path);
	} catch (cause) {
		throw new NexusError("config", `NEXUS_STATE_FILE ${path} cannot be read: ${wordsOf(cause)}`, { cause });
	}
	try {
		return text === undefined ? {} : (JSON.parse(text) as State);
	} catch (cause) {
		throw new NexusError("data_loss", `${path} is damaged: ${wordsOf(cause)}. Delete it to start afresh.`, { cause });
	}
}

export function writeState(path: string, state: Readonly<State>): void {
	const draft = `${path}.${process.pid}.tmp`;
	writeFileSync(draft, JSON.stringify(state), { mode: 0o600 });
	renameSync(draft, path);
}
