/** A store, an outbound side and file platforms for tests: everything real, in a separate folder. */

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { onTestFinished } from "vitest";
import type { Bus, LogWriter } from "../../../packages/daemon/src/bus/bus.ts";
import type { Delivery } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import type { InboundHandlers } from "../../../packages/daemon/src/nex/accounts/monitor-port.ts";
import type { OutboundOptions } from "../../../packages/daemon/src/nex/delivery/outbound.ts";
import { OUTBOUND_LIMITS } from "../../../packages/daemon/src/nex/limits.ts";
import { type ChannelConfig, createOutbound, type Outbound } from "../../../packages/daemon/src/nex/nex.ts";
import type { DeliverRequest } from "../../../packages/daemon/src/nex/port.ts";
import { type Clock, systemClock } from "../../../packages/protocol/src/clock.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import {
	checksumOf,
	crc32,
	type EndFrame,
	encodeFrame,
	type Frame,
	type Modality,
	newRunId,
	type StreamEvent,
} from "../../../packages/protocol/src/protocol.ts";
import { linesOf } from "../../lines.ts";
import { createToFrames } from "../../protocol/to-frames.ts";
import { type OpenStore, openStore, type TestStore } from "../../store.ts";
import { until as waitUntil } from "../../until.ts";

const ADAPTER = fileURLToPath(new URL("./adapters/file-platform.mjs", import.meta.url));

export type Flavour =
	| "full"
	| "collecting"
	| "basic"
	| "streamonly"
	| "blocks"
	| "blind"
	| "mail"
	| "files"
	| "drafts"
	| "letters";

export interface Call {
	op: string;
	to?: string;
	id?: string;
	nonce?: string;
	text?: string;
	at: number;
	[extra: string]: unknown;
}

type What = Partial<DeliverRequest> & ({ runId: string } | { text: string });

export interface Rig {
	dir: string;
	bus: Bus;
	/** The recorded deliveries. */
	deliveries: TestStore["stored"]["deliveries"];
	outbound: Outbound;
	channel(flavour: Flavour, settings?: Record<string, string>, more?: Partial<ChannelConfig>): ChannelConfig;
	/** A delivery to the chat `c1` by the account `main` of the first channel, unless the fields say otherwise. */
	deliver(what: What): Promise<Delivery>;
	/** The same, to its end. */
	send(what: What): Promise<Delivery>;
	/** A run that is being written, and its delivery. */
	begin(): Promise<{ run: TestRun; id: string }>;
	calls(): Call[];
	/** Current texts of the messages of a chat, in order of creation. */
	visible(to: string): string[];
	/** Drops everything as a kill -9 would, and begins again on the same file. */
	restart(options?: Partial<OutboundOptions>): Promise<void>;
	close(): Promise<void>;
}

/** Restarts and retries that tests can wait for. */
export const FAST = {
	...OUTBOUND_LIMITS,
	retryMs: 20,
	restart: { ...OUTBOUND_LIMITS.restart, backoffMs: 5, backoffMsMax: 20, failuresMax: 1000 },
	process: { ...OUTBOUND_LIMITS.process, endGraceMs: 1000, termGraceMs: 500 },
};

/** Answers `info` itself, as the adapter did when it was asked once: each test would start a Node process only for that. */
const FRONT =
	'if [ "$4" = info ]; then echo "$3"; exit; fi; node=$0 main=$1 flavour=$2; shift 3; exec "$node" "$main" "$flavour" "$@"';
const infos = new Map<Flavour, string>();

function adapterCommand(flavour: Flavour): string[] {
	const info = infos.get(flavour) ?? execFileSync(process.execPath, [ADAPTER, flavour, "info"], { encoding: "utf8" });
	infos.set(flavour, info);
	return ["/bin/sh", "-c", FRONT, process.execPath, ADAPTER, flavour, info.trim()];
}

/** When adapters die (see file-platform.mjs): the first surely, in the first line that it gets; the others anywhere, or never. */
export const deathsOf = (max: number) =>
	fc
		.tuple(
			fc.integer({ min: 1, max: 3 }),
			fc.array(fc.integer({ min: 1, max: 12 }), { maxLength: max - 1, size: "max" }),
		)
		.map(([first, others]) => [first, ...others].join());

