/** Sessions of platforms without a process around them. */

import { expect, onTestFinished } from "vitest";
import {
	type Account,
	type CreatedMessage,
	type InboundMessage,
	type Platform,
	PlatformError,
	type SendOptions,
	type Session,
	type Target,
	type Tools,
	type WireAttachment,
} from "../../packages/adapter/src/kit.ts";
import { SentLog } from "../../packages/adapter/src/memory/sent.ts";
import { harmless } from "../../packages/adapter/src/platform/platform-error.ts";
import type {
	Asking,
	Attaching,
	Editing,
	Listening,
	Previewing,
	Sending,
	Streaming,
	Webhooks,
} from "../../packages/adapter/src/platform/session.ts";
import { type Clock, systemClock } from "../../packages/protocol/src/clock.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { until } from "../until.ts";

export function memory(): Tools["state"] {
	const kept = new Map<string, string>();
	const set = (key: string, value: string) => void kept.set(key, value);
	return { get: (key) => kept.get(key), set, recorded: () => Promise.resolve() };
}

/** Waits take no time, so that a look-up's second look comes at once. */
export const hurriedClock: Clock = { now: () => Date.now(), after: (_, callback) => systemClock.after(0, callback) };

/** The same, and its time stands still but for `pass`: for an account and its platform. */
export function standingClock(): Clock & { pass(ms: number): void } {
	let now = Date.now();
	const pass = (ms: number) => {
		now += ms;
	};
	return { ...hurriedClock, now: () => now, pass };
}

/** Calls with fewer arguments: `attach` uploads by itself, `monitor` ignores presses by default. */
interface OneStepAttaching extends Omit<Attaching, "attach"> {
	attach(target: Target, file: WireAttachment, options: SendOptions): Promise<CreatedMessage>;
}

type Monitor = Listening["monitor"];

interface MessageListening {
	monitor(emit: Parameters<Monitor>[0], signal: AbortSignal, press?: Parameters<Monitor>[2]): Promise<void>;
}

type Capabilities = Editing & Streaming & Previewing & Asking & OneStepAttaching & MessageListening & Webhooks;

/** All calls of a session as the kit makes them: creations and look-ups with the account's record, every capability by its methods. */
export type OpenSession = Omit<Session, "find"> & Partial<Capabilities> & Required<Pick<Session, "find">>;

export async function openSession(
	platform: Platform,
	settings: Account["settings"],
	tools: Partial<Tools> = {},
): Promise<OpenSession> {
	const { session, sent } = await openAccount(platform, settings, tools);
	return asTheKit(session, sent);
}

/** A session and the account's record, for the kit. */
export async function openAccount(
	platform: Platform,
	settings: Account["settings"],
	tools: Partial<Tools> = {},
): Promise<{ session: Session; sent: SentLog }> {
	const { state = memory(), clock = hurriedClock } = tools;
	// Processes of one account share both files.
	const notes = "notes" in tools ? tools.notes : tools.state && notesFor(tools.state);
	const sent = new SentLog(notes, clock);
	const rest = { log: silentLog, clock, state, notes, sent, listening: () => {} };
	return { session: await platform.open({ id: "a", settings }, { ...rest, ...tools }), sent };
}

export type FlatSession = Pick<Sending, "create"> &
	Partial<Sending & Editing & Streaming & Previewing & Attaching & Listening & Webhooks>;

/** A session whose capabilities are the methods that it has, for tests that write one by hand. */
export function sessionOf(flat: FlatSession): Session {
	return {
		health: async () => ({ ok: true, detail: "" }),
		...flat,
		editing: flat.edit && (flat as Editing),
		streaming: flat.start && (flat as Streaming),
		previewing: flat.preview && (flat as Previewing),
		attaching: flat.attach && (flat as Attaching),
		listening: flat.monitor && (flat as Listening),
		webhooks: flat.webhook && (flat as Webhooks),
	};
}

