/** An adapter as a program: reads its verb from the command line, speaks JSON lines, and stops in good order. */

import { parseArgs } from "node:util";
import { exitCodeOf, NexusError, toNexusError, wordsOf } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { sleep } from "@nexus-stream/protocol/retry";
import { createRecorder, type LineRecorder, openNotes } from "../memory/notes.ts";
import { SentLog } from "../memory/sent.ts";
import { openState } from "../memory/state.ts";
import type { Platform, Tools } from "../platform/platform.ts";
import { PlatformError } from "../platform/platform-error.ts";
import type { Session } from "../platform/session.ts";
import type { AdapterField } from "../port.ts";
import { createRedactor, type Environment, loadAccount, type Redact, withoutSecrets } from "./account.ts";
import { ADAPTER_LIMITS, type AdapterLimits, createAdapterContext } from "./context.ts";
import { createDeliveries } from "./deliver.ts";
import { createLineWriter, LINE_BYTES_MAX, type LineWriter, readInput } from "./lines.ts";
import { Monitor } from "./monitor.ts";
import { createSends } from "./send.ts";

export interface ServeLimits extends AdapterLimits {
	lineBytesMax: number;
	/** How long running work may take after the last line or SIGTERM. */
	stopGraceMs: number;
}

export const STOP_GRACE_MS = 5_000;

export interface ServeOptions extends Partial<ServeLimits> {
	/** For pacing and back-off. */
	clock?: Clock;
}

/** A running verb. */
interface Service {
	accept(line: object): void;
	/** Rejects when it fails for good; resolves when it has nothing more to do. Absent: neither happens. */
	readonly ended?: Promise<void>;
	/** Resolves when nothing is under way. */
	stop(): Promise<void>;
}

interface ServeContext {
	platform: Platform;
	account: string;
	writer: LineWriter;
	/** Resolves when the output is closed. */
	unread: Promise<void>;
	log: Log;
	/** Set once the account is known. */
	secrets: { redact: Redact };
	env: Environment;
	clock: Clock;
	limits: Partial<ServeLimits>;
}

const VERBS = ["info", "monitor", "send", "stream", "health"] as const;

/** Runs one verb and exits. */
export async function serve(
	platform: Platform,
	argv: readonly string[],
	{ clock = systemClock, ...limits }: ServeOptions = {},
): Promise<never> {
	const secrets: ServeContext["secrets"] = { redact: (text) => text };
	const say = (line: object) => void process.stderr.write(`${secrets.redact(JSON.stringify(line))}\n`);
	let code = 0;
	try {
		code = await run(platform, argv, { log: stderrLog(say), secrets, clock, limits });
	} catch (cause) {
		const error = asNexusError(cause);
		say({ level: "error", msg: error.message, code: error.code });
		code = exitCodeOf(error.code);
	}
	process.exit(code);
}

async function run(
	platform: Platform,
	argv: readonly string[],
	more: Pick<ServeContext, "log" | "secrets" | "clock" | "limits">,
): Promise<number> {
	const { verb, account } = readArguments(platform.info.channel, argv);
	// The daemon is gone, and the next one resumes the open deliveries. A running call is not cut off: its outcome is recorded.
	const unread = Promise.withResolvers<void>();
	const writer = createLineWriter(process.stdout, () => unread.resolve());
	const context: ServeContext = { platform, account, writer, unread: unread.promise, env: process.env, ...more };
	switch (verb) {
		case "info":
			writer.write({ ...platform.info, fields: fieldsOf(platform) });
			await writer.flushed();
			return 0;
		case "health":
			return await health(context);
		case "monitor":
		case "send":
		case "stream":
			await converse(context, verb);
			return 0;
		default:
			return verb satisfies never;
	}
}

/** The kit adds the fields that it implements for every platform. */
const fieldsOf = ({ info }: Platform): AdapterField[] => [...new Set([...(info.fields ?? []), ...KIT_FIELDS])];
const KIT_FIELDS = ["pieces", "notes"] as const;

function readArguments(channel: string, argv: readonly string[]): { verb: (typeof VERBS)[number]; account: string } {
	const usage = `Usage: ${channel} info | monitor | send | stream | health  --account <id> [--format jsonl]`;
	try {
		const options = { account: { type: "string" }, format: { type: "string", default: "jsonl" } } as const;
		const { positionals, values } = parseArgs({ args: [...argv], options, allowPositionals: true });
		const verb = VERBS.find((known) => known === positionals[0]);
		if (!verb || positionals.length > 1) throw new Error(`unknown verb "${positionals.join(" ")}"`);
		if (values.format !== "jsonl") throw new Error(`unknown format "${values.format}"`);
		if (verb !== "info" && !values.account) throw new Error("--account is missing");
		return { verb, account: values.account ?? "" };
	} catch (cause) {
		throw new NexusError("invalid", `${wordsOf(cause)}. ${usage}`, { cause });
	}
}

