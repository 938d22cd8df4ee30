/** The edge's port: what it needs, what it offers, and its limits. */

import type { DaemonState, LabCallJson, LabFaultRequest, LabMessageJson, ReadinessJson } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../broker/broker.ts";
import type { Bus } from "../bus/bus.ts";
import type { Mcp } from "../engine/engine.ts";
import type { InboundEvent, Ledger } from "../ledger/ledger.ts";
import type {
	Accepted,
	AccountChanges,
	AccountStatus,
	ClientMessage,
	DeliveryInfo,
	Nex,
	Outbound,
} from "../nex/nex.ts";
import type { Applications } from "../services/apps/port.ts";
import type { IdempotencyRows } from "../services/kit/rows.ts";
import type { MemoryItem, MemoryRows } from "../services/memory/rows.ts";
import type { Services } from "../services/services.ts";
import type { SignInRegister } from "../services/signins/port.ts";

export interface EdgeLimits {
	/** A larger request body is refused with 413, unread. */
	bodyBytesMax: number;
	/** A JSON body with more values, or one that is nested deeper, is refused unparsed. */
	bodyValuesMax: number;
	bodyDepthMax: number;
	/** A larger webhook request is refused with 413; in base64 it has to fit one line to the adapter. */
	webhookBodyBytesMax: number;
	/** Webhook requests that wait for their adapters, all together and for one account; further ones are refused at once. */
	webhookRequestsMax: number;
	webhookRequestsPerAccountMax: number;
	/** Those of an account's requests that one address may have waiting: anybody can send them, and the account has room for others. */
	webhookRequestsPerClientMax: number;
	/** Bytes of their bodies, counted as they arrive. */
	webhookBytesMax: number;
	webhookBytesPerAccountMax: number;
	webhookBytesPerClientMax: number;
	/** The body of a webhook request must have arrived whole within this time. */
	webhookBodyTimeoutMs: number;
	/** Larger request headers are refused with 431. */
	headersBytesMax: number;
	connectionsMax: number;
	/** Connections from one address; over a trusted proxy: requests and streams of one client at a time. */
	connectionsPerClientMax: number;
	/** SSE readers, WebSockets and streams of remote procedures together. */
	streamsMax: number;
	/** Those of one application. */
	streamsPerAppMax: number;
	/** Those of all who have no token: they watch the daemon's health. */
	streamsTokenlessMax: number;
	/** Requests without a token that are open, on both ports together and from one client; one more cuts the oldest. */
	tokenlessRequestsMax: number;
	tokenlessRequestsPerClientMax: number;
	/** A request without a token has a body of this size at most, which must have arrived whole within this time. */
	tokenlessBodyBytesMax: number;
	tokenlessBodyTimeoutMs: number;
	/** Headers of a call without a token on the gRPC port, uncompressed. */
	tokenlessHeadersBytesMax: number;
	/** Calls without a token from one client to the gRPC port; their resets count again. A client with more is refused for a while. */
	tokenlessCallsPerSecondMax: number;
	tokenlessRefusedMs: number;
	/** Connections of a port that are read before they sent a token, of all and of one client; further ones wait. */
	tokenlessConnectionsMax: number;
	tokenlessConnectionsPerClientMax: number;
	/** Wrong tokens from one client within a minute; the answers to further ones are held back for a while. */
	tokenFailuresPerMinuteMax: number;
	tokenFailureDelayMs: number;
	/** A larger message of a remote call is refused with RESOURCE_EXHAUSTED. */
	grpcReadBytesMax: number;
	/** A larger message is not sent. */
	grpcWriteBytesMax: number;
	/** Calls that one connection of the gRPC port may have open. */
	grpcStreamsPerConnectionMax: number;
	/** A connection whose client resets more streams than this, for long, is closed. */
	grpcResetsPerSecondMax: number;
	/** A request's headers must have arrived within this time. */
	headersTimeoutMs: number;
	/** A request must have arrived whole within this time. */
	requestTimeoutMs: number;
	/** An idle connection is kept this long for its next request. */
	keepAliveMs: number;
	/** An idle SSE reader gets a comment, a WebSocket a ping, this often. */
	heartbeatMs: number;
	/** A reader that takes nothing for this long while data waits is disconnected; it can resume. */
	stalledReaderMs: number;
	/** The longest that further pieces of a text are held back for a reader while the event loop is busy; 0 = not at all. */
	flushMsMax: number;
	wsMessageBytesMax: number;
	wsSubscriptionsMax: number;
	/** A WebSocket with more than this waiting to be sent stops pulling. */
	wsBufferedBytesMax: number;
	/** How long a sign-in code can be redeemed. */
	signInCodeMs: number;
	/** Sign-in codes that wait to be redeemed; the oldest goes first. */
	signInCodesMax: number;
	/** Failed sign-ins from one address within a minute. */
	signInFailuresPerMinuteMax: number;
	/** How long the cookie of a sign-in is good for. */
	signedInMs: number;
	/** Rows that a list answers with at most. */
	listItemsMax: number;
	/** Frames that one NDJSON answer holds at most. */
	framesMax: number;
}

