/** The part that an adapter's author writes: the platform's calls. The kit does argv, lines, drafts, pacing, splitting, records and resume. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Notes } from "../memory/notes.ts";
import type { SentLog } from "../memory/sent.ts";
import type { AdapterInfo, AdapterSetting, Target } from "../port.ts";
import type { Pace, Session } from "./session.ts";

export interface Account {
	id: string;
	/** Settings and secrets of the account, as strings. */
	settings: Readonly<Record<string, string>>;
}

export interface AccountState {
	get(key: string): string | undefined;
	set(key: string, value: string): void;
	/** Resolves when the last `set` is durable. */
	recorded(): Promise<void>;
}

export interface Tools {
	log: Log;
	clock: Clock;
	/** A small durable memory for the account: polling positions and the like. */
	state: AccountState;
	/** The account's record of the messages that it created. */
	sent: SentLog;
	/** Durable lines of the account. Absent: nothing outlives the process. */
	notes?: Notes;
	/** Reports that the platform can be reached, or why not. Repeating a report has no effect. */
	listening(error?: string): void;
}

export interface Platform {
	info: AdapterInfo;
	/** Markdown → the platform's dialect. Never loses text. */
	render(markdown: string): string;
	/** Length of rendered text in the platform's unit; at most `info.limits.textMax` fits one message. */
	measure(rendered: string): number;
	/** How fast previews may go; `final` writes are not slowed by it. */
	pace(target: Target): Pace;
	open(account: Account, tools: Tools): Session | Promise<Session>;
}

/** The values of an account by the names of its settings. */
export type Settings<Name extends string> = Readonly<Record<Name, string>>;

/** The account's settings as `info` declares them. An absent value becomes its default, or "" if the setting has no default. */
export function settingsOf<Name extends string>(
	{ settings }: { readonly settings: readonly (AdapterSetting & { readonly name: Name })[] },
	account: Account,
): Settings<Name> {
	const values = settings.map(({ name, default: fallback = "" }) => [name, account.settings[name] || fallback]);
	return Object.fromEntries(values) as Settings<Name>;
}

/** Loads a value once and keeps it; a failure is not kept. For the account's own identity. */
export function remembered<T>(load: () => Promise<T>): () => Promise<T> {
	let known: Promise<T> | undefined;
	return () => {
		known ??= load().catch((cause: unknown) => {
			known = undefined;
			throw cause;
		});
		return known;
	};
}
