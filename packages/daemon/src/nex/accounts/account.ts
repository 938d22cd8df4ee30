/** One account of a channel: its processes, started on first use, and the rate pause that holds for all of them. */

import type { AdapterField, AdapterInfo, HealthReport, MessageFailure, StreamStatus } from "@nexus-stream/adapter/host";
import { bundledCommand } from "@nexus-stream/platforms";
import { NexusError } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { own } from "@nexus-stream/protocol/own";
import { type AccountGate, createGate } from "../delivery/blocks/gate.ts";
import { sleep } from "../delivery/sleep.ts";
import type { OutboundLimits } from "../limits.ts";
import type { AccountStatus, AdapterConfig, ChannelConfig, PlatformCall, StreamingConfig } from "../port.ts";
import { type AccountFiles, inherited, noteChannelProcess, prepareAccountFiles } from "./account-files.ts";
import { type CallHealth, createCallHealth } from "./call-health.ts";
import type { KeptNotes, NoteFiles, NoteKeeping } from "./kept-notes.ts";
import {
	createMonitorPort,
	type IsUrgent,
	type MonitorPort,
	type OnChoice,
	type OnMessage,
	type WireWebhookAnswer,
	type WireWebhookRequest,
} from "./monitor-port.ts";
import { askHealth, askInfo, type OneShotLimits } from "./one-shot.ts";
import { type ProcessStatus, type ProcessSupervisorOptions, unreachable } from "./process-supervisor.ts";
import { SendPort } from "./send-port.ts";
import { createStreamPort, type StreamPort } from "./stream-port.ts";

export interface AccountOptions {
	channel: string;
	id: string;
	config: ChannelConfig;
	dataDir: string;
	limits: OutboundLimits;
	clock: Clock;
	random: () => number;
	log: Log;
	infos: InfoCache;
	notes: NoteKeeping;
	/** Aborts when the daemon stops. */
	stopping: AbortSignal;
	onCall?: (call: PlatformCall) => void;
	/** Called whenever an account's status may say something else. */
	onStatus(): void;
	/** Hears of messages that the platform had taken and did not deliver. */
	onFailure(failure: MessageFailure & { channel: string; account: string }): void;
}

export interface InfoCacheOptions {
	limits: OneShotLimits;
	/** Aborts when nobody will ask any more. */
	signal: AbortSignal;
	dataDir: string;
	/** Called when more is known of an adapter. */
	onInfo(): void;
}

/** What the adapter of a channel says of itself. Asked once; a failure is asked again the next time. */
export interface InfoCache {
	ask(channel: string): Promise<AdapterInfo>;
	/** The last answer, or why there was none. */
	cached(channel: string): { info?: AdapterInfo; error?: string };
}

export function createInfoCache(adapters: () => AdapterConfig, options: InfoCacheOptions): InfoCache {
	const { limits, signal, dataDir, onInfo } = options;
	const asked = new Map<string, Promise<AdapterInfo>>();
	const known = new Map<string, { info?: AdapterInfo; error?: string }>();
	return {
		cached: (channel) => known.get(channel) ?? {},
		ask(channel) {
			const before = asked.get(channel);
			if (before) return before;
			const config = own(adapters(), channel) ?? { accounts: {} };
			const command = commandOf(channel, config);
			const onSpawn = noteChannelProcess(dataDir, channel, "info");
			const answer = askInfo(
				channel,
				command,
				{ ...inherited(process.env), ...config.env },
				{ limits, signal, onSpawn },
			);
			asked.set(channel, answer);
			answer.then(
				(info) => {
					known.set(channel, { info });
					onInfo();
				},
				(cause: Error) => {
					asked.delete(channel);
					known.set(channel, { error: cause.message });
					onInfo();
				},
			);
			return answer;
		},
	};
}

export const commandOf = (channel: string, config: ChannelConfig): readonly string[] =>
	config.command ?? bundledCommand(channel);