/** Closed at the end of the test. */
export function createRig(flavour: Flavour, settings: Record<string, string> = {}, more: Partial<ChannelConfig> = {}) {
	return rigForTest((channel) => ({ [flavour]: channel(flavour, settings, more) }));
}

/** Closed at the end of the test: of several, the last one first. */
export function rigForTest(...given: Parameters<typeof createRigWith>): Rig {
	const rig = createRigWith(...given);
	onTestFinished(() => rig.close());
	return rig;
}

export function createRigWith(
	adaptersOf: (channel: Rig["channel"]) => OutboundOptions["adapters"],
	{ open: openOn = openStore, ...options }: Partial<OutboundOptions> & { open?: OpenStore } = {},
): Rig {
	const dir = mkdtempSync(join(tmpdir(), "nexus-outbound-"));
	const platform = join(dir, "platform.jsonl");
	const channel: Rig["channel"] = (flavour, settings = {}, more = {}) => ({
		command: adapterCommand(flavour),
		accounts: { main: { settings: { file: platform, ...settings } } },
		...more,
	});
	const adapters = adaptersOf(channel);
	const calls = (): Call[] => linesOf(platform).map((line) => JSON.parse(line) as Call);
	const open = (changes: Partial<OutboundOptions>) => {
		const clock = mortalClock();
		const store = openOn(join(dir, "nexus.db"));
		const { bus, ledger, stored } = store;
		const outbound = createOutbound({
			bus,
			ledger,
			dataDir: dir,
			log: silentLog,
			limits: FAST,
			clock,
			adapters: mortalAdapters(adapters, clock),
			...options,
			...changes,
		});
		return { store, bus, deliveries: stored.deliveries, outbound, clock };
	};
	let parts = open({});
	let closing: Promise<void> | undefined;
	const account = { channel: Object.keys(adapters)[0]!, id: "main" };
	const rig: Rig = {
		dir,
		bus: parts.bus,
		deliveries: parts.deliveries,
		outbound: parts.outbound,
		channel,
		deliver: (what) => parts.outbound.deliver({ account, target: { to: "c1" }, ...what }),
		send: async (what) => parts.outbound.settled((await rig.deliver(what)).id),
		async begin() {
			const run = await beginRun(parts.bus);
			return { run, id: (await rig.deliver({ runId: run.runId })).id };
		},
		calls,
		visible(to) {
			const texts = new Map<string, string>();
			for (const call of calls()) {
				if (call.to === to && (call.op === "create" || call.op === "edit")) texts.set(call.id!, call.text!);
			}
			return [...texts.values()];
		},
		async restart(changes = {}) {
			// The old side's processes live on for a moment, as those of a killed daemon; it itself does nothing any more.
			parts.clock.die();
			await parts.store.close();
			parts = open(changes);
			Object.assign(rig, { bus: parts.bus, deliveries: parts.deliveries, outbound: parts.outbound });
		},
		close: () => (closing ??= close()),
	};
	async function close(): Promise<void> {
		await parts.outbound.stop(0);
		await parts.store.close();
		// A process of a side that was killed may be writing there to the last.
		rmSync(dir, { recursive: true, force: true, maxRetries: 20 });
	}
	return rig;
}

/** As a daemon does that has waited long enough for a sign of life. */
export function declareDead({ dir, bus }: Rig): void {
	const db = new DatabaseSync(join(dir, "nexus.db"));
	db.prepare("UPDATE node SET dead = 1 WHERE id = ?").run(bus.node);
	db.close();
}

/** A separate daemon, on the first one's store and platform if there is one. */
export function sharingRig(
	adaptersOf: (channel: Rig["channel"], settings: Record<string, string>) => OutboundOptions["adapters"],
	first?: Rig,
	opened: (store: TestStore) => void = () => {},
): Rig {
	const settings: Record<string, string> = first ? { file: join(first.dir, "platform.jsonl") } : {};
	const open: OpenStore = (own) => {
		const store = openStore(first ? join(first.dir, "nexus.db") : own, { shared: true });
		opened(store);
		return store;
	};
	return rigForTest((channel) => adaptersOf(channel, settings), { open });
}

/** Time that ends with its process. */
function mortalClock(): MortalClock {
	let dead = false;
	return {
		now: () => Date.now(),
		after: (ms, callback) => systemClock.after(ms, () => dead || callback()),
		get dead() {
			return dead;
		},
		die() {
			dead = true;
		},
	};
}

