/** The edge's port: what it needs, what it offers, and its limits. */

import type { ConnectRouter } from "@connectrpc/connect";
import type { DaemonState, LabChannelJson, LabFaultRequest, ReadinessJson } from "@nexus-stream/protocol/api";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Engine } from "@nexus-stream/protocol/engine";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker } from "../broker/broker.ts";
import type { Bus } from "../bus/bus.ts";
import type { Mcp } from "../engine/engine.ts";
import type { Delivery } from "../ledger/deliveries/port.ts";
import type { InboundEvent } from "../ledger/inbox/port.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Accepted, AccountChanges, AccountStatus, ClientMessage, Nex, Outbound } from "../nex/nex.ts";
import type { Write } from "../std/write.ts";
import type { EdgeLimits } from "./limits.ts";

export { EDGE_LIMITS, type EdgeLimits } from "./limits.ts";

export interface Channels {
	outbound: Pick<Outbound, "accounts" | "counts" | "deliveries" | "deliver" | "health" | "admitWebhook" | "webhook">;
	pairing: Nex["pairing"];
	/** Takes up the accounts as they are stored now. */
	reload(): Promise<AccountChanges>;
	/** Channels whose adapter is configured and that have no account: nothing starts them. */
	idle(): readonly string[];
	lab: Lab;
}

export type LabFault = Required<LabFaultRequest>;

/** The channel lab: one run on every platform at once, through the real adapters and fake platforms. */
export interface Lab {
	/** Sends a message in a separate session, and its answer to the given channels, or all. */
	send(text: string, channels?: readonly string[]): Promise<LabRun>;
	/** The messages on the fake platforms, with the progress of the newest run's deliveries. */
	state(): Promise<LabState>;
	fault(fault: LabFault): Promise<void>;
	/** Puts a question to the given channels, or all, and resolves with its id. The first button that is pressed decides it everywhere. */
	ask(text: string, channels?: readonly string[]): Promise<string>;
	/** Presses a button of a message, as a person there does. */
	press(channel: string, message: string, label: string): Promise<void>;
	/** The lab's accounts; empty while it is not running. */
	accounts(): AccountStatus[];
	deliveries(query: Parameters<Outbound["deliveries"]>[0]): Promise<Delivery[]>;
	health(channel: string): ReturnType<Outbound["health"]>;
}

export interface LabRun {
	labId: string;
	runId: string;
	session: string;
	deliveries: readonly { channel: string; deliveryId: string }[];
}

export interface LabState {
	/** By the daemon's clock, as all other times here. */
	now: number;
	runId?: string;
	/** A question waits to be decided, or something of it is on its way. */
	questionOpen: boolean;
	channels: LabChannel[];
}

interface LabChannel extends Omit<LabChannelJson, "mode" | "state" | "position" | "delivery" | "rate_limited_until"> {
	delivery?: Delivery;
	pausedUntil?: number;
}

export interface HealthFeed {
	state(): DaemonState;
	/** Called with every change from now on; returns how to stop it. */
	subscribe(listener: (state: DaemonState) => void): () => void;
}

/** The caller that a request was made for. */
export interface Principal {
	owner: boolean;
	/** The application that the token belongs to; undefined for the owner. */
	appId?: string;
	/** The subject of the user token that came with the request. */
	userId?: string;
	/** The caller's network address. */
	address: string;
	/** The connection is encrypted, or does not leave this machine. */
	isPrivate: boolean;
}

/** Tokens of applications. */
export interface AppTokens {
	/** Answers without a read of the store, because every request asks. Undefined for a token that is unknown or revoked; `ended` aborts when it is revoked. */
	authenticate(token: string): { appId: string; ended: AbortSignal } | undefined;
}

/** Sign-ins of the page. */
export interface SignIns {
	/** Answers without a read of the store, because every request of a page asks. Undefined for a sign-in that has ended or never was. */
	find(id: string): { ended: AbortSignal } | undefined;
	/** Resolves once the sign-in is stored: it outlives restarts. */
	open(address: string, lastsMs: number): Promise<{ id: string }>;
	/** Ends a sign-in and its streams at once. An ended one stays as it is. */
	end(id: string, principal: Principal): Promise<void>;
	/** Records `count` failed attempts to sign in. */
	refused(address: string, count: number): void;
}

export interface ArtifactFile {
	id: string;
	name: string;
	mimeType: string;
	sizeBytes: number;
	sha256?: string;
	/** All of its bytes have arrived. */
	complete: boolean;
}

export interface ArtifactReader {
	find(id: string, principal: Principal): Promise<ArtifactFile | undefined>;
	/** The bytes from `from` up to, and without, `to`. */
	stream(file: ArtifactFile, from: number, to: number): AsyncIterable<Uint8Array>;
}

/** Registers methods of the runtime contract. A method that no feature registers answers `unimplemented`. */
export type RegisterMethods = (router: Pick<ConnectRouter, "service">, limits: EdgeLimits) => void;

export interface EdgeDeps {
	bus: Bus;
	ledger: Ledger;
	broker: Broker;
	/** The engine that answers. */
	engine: Pick<Engine, "name" | "scripted">;
	/** Takes messages in. */
	submit(message: ClientMessage): Promise<Accepted>;
	/** Takes back a message that waits. */
	cancel(eventId: string): Promise<InboundEvent>;
	/** Decides what runs wait for. */
	approvals: Nex["approvals"];
	trust: Nex["trust"];
	/** Continues a run that was cut off, as a new run. */
	proceed(runId: string): Promise<{ runId: string }>;
	/** Answers the messages of a run that was cut off with a new run. */
	retry(runId: string): Promise<{ runId: string }>;
	channels: Channels;
	mcp: Pick<Mcp, "status" | "start">;
	/** The owner's. */
	token: string;
	apps: AppTokens;
	signIns: SignIns;
	/** The built page; undefined = `/` answers with a hint. */
	pageDir: string | undefined;
	/** The defaults hold for those that are left out. */
	limits: Partial<EdgeLimits>;
	log: Log;
	/** Loads the methods of the runtime contract: the first call does it, because they need much code that a start does not. */
	methods(): Promise<RegisterMethods>;
	artifacts: ArtifactReader;
	/** Begins a delivery unless one was begun with this key; resolves with the id of the first one's text. */
	deliverOnce(
		request: { key: string | undefined; body: unknown; result: string },
		begin: (claim: readonly Write[]) => Promise<unknown>,
	): Promise<{ id: string }>;
	/** Records who aborted a run. */
	abortAsked(runId: string, address: string): void;
	/** How the daemon is, as it changes. */
	health: HealthFeed;
	readiness(): ReadinessJson;
	metrics: { contentType: string; render(): Promise<string> };
	version: string;
	/** Names besides localhost, IP addresses and the bound host that a request's Host may carry. */
	allowedHosts: readonly string[];
	/** Addresses and CIDR blocks of reverse proxies, whose `Forwarded` and `X-Forwarded-…` headers are believed. */
	trustedProxies: readonly string[];
	clock: Clock;
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
