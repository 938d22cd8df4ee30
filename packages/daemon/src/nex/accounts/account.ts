/** One account of a channel: its processes, started on first use, and the rate pause that applies to all of them. */

import type { AdapterField, AdapterInfo, HealthReport, MessageFailure, StreamStatus } from "@nexus-stream/adapter/port";
import { NexusError } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { own } from "@nexus-stream/protocol/own";
import { sleep } from "@nexus-stream/protocol/retry";
import type { Bus } from "../../bus/bus.ts";
import type { OutboundLimits } from "../limits.ts";
import type { AccountStatus, ChannelConfig, PlatformCall, StreamingConfig } from "../port.ts";
import { type AccountFiles, prepareAccountFiles } from "./account-files.ts";
import type { KeptNotes, NoteFiles, NoteKeeping } from "./kept-notes.ts";
import { type InboundHandlers, MonitorPort, type WireWebhookAnswer, type WireWebhookRequest } from "./monitor-port.ts";
import { askHealth, commandOf, type InfoCache } from "./one-shot.ts";
import { type CallHealth, createCallHealth, createRatePause, type RatePause } from "./platform-health.ts";
import { type ProcessStatus, type ProcessSupervisorOptions, unreachable } from "./process-supervisor.ts";
import { SendPort } from "./send-port.ts";
import { StreamPort } from "./stream-port.ts";

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
	lease?: Bus["lease"];
	/** Aborts when the daemon stops. */
	stopping: AbortSignal;
	onCall?: (call: PlatformCall) => void;
	/** Called whenever the status of an account may have changed. */
	onStatus(): void;
	/** Called for a message that the platform had accepted and could not deliver. */
	onFailure(failure: MessageFailure & { channel: string; account: string }): void;
}

export class ChannelAccount {
	readonly channel: string;
	readonly id: string;
	readonly config: ChannelConfig;
	/** The channel's settings, overridden by the account's. */
	readonly streaming: StreamingConfig;
	readonly rate: RatePause;
	readonly #options: AccountOptions;
	readonly #accountFiles: AccountFiles;
	readonly #env: Record<string, string>;
	#stream: StreamPort | undefined;
	#send: SendPort | undefined;
	#monitor: MonitorPort | undefined;
	readonly #retiring = new AbortController();
	/** Aborts when the account has a monitor, or never will have one. */
	readonly #monitored = new AbortController();
	#webhooksHeld = 0;
	readonly #calls: CallHealth;

