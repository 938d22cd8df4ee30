/** An edge in this process with the services that a test gives it, and clients of every protocol with the owner's token. */

import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { onTestFinished } from "vitest";
import type { GrpcTls } from "../../../packages/daemon/src/edge/edge.ts";
import type { Services } from "../../../packages/daemon/src/runtime/wiring/port.ts";
import type { DaemonState } from "../../../packages/protocol/src/gen/api.ts";
import { createRig, type Rig, type RigOptions, TOKEN } from "../rig.ts";

export const PROTOCOLS = ["grpc", "grpc-web", "connect"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface GrpcKitOptions extends Omit<RigOptions, "services"> {
	/** As they are, or made of the store. */
	services?: Partial<Services> | RigOptions["services"];
	/** TLS of the gRPC port. */
	tls?: GrpcTls;
}

export interface GrpcKit {
	rig: Rig;
	/** The URL of the gRPC port. */
	grpcUrl: string;
	/** As `host:port`. */
	grpcTarget: string;
	/** gRPC over the gRPC port; gRPC-web and Connect over the main one. Without a token when it is "". */
	transport(protocol?: Protocol, token?: string): Transport;
	client<S extends DescService>(service: S, protocol?: Protocol, token?: string): Client<S>;
	close(): Promise<void>;
}

/** The owner's token with every call, unless the call names another. */
const withToken =
	(token: string): Interceptor =>
	(next) =>
	(request) => {
		if (token !== "" && !request.header.has("authorization")) request.header.set("authorization", `Bearer ${token}`);
		return next(request);
	};

export async function startGrpcKit({ services = {}, tls, ...options }: GrpcKitOptions = {}): Promise<GrpcKit> {
	const made = typeof services === "function" ? services : () => services;
	const rig = await createRig({ ...options, services: made });
	const { url: grpcUrl } = await rig.edge.listenGrpc("127.0.0.1", 0, tls);
	const transport = (protocol: Protocol = "grpc", token = TOKEN): Transport => {
		const interceptors = [withToken(token)];
		switch (protocol) {
			case "grpc":
				return createGrpcTransport({ baseUrl: grpcUrl, interceptors });
			case "grpc-web":
				return createGrpcWebTransport({ baseUrl: rig.url, httpVersion: "1.1", interceptors });
			case "connect":
				return createConnectTransport({ baseUrl: rig.url, httpVersion: "1.1", interceptors });
			default:
				return protocol satisfies never;
		}
	};
	return {
		rig,
		grpcUrl,
		grpcTarget: new URL(grpcUrl).host,
		transport,
		client: (service, protocol, token) => createClient(service, transport(protocol, token)),
		close: () => rig.close(),
	};
}

/** A kit that is closed with its test. */
export async function kitForTest(options?: GrpcKitOptions): Promise<GrpcKit> {
	const kit = await startGrpcKit(options);
	onTestFinished(() => kit.close());
	return kit;
}

export interface Ended<Message> {
	messages: Message[];
	/** Undefined: the stream ended with OK. */
	error?: ConnectError;
}

/** Reads a stream to its end, whatever it is. */
export async function readStream<Message>(
	stream: AsyncIterable<Message>,
	seen?: (message: Message) => unknown,
): Promise<Ended<Message>> {
	const messages: Message[] = [];
	try {
		for await (const message of stream) {
			messages.push(message);
			seen?.(message);
		}
		return { messages };
	} catch (cause) {
		return { messages, error: ConnectError.from(cause) };
	}
}

/** Reads a stream in the background, at most until its test ends. */
export function following<Message>(open: (signal: AbortSignal) => AsyncIterable<Message>) {
	const abort = new AbortController();
	const seen: Message[] = [];
	const ended = readStream(open(abort.signal), (message) => seen.push(message));
	onTestFinished(() => abort.abort());
	return { seen, ended, stop: () => abort.abort() };
}

/** A daemon's health that the test sets. */
export function healthFeed() {
	const listeners = new Set<(state: DaemonState) => void>();
	let state: DaemonState = "READY";
	return {
		listeners,
		set(next: DaemonState) {
			state = next;
			for (const listener of listeners) listener(next);
		},
		health: {
			state: () => state,
			subscribe(listener: (state: DaemonState) => void) {
				listeners.add(listener);
				return () => listeners.delete(listener);
			},
		},
	};
}

/** The error that a call is refused with. */
export async function errorOf(call: Promise<unknown>): Promise<ConnectError> {
	try {
		await call;
	} catch (cause) {
		return ConnectError.from(cause);
	}
	throw new Error("the call was not refused");
}

/** Code and reason of an error, as a test compares them. */
export const statusOf = (error: ConnectError | undefined) =>
	error && { code: Code[error.code], reason: error.metadata.get("x-nexus-reason-code") };