export const EDGE_LIMITS: EdgeLimits = {
	bodyBytesMax: 4 * 1024 * 1024,
	bodyValuesMax: 20_000,
	bodyDepthMax: 64,
	// The largest that platforms send: Meta's are up to 3 MB.
	webhookBodyBytesMax: 3_000_000,
	webhookRequestsMax: 256,
	webhookRequestsPerAccountMax: 64,
	webhookRequestsPerClientMax: 32,
	webhookBytesMax: 48_000_000,
	webhookBytesPerAccountMax: 24_000_000,
	webhookBytesPerClientMax: 12_000_000,
	webhookBodyTimeoutMs: 5000,
	headersBytesMax: 16 * 1024,
	connectionsMax: 16_384,
	connectionsPerClientMax: 4096,
	streamsMax: 8192,
	streamsPerAppMax: 2048,
	streamsTokenlessMax: 256,
	tokenlessRequestsMax: 256,
	tokenlessRequestsPerClientMax: 64,
	tokenlessBodyBytesMax: 4096,
	tokenlessBodyTimeoutMs: 5000,
	tokenlessHeadersBytesMax: 4096,
	tokenlessCallsPerSecondMax: 100,
	tokenlessRefusedMs: 500,
	tokenlessConnectionsMax: 256,
	tokenlessConnectionsPerClientMax: 64,
	tokenFailuresPerMinuteMax: 60,
	tokenFailureDelayMs: 1000,
	grpcReadBytesMax: 4 * 1024 * 1024,
	grpcWriteBytesMax: 1024 * 1024,
	grpcStreamsPerConnectionMax: 1024,
	grpcResetsPerSecondMax: 100,
	headersTimeoutMs: 10_000,
	requestTimeoutMs: 30_000,
	keepAliveMs: 5000,
	heartbeatMs: 15_000,
	stalledReaderMs: 5 * 60_000,
	flushMsMax: 20,
	wsMessageBytesMax: 64 * 1024,
	wsSubscriptionsMax: 64,
	wsBufferedBytesMax: 256 * 1024,
	signInCodeMs: 10 * 60_000,
	signInCodesMax: 64,
	signInFailuresPerMinuteMax: 10,
	signedInMs: 30 * 24 * 60 * 60_000,
	listItemsMax: 200,
	framesMax: 1_000_000,
};

export interface Channels {
	outbound: Pick<Outbound, "accounts" | "counts" | "deliveries" | "deliver" | "health" | "admitWebhook" | "webhook">;
	pairing: Nex["pairing"];
	/** Takes up the accounts as they are stored now. */
	reload?(): Promise<AccountChanges>;
	/** Channels whose adapter is configured and that have no account: nothing starts them. */
	idle?(): readonly string[];
	lab?: Lab;
}

export type LabFault = Required<LabFaultRequest>;

/** The channel lab: one run on every platform at once, through the real adapters and fake platforms. */
export interface Lab {
	/** Sends a message in a session of its own, and its answer to the given channels, or all. */
	send(text: string, channels?: readonly string[]): Promise<LabRun>;
	/** What the fake platforms show, with how far the deliveries of the newest run are. */
	state(): Promise<LabState>;
	fault(fault: LabFault): Promise<void>;
	/** Puts a question to the given channels, or all, and resolves with its id. The first button that is pressed decides it everywhere. */
	ask(text: string, channels?: readonly string[]): Promise<string>;
	/** Presses a button of a message, as a person there does. */
	press(channel: string, message: string, label: string): Promise<void>;
	/** Those of the lab, once it was used. */
	accounts(): AccountStatus[];
	deliveries(query: Parameters<Outbound["deliveries"]>[0]): Promise<DeliveryInfo[]>;
	health(channel: string): ReturnType<Outbound["health"]>;
}

export interface LabRun {
	labId: string;
	runId: string;
	session: string;
	deliveries: readonly { channel: string; deliveryId: string }[];
}

