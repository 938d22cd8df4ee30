/** The part that an adapter's author writes: the platform's calls. The kit does argv, lines, drafts, pacing, splitting, records and resume. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { lengthOf } from "../markdown/length.ts";
import { renderPlain } from "../markdown/plain.ts";
import type { Notes } from "../memory/notes.ts";
import type { SentLog } from "../memory/sent.ts";
import type { AdapterField, AdapterInfo, AdapterSetting, Target } from "../port.ts";
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

/** A setting is neither secret nor required unless it says so. */
type DeclaredSetting<Name extends string> = Omit<AdapterSetting, "secret" | "required"> &
	Partial<AdapterSetting> & { readonly name: Name };

/** A platform without what the kit can fill in. */
export interface PlatformDeclaration<Name extends string>
	extends Omit<Platform, "info" | "render" | "measure" | "open"> {
	info: Omit<AdapterInfo, "version" | "protocol" | "settings"> & {
		readonly version?: string;
		readonly settings: readonly DeclaredSetting<Name>[];
	};
	/** Default: plain text. */
	render?: Platform["render"];
	/** Default: counted in the unit of `info.limits`. */
	measure?: Platform["measure"];
	/** An absent value of a setting becomes its default, or "" if it has no default. */
	open(settings: Settings<Name>, tools: Tools): Session | Promise<Session>;
}

/** Patterns of settings. */
export const IS_ADDRESS = "^https?://\\S+$";
export const IS_BOOLEAN = "^(true|false)$";

/** The fields that the kit implements for every platform. */
const KIT_FIELDS: readonly AdapterField[] = ["runId", "offset", "intent"];

export function definePlatform<const Name extends string>({
	info,
	render = renderPlain,
	measure = (rendered) => lengthOf(rendered, info.limits.unit),
	open,
	...rest
}: PlatformDeclaration<Name>): Platform {
	const settings = info.settings.map((each) => ({
		...each,
		secret: each.secret === true,
		required: each.required === true,
	}));
	return {
		...rest,
		info: { version: "1", protocol: 1, fields: KIT_FIELDS, ...info, settings },
		render,
		measure,
		open(account, tools) {
			const values = settings.map(({ name, default: fallback = "" }) => [name, account.settings[name] || fallback]);
			return open(Object.fromEntries(values) as Settings<Name>, tools);
		},
	};
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