/** The session's own methods, called on the object that has them. */
function asTheKit(session: Session, sent: SentLog): OpenSession {
	const { editing, streaming, previewing, asking, attaching, listening, webhooks } = session;
	const methods = new Map<string, (...given: never[]) => unknown>();
	for (const owner of [webhooks, listening, attaching, asking, previewing, streaming, editing, session]) {
		for (const name of METHODS) {
			const method = (owner as Record<string, unknown> | undefined)?.[name];
			if (typeof method === "function") methods.set(name, method.bind(owner));
		}
	}
	const all = Object.fromEntries(methods) as unknown as OpenSession;
	const noted = (options: SendOptions, work: (options: SendOptions) => Promise<CreatedMessage>) =>
		sent.create(options.nonce, (inDoubt) => work({ ...options, inDoubt }));
	const { create, start, createWith, upload, find, monitor } = all;
	const attach = methods.get("attach") as Attaching["attach"] | undefined;
	all.create = (target, text, options) => noted(options, (given) => create(target, text, given));
	if (start) all.start = (target, text, options) => noted(options, (given) => start(target, text, given));
	if (createWith) {
		all.createWith = (target, text, files, options) =>
			noted(options, (given) => createWith(target, text, files, given));
	}
	if (attach) {
		all.attach = async (target: Target, file: WireAttachment, options: SendOptions) => {
			const uploaded = upload ? await harmless(upload(file, options.signal)) : "";
			return await noted(options, (given) => attach(target, file, given, uploaded));
		};
	}
	if (monitor) all.monitor = (emit, signal, press = async () => {}) => monitor(emit, signal, press);
	all.find = (target, nonce, text, signal) => sent.find(nonce, async () => find?.(target, nonce, text, signal));
	return all;
}

const METHODS = [
	...["create", "find", "style", "pace", "typing", "health", "close", "edit", "remove", "start", "append", "stop"],
	...["status", "preview", "settle", "upload", "attach", "createWith", "monitor", "webhook"],
];

const kept = new WeakMap<Tools["state"], NonNullable<Tools["notes"]>>();

function notesFor(state: Tools["state"]): NonNullable<Tools["notes"]> {
	const known = kept.get(state);
	if (known) return known;
	let lines: string[] = [];
	const add = (line: string) => {
		lines = [...lines, line];
	};
	const notes = { add, addLasting: add, all: () => lines };
	kept.set(state, notes);
	return notes;
}

/** Listens until it is stopped, at the latest at the end of the test, and keeps what it hears. `take` says when a message is safe. */
export function listenTo(session: OpenSession, take: (message: InboundMessage) => Promise<void> = async () => {}) {
	const seen: InboundMessage[] = [];
	const stopping = new AbortController();
	const going = session.monitor?.((message) => {
		seen.push(message);
		return take(message);
	}, stopping.signal);
	going?.catch(() => {});
	const stop = async () => {
		stopping.abort();
		await going;
	};
	onTestFinished(() => stopping.abort());
	return {
		seen,
		stop,
		texts: () => seen.map(({ text }) => text),
		hears: (count: number) => until(`${count} messages are received`, () => seen.length >= count),
	};
}

/** Nothing is ever safe. */
export const unsafe = () => new Promise<void>(() => {});

export const sendOptions = (nonce = "n1", signal = AbortSignal.timeout(60_000)) => ({ nonce, final: true, signal });

/** A call that hangs is left when the platform has it: after some time only, it might be left before it was made. */
export function abortedWhen(condition: () => boolean): AbortSignal {
	const leaving = new AbortController();
	const leave = () => leaving.abort();
	void until("the call is made", condition).then(leave, leave);
	return leaving.signal;
}

export async function faultOf(work: Promise<unknown> | undefined): Promise<PlatformError> {
	const outcome = await work?.then(() => undefined).catch((cause: unknown) => cause);
	expect(outcome).toBeInstanceOf(PlatformError);
	return outcome as PlatformError;
}