export interface LabState {
	/** By the daemon's clock, which the other times are told by. */
	now: number;
	runId?: string;
	/** A question waits to be decided, or something of it is on its way. */
	questionOpen: boolean;
	channels: {
		channel: string;
		/** Its adapter has been started. */
		ready: boolean;
		delivery?: DeliveryInfo;
		messages: LabMessageJson[];
		/** A preview below the messages, on platforms that have one. */
		draft?: LabMessageJson;
		typing: boolean;
		/** The newest ones. */
		calls: LabCallJson[];
		calls_total: number;
		pausedUntil?: number;
	}[];
}

export interface HealthFeed {
	state(): DaemonState;
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (state: DaemonState) => void): () => void;
}

export interface EdgeDeps {
	bus: Bus;
	ledger: Ledger;
	rows: { memory: MemoryRows; idempotency: IdempotencyRows };
	broker: Broker;
	/** What answers. */
	engine?: { name: string; scripted?: boolean };
	/** Takes messages in. */
	submit(message: ClientMessage): Promise<Accepted>;
	/** Takes back a message that waits. */
	cancel(eventId: string): Promise<InboundEvent>;
	/** Decides what runs wait for; without it nothing is remembered for a session. */
	approvals?: Nex["approvals"];
	trust?: Nex["trust"];
	/** Whether agents may note and recall. */
	remembers?: boolean;
	/** Notes that one recall answers with. */
	recallItemsMax?: number;
	/** Removes an item of the memory; one that is not there is `not_found`. */
	forget?(id: string): Promise<void>;
	/** Notes something in a bank; what is there already is not noted twice. */
	retain?(bank: string, text: string): Promise<MemoryItem>;
	/** The agents of the engine that has some, by name. */
	agents?: Readonly<Record<string, { model?: string }>>;
	/** Goes on with a run that was cut off, as a new run. */
	proceed(runId: string): Promise<{ runId: string }>;
	/** Answers the messages of a run that was cut off with a new run. */
	retry(runId: string): Promise<{ runId: string }>;
	/** Chat platforms; without it there are none. */
	channels?: Channels;
	/** MCP servers; without it there are none. */
	mcp?: Pick<Mcp, "status" | "start">;
	/** The owner's. */
	token: string;
	/** Applications with tokens of their own; without it there are none. */
	apps?: Applications;
	signIns: SignInRegister;
	/** The built page; without it `/` answers with a hint. */
	pageDir?: string;
	limits?: Partial<EdgeLimits>;
	log: Log;
	/** The runtime contract; without it there are no remote procedures. */
	services?: Services;
	/** How the daemon is, as it changes; without it only what `readiness` says when it is asked. */
	health?: HealthFeed;
	readiness(): ReadinessJson;
	metrics: { contentType: string; render(): Promise<string> };
	version: string;
	/** Names besides localhost, IP addresses and the bound host that a request's Host may carry. */
	allowedHosts?: readonly string[];
	/** Addresses and CIDR blocks of reverse proxies, whose `Forwarded` and `X-Forwarded-…` headers are believed. */
	trustedProxies?: readonly string[];
	clock?: Clock;
}

/** PEM texts. */
export interface GrpcTls {
	cert: string;
	key: string;
}

export interface EdgeStats {
	/** Requests since start. */
	requests: number;
	connections: number;
	sseReaders: number;
	webSockets: number;
	/** Open streams of remote procedures, over both ports. */
	grpcStreams: number;
	/** Connections to the gRPC port. */
	grpcConnections: number;
	subscriptions: number;
	/** Readers that were disconnected because they took nothing. */
	stalledReaders: number;
	/** How far apart the flushes of one log are now; 0 = records leave at once. */
	flushSpacingMs: number;
	/** Flushes of a log that were put off because the event loop was busy. */
	deferredFlushes: number;
	/** Requests with a token that is not good. */
	tokenFailures: number;
	/** Requests, calls and connections without a token that were cut or refused. */
	tokenlessRefused: number;
}

export interface Edge {
	/** Port 0 takes a free one. */
	listen(host: string, port: number): Promise<{ url: string }>;
	/** Opens the gRPC port; with TLS when there is a certificate. */
	listenGrpc(host: string, port: number, tls?: GrpcTls): Promise<{ url: string }>;
	/** The address to open, with a fresh code that signs the page in once. */
	signInUrl(): string;
	/**
	 * The daemon stops: readers over HTTP are cut without a fake terminal, new work and subscriptions are refused. The ports stay open: remote
	 * calls that only read go on, and so do streams that end by themselves, with their runs or their file.
	 */
	stop(): Promise<void>;
	/** Waits for those until the deadline, cuts what is left, lets requests finish, and closes the ports. */
	close(deadlineMs: number): Promise<void>;
	stats(): EdgeStats;
}