interface MortalClock extends Clock {
	readonly dead: boolean;
	die(): void;
}

/**
 * Nothing is started for a dead process: one that had just asked an adapter for its info would otherwise start another when the answer comes,
 * and overwrite the pid of its successor's process, which then would never be ended.
 */
function mortalAdapters(adapters: OutboundOptions["adapters"], clock: MortalClock): OutboundOptions["adapters"] {
	const mortal = Object.entries(adapters).map(([channel, config]) => {
		const { command } = config;
		if (!command) return [channel, config];
		const whileAlive = () => {
			if (clock.dead) throw new Error("this process is dead");
			return command;
		};
		return [channel, Object.defineProperty({ ...config }, "command", { get: whileAlive, enumerable: true })];
	});
	return Object.fromEntries(mortal) as OutboundOptions["adapters"];
}

export interface TestRun {
	runId: string;
	say(event: StreamEvent): void;
	text(text: string): void;
	/** As a run's pump does before it says more. */
	room(): Promise<void>;
	/** An image, a card … */
	part(modality: Modality, contentType: string, payload: string): void;
	/** Another assistant message begins. */
	next(): void;
	end(): Promise<void>;
	fail(error: string): Promise<void>;
	/** Continues in another process: ends as recovery would, or as if it had ended in time. */
	endIn(bus: Bus, text: string, synthetic: boolean): Promise<void>;
}

/** A run on the Bus, written by hand. */
export async function beginRun(bus: Bus, session = "main"): Promise<TestRun> {
	const runId = newRunId();
	const frames = createToFrames({ runId, session, now: () => Date.now() });
	const start: StreamEvent = { type: "stream_start", runId, sessionLabel: session, target: null };
	const records = (event: StreamEvent) => frames.push(event).map(encodeFrame);
	const writer: LogWriter = await bus.create({ log: runId, kind: "run", meta: { session } }, records(start));
	let parts = 0;
	const say = (event: StreamEvent) => {
		for (const record of records(event)) writer.append(record);
	};
	return {
		runId,
		say,
		text: (text) => say({ type: "token", text }),
		room: () => writer.room(),
		part(modality, contentType, payload) {
			const of = { message_id: `${runId}.part${++parts}`, ts: Date.now() };
			const run = { run_id: runId, trace_id: "1".repeat(32), correlation_group: runId };
			const checksum = checksumOf(crc32(payload));
			const written: Frame[] = [
				{ type: "stream.begin", modality, content_type: contentType, ...run, ...of },
				{ type: "stream.chunk", seq_no: 1, payload, is_partial: false, ...of },
				{ type: "stream.end", total_chunks: 1, checksum, final: false, reason: "completed", ...of },
			];
			for (const frame of written) writer.append(encodeFrame(frame));
		},
		next: () => say({ type: "stream_end", runId, final: false }),
		end: () => writer.seal(records({ type: "stream_end", runId, final: true })),
		fail: (error) => writer.seal(records({ type: "stream_error", error, partial: true })),
		async endIn(next, text, synthetic) {
			const said = text === "" ? [] : records({ type: "token", text });
			const [end] = frames.push({ type: "stream_error", error: "crashed", partial: true });
			await (await next.reopen(runId)).seal([...said, encodeFrame({ ...(end as EndFrame), synthetic })]);
		},
	};
}

/** A finished run that says these messages. */
export async function finishedRun(bus: Bus, messages: readonly string[], session = "main"): Promise<string> {
	const run = await beginRun(bus, session);
	messages.forEach((message, n) => {
		if (n > 0) run.next();
		for (let at = 0; at < message.length; at += 7) run.text(message.slice(at, at + 7));
	});
	await run.end();
	return run.runId;
}

/** Handlers of an account whose test is about messages only. */
export const onlyMessages = (onMessage: InboundHandlers["onMessage"] = async () => {}): InboundHandlers => ({
	onMessage,
	onChoice: async () => undefined,
	isUrgent: () => false,
});

export const until = (condition: () => boolean, what: string): Promise<void> => waitUntil(what, condition);

/** Kills a process that may already be gone: its exit is not always known here yet. */
export function strike(pid: number): void {
	try {
		process.kill(pid, "SIGKILL");
	} catch (cause) {
		if ((cause as NodeJS.ErrnoException).code !== "ESRCH") throw cause;
	}
}