	constructor(options: AccountOptions) {
		this.channel = options.channel;
		this.id = options.id;
		this.config = options.config;
		this.streaming = { ...options.config.streaming, ...options.config.accounts[this.id]?.streaming };
		this.#options = options;
		this.rate = createRatePause(options.clock);
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
		const { limits, clock, stopping } = this.#options;
		const onSpawn = (pid: number) => this.#accountFiles.onSpawn("health", pid);
		const options = { limits: limits.oneShot, clock, signal: stopping, onSpawn };
		return askHealth(this.#command(), this.id, this.#env, options);
	}

	stream(info: AdapterInfo): StreamPort {
		this.#stream ??= new StreamPort({
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
			paused: () => this.rate.pausedUntil !== undefined,
			notice: (status) => this.#notice(status),
		});
		return this.#send;
	}

	monitor(handlers: InboundHandlers): void {
		if (this.#monitor) throw new NexusError("conflict", `${this.channel}/${this.id} is already connected.`);
		const { inboundWaitingMax, retryMs, retryMsMax } = this.#options.limits;
		const { channel, id: account } = this;
		this.#monitor = new MonitorPort({
			...this.#process("monitor"),
			...handlers,
			onFailure: (failure) => this.#options.onFailure({ ...failure, channel, account }),
			waitingMax: inboundWaitingMax,
			retryMs,
			retryMsMax,
		});
		this.#monitored.abort();
	}

	/**
	 * The monitor's answer. After a start the monitor begins only when the adapter's `info` has arrived; a request that comes earlier waits,
	 * because some platforms send it only once. Throws `unavailable` when no monitor runs in time, or too many requests wait already.
	 */
	async webhook(request: WireWebhookRequest): Promise<WireWebhookAnswer> {
		const now = elapsing(this.#options.clock);
		const since = now();
		const monitor = await this.#awaitMonitor();
		return monitor.webhook(request, this.#options.limits.webhookMs - (now() - since));
	}

	async #awaitMonitor(): Promise<MonitorPort> {
		const { webhookMs, webhooksHeldMax } = this.#options.limits;
		const canMonitor = this.#options.infos.cached(this.channel).info?.supports.includes("monitor") !== false;
		if (!this.#monitor && canMonitor && this.#webhooksHeld < webhooksHeldMax) {
			this.#webhooksHeld++;
			await sleep(this.#options.clock, webhookMs, this.#monitored.signal);
			this.#webhooksHeld--;
		}
		if (this.#monitor) return this.#monitor;
		throw new NexusError("unavailable", `${this.channel}/${this.id} is not connected.`);
	}

	status(deliveries: number): AccountStatus {
		const ports = { stream: this.#stream, send: this.#send, monitor: this.#monitor };
		const processes: AccountStatus["processes"] = {};
		for (const [verb, port] of Object.entries(ports)) {
			if (!port) continue;
			const callError = verb === "monitor" ? undefined : this.#calls.error();
			processes[verb as keyof typeof ports] = unreachable(port.status(), callError);
		}
		const all: ProcessStatus[] = Object.values(processes);
		const { info, error } = this.#options.infos.cached(this.channel);
		const lastError = all.findLast((each) => each.lastError !== undefined)?.lastError ?? error;
		const { pausedUntil } = this.rate;
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

	/** Aborts when the account was removed from the configuration, or changed. */
	get retired(): AbortSignal {
		return this.#retiring.signal;
	}

	retire(): void {
		this.#retiring.abort();
	}

	/** No message of the account is accepted any more. */
	async stopMonitor(): Promise<void> {
		this.#monitored.abort();
		await this.#monitor?.stop();
	}

	async stop(): Promise<void> {
		this.#monitored.abort();
		await Promise.all([this.#monitor?.stop(), this.#stream?.stop(), this.#send?.stop()]);
	}

	#command(): readonly string[] {
		return commandOf(this.channel, this.config);
	}

	#process(verb: "stream" | "send" | "monitor"): Omit<ProcessSupervisorOptions, "lines" | "lost" | "shapes"> {
		const { limits, clock, random, log, lease } = this.#options;
		const format = verb === "send" ? [] : ["--format", "jsonl"];
		const notes = this.#notes();
		return {
			command: [...this.#command(), verb, "--account", this.id, ...format],
			env: { ...this.#env, ...(notes && { NEXUS_NOTES_FILE: this.#files().notes }) },
			notes,
			facts: { channel: this.channel, account: this.id, verb },
			limits: limits.process,
			rules: limits.restart,
			lease,
			endsWithLease: verb !== "monitor",
			// A monitor that does not read only misses the acknowledgements.
			mayIgnoreInput: verb === "monitor",
			onSpawn: (pid) => this.#accountFiles.onSpawn(verb, pid),
			changed: this.#options.onStatus,
			clock,
			random,
			log,
		};
	}

	/** Undefined when the adapter keeps its notes itself. */
	#notes(): KeptNotes | undefined {
		const { infos, notes } = this.#options;
		const { info } = infos.cached(this.channel);
		// Without `runId` the input of `send` ends before the daemon could acknowledge a note.
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
		this.rate.pause(status.retryAfterMs);
		onStatus();
		log.info({ channel, account, retryAfterMs: status.retryAfterMs }, "the platform limited the account's rate");
	}
}

export const speaks = (info: AdapterInfo, field: AdapterField): boolean => info.fields?.includes(field) === true;