async function openSession(
	{ platform, account: id, env, log, clock, secrets }: ServeContext,
	listening: Tools["listening"] = () => {},
	recorder?: LineRecorder,
): Promise<OpenedSession> {
	const account = loadAccount(platform.info, id, env);
	secrets.redact = createRedactor(platform.info, account);
	const stateFile = env.NEXUS_STATE_FILE;
	const state = openState(stateFile, recorder, log);
	const notes = stateFile === undefined ? undefined : openNotes(env.NEXUS_NOTES_FILE ?? `${stateFile}.sent`, recorder);
	const sent = new SentLog(notes, clock);
	return { session: await platform.open(account, { log, clock, state, notes, sent, listening }), sent };
}

interface OpenedSession {
	session: Session;
	sent: SentLog;
}

/** Undefined when no daemon stores anything for the account. */
function recorderOf({ env, writer, clock, limits }: ServeContext): LineRecorder | undefined {
	if (env.NEXUS_NOTES_FILE === undefined) return undefined;
	const answerMs = (limits.callTimeoutMs ?? ADAPTER_LIMITS.callTimeoutMs) / 2;
	return createRecorder((line) => writer.write(line), clock, answerMs);
}

/** Reports each change once. */
function reportListening({ writer, secrets }: ServeContext): Tools["listening"] {
	let reported: string | undefined;
	return (error = "") => {
		if (error === reported) return;
		reported = error;
		const line = error === "" ? { ok: true } : { ok: false, error: secrets.redact(error) };
		writer.write({ type: "listening", ...line });
	};
}

async function health(context: ServeContext): Promise<number> {
	const { session } = await openSession(context);
	const report = await session.health().catch((cause) => ({ ok: false, detail: asNexusError(cause).message }));
	context.writer.write(withoutSecrets(report, context.secrets.redact));
	await context.writer.flushed();
	await session.close?.();
	return report.ok ? 0 : 1;
}

/** Lines in, lines out, until the input ends. */
async function converse(context: ServeContext, verb: "monitor" | "send" | "stream"): Promise<void> {
	const { writer, log, limits } = context;
	// Read first: lines may come before the session is open, and the input may end meanwhile.
	const input = readInput(log, limits.lineBytesMax ?? LINE_BYTES_MAX);
	const recorder = recorderOf(context);
	const listening = verb === "monitor" ? reportListening(context) : undefined;
	const opened = await openSession(context, listening, recorder);
	const service = serviceOf(context, opened, verb);
	// A timer keeps the process alive while only timers of the gate are waiting.
	const alive = setInterval(() => {}, 60_000);
	input.start((line) => {
		if (!recorder?.accept(line)) service.accept(line);
	});
	await Promise.race([input.ended, context.unread, ...(service.ended ? [service.ended] : [])]);
	recorder?.end();
	const graceMs = limits.stopGraceMs ?? STOP_GRACE_MS;
	const stopped = service.stop().then(() => opened.session.close?.());
	const isLate = await Promise.race([stopped.then(() => false), sleep(systemClock, graceMs).then(() => true)]);
	if (isLate) log.warn({ graceMs }, "stopped with work under way; the next process resumes it");
	clearInterval(alive);
	await writer.flushed();
}

function serviceOf(
	context: ServeContext,
	{ session, sent }: OpenedSession,
	verb: "monitor" | "send" | "stream",
): Service {
	const { platform, account, writer, log, clock, limits } = context;
	const ready = () => writer.drained();
	const say = (line: object) => writer.write(withoutSecrets(line, context.secrets.redact));
	if (verb === "monitor") return new Monitor({ session, say, ready, log });
	const { random } = Math;
	const writing = createAdapterContext({ platform, session, sent, account, clock, random, log, say, ready, limits });
	return verb === "send" ? createSends(writing) : createDeliveries(writing);
}

function stderrLog(say: (line: object) => void): Log {
	const write = (level: string) => (facts: object, message: string) => say({ level, msg: message, ...facts });
	return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

const CODES = {
	denied: "unauthenticated",
	gone: "not_found",
	invalid: "invalid",
	rate_limited: "busy",
	unavailable: "unavailable",
	unknown_outcome: "unavailable",
} as const;

function asNexusError(cause: unknown): NexusError {
	return cause instanceof PlatformError
		? new NexusError(CODES[cause.fault], cause.message, { cause })
		: toNexusError(cause);
}