export class ChannelAccount {
	readonly channel: string;
	readonly id: string;
	readonly config: ChannelConfig;
	/** The channel's, with what the account has of its own. */
	readonly streaming: StreamingConfig;
	readonly gate: AccountGate;
	readonly #options: AccountOptions;
	readonly #accountFiles: AccountFiles;
	readonly #env: Record<string, string>;
	#stream: StreamPort | undefined;
	#send: SendPort | undefined;
	#monitor: MonitorPort | undefined;
	readonly #retiring = new AbortController();
	/** Aborts when the account is listened to, or never will be. */
	readonly #hearing = new AbortController();
	#held = 0;
	readonly #calls: CallHealth;

	constructor(options: AccountOptions) {
		this.channel = options.channel;
		this.id = options.id;
		this.config = options.config;
		this.streaming = { ...options.config.streaming, ...options.config.accounts[this.id]?.streaming };
		this.#options = options;
		this.gate = createGate(options.clock);
		this.#calls = createCallHealth(options.clock);
		this.#accountFiles = prepareAccountFiles(options.dataDir, this.channel, this.id, {
			...own(options.config.accounts, this.id)?.settings,
		});
		this.#env = { ...this.#accountFiles.env, ...options.config.env };
	}

	info(): Promise<AdapterInfo> {
		return this.#options.infos.ask(this.channel);
	}

	health(): Promise<HealthReport> {
		const { limits, stopping } = this.#options;
		const onSpawn = (pid: number) => this.#accountFiles.onSpawn("health", pid);
		return askHealth(this.#command(), this.id, this.#env, { limits: limits.oneShot, signal: stopping, onSpawn });
	}

	stream(info: AdapterInfo): StreamPort {
		this.#stream ??= createStreamPort({
			...this.#process("stream"),
			oneAtATime: !speaks(info, "runId"),
			notice: (status) => this.#notice(status),
		});
		return this.#stream;
	}

	send(info: AdapterInfo): SendPort {
		this.#send ??= new SendPort({
			...this.#process("send"),
			oneAtATime: !speaks(info, "runId"),
			answerMs: this.#options.limits.answerMs,
			giveUpMs: this.#options.limits.giveUpMs,
			paused: () => this.gate.pausedUntil !== undefined,
			notice: (status) => this.#notice(status),
		});
		return this.#send;
	}

	listen(onMessage: OnMessage, onChoice: OnChoice, isUrgent?: IsUrgent): void {
		if (this.#monitor) throw new NexusError("conflict", `${this.channel}/${this.id} is already listened to.`);
		const { inboundWaitingMax, webhookMs, retryMs, retryMsMax } = this.#options.limits;
		const { channel, id: account } = this;
		const onFailure = (failure: MessageFailure) => this.#options.onFailure({ ...failure, channel, account });
		const more = { onMessage, onChoice, onFailure, waitingMax: inboundWaitingMax, webhookMs, retryMs, retryMsMax };
		this.#monitor = createMonitorPort({ ...this.#process("monitor"), ...more, isUrgent });
		this.#hearing.abort();
	}

	/**
	 * The monitor's answer. At a start the adapter is asked first what it can do, and a request that comes meanwhile waits: some platforms ask
	 * only once. Throws `unavailable` when the account is not listened to in time, never, or too many wait already.
	 */
	async webhook(request: WireWebhookRequest): Promise<WireWebhookAnswer> {
		const now = elapsing(this.#options.clock);
		const since = now();
		const monitor = await this.#listened();
		return monitor.webhook(request, this.#options.limits.webhookMs - (now() - since));
	}

	async #listened(): Promise<MonitorPort> {
		const { webhookMs, webhooksHeldMax } = this.#options.limits;
		const isDeaf = this.#options.infos.cached(this.channel).info?.supports.includes("monitor") === false;
		if (!this.#monitor && !isDeaf && this.#held < webhooksHeldMax) {
			this.#held++;
			await sleep(this.#options.clock, webhookMs, this.#hearing.signal);
			this.#held--;
		}
		if (this.#monitor) return this.#monitor;
		throw new NexusError("unavailable", `${this.channel}/${this.id} is not listened to.`);
	}

	status(deliveries: number): AccountStatus {
		const ports = { stream: this.#stream, send: this.#send, monitor: this.#monitor };
		const processes: AccountStatus["processes"] = {};
		for (const [verb, port] of Object.entries(ports)) {
			if (!port) continue;
			const called = verb === "monitor" ? undefined : this.#calls.error();
			processes[verb as keyof typeof ports] = unreachable(port.status(), called);
		}
		const all: ProcessStatus[] = Object.values(processes);
		const { info, error } = this.#options.infos.cached(this.channel);
		const lastError = all.findLast((each) => each.lastError !== undefined)?.lastError ?? error;
		const { pausedUntil } = this.gate;
		return {
			channel: this.channel,
			account: this.id,
			info,
			infoError: error,
			processes,
			pausedUntil,
			deliveries,
			restarts: all.reduce((sum, { restarts }) => sum + restarts, 0),
			garbage: all.reduce((sum, { garbage }) => sum + garbage, 0),
			lastError,
		};
	}

	/** Aborts when the account is configured no more, or otherwise. */
	get retired(): AbortSignal {
		return this.#retiring.signal;
	}

	retire(): void {
		this.#retiring.abort();
	}

	/** Nothing is heard from it any more. */
	async stopListening(): Promise<void> {
		this.#hearing.abort();
		await this.#monitor?.stop();
	}

	async stop(): Promise<void> {
		this.#hearing.abort();
		await Promise.all([this.#monitor?.stop(), this.#stream?.stop(), this.#send?.stop()]);
	}

	#command(): readonly string[] {
		return commandOf(this.channel, this.config);
	}

	#process(verb: "stream" | "send" | "monitor"): Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes"> {
		const { limits, clock, random, log } = this.#options;
		const format = verb === "send" ? [] : ["--format", "jsonl"];
		const notes = this.#notes();
		return {
			command: [...this.#command(), verb, "--account", this.id, ...format],
			env: { ...this.#env, ...(notes && { NEXUS_NOTES_FILE: this.#files().notes }) },
			notes,
			facts: { channel: this.channel, account: this.id, verb },
			limits: limits.process,
			rules: limits.restart,
			// Without it a monitor only misses the acks.
			mayIgnoreInput: verb === "monitor",
			onSpawn: (pid) => this.#accountFiles.onSpawn(verb, pid),
			changed: this.#options.onStatus,
			clock,
			random,
			log,
		};
	}

	/** What it has to remember, if it leaves that to the daemon. */
	#notes(): KeptNotes | undefined {
		const { infos, notes } = this.#options;
		const { info } = infos.cached(this.channel);
		// Without `runId` the input of `send` ends before an answer could come.
		if (!info || !speaks(info, "notes") || !speaks(info, "runId")) return undefined;
		return notes.of({ channel: this.channel, account: this.id }, this.#files());
	}

	#files(): NoteFiles {
		const state = this.#env.NEXUS_STATE_FILE ?? "";
		return { state, notes: `${state}.sent` };
	}

	#notice(status: Extract<StreamStatus, { type: "rate_limited" | "call" }>): void {
		const { onCall, onStatus, clock, log } = this.#options;
		const { channel, id: account } = this;
		if (status.type === "call") {
			const before = this.#calls.error();
			this.#calls.note(status);
			if (this.#calls.error() !== before) onStatus();
			onCall?.({ ...status, channel, account, at: clock.now() });
			return;
		}
		this.gate.pause(status.retryAfterMs);
		onStatus();
		log.info({ channel, account, retryAfterMs: status.retryAfterMs }, "the platform slowed the account down");
	}
}

export const speaks = (info: AdapterInfo, field: AdapterField): boolean => info.fields?.includes(field) === true;
