/** The gRPC port before anything is built for a call: the token is checked by the bare headers, and a caller without one gets little. */

import type {
	Http2ServerRequest,
	Http2ServerResponse,
	IncomingHttpHeaders,
	ServerHttp2Session,
	ServerHttp2Stream,
} from "node:http2";
import type { Socket } from "node:net";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Caller, Identifiable } from "../http/gate.ts";
import type { Lobby } from "../http/lobby.ts";
import type { Strangers } from "../http/strangers.ts";
import type { EdgeLimits } from "../port.ts";

export interface DoorParts {
	limits: EdgeLimits;
	/** Identifies the caller. */
	identify(request: Identifiable): Caller;
	lobby: Pick<Lobby, "leave">;
	strangers: Strangers;
	/** Refuses a call of gRPC that has no token, without a look at its body. */
	refuse(stream: ServerHttp2Stream, contentType: string): void;
	answer(request: Http2ServerRequest, response: Http2ServerResponse, caller: Caller): void;
	clock: Clock;
}

/** One connection. */
export interface Peer {
	session: ServerHttp2Session;
	/** As the lobby knows it: below TLS. */
	socket: Socket | undefined;
	address: string;
	encrypted: boolean;
	/** It has sent a token that is good. */
	proven: boolean;
}

type Classes = Pick<typeof import("node:http2"), "Http2ServerRequest" | "Http2ServerResponse" | "constants">;
export type OnStream = (
	peer: Peer,
	stream: ServerHttp2Stream,
	headers: IncomingHttpHeaders,
	rawHeaders: string[],
) => void;

/** Needs no token: probes send none. */
const OPEN_PATHS = "/grpc.health.v1.Health/";
const GRPC = /^application\/grpc(?:[+;]|$)/;

export function createDoor(
	parts: DoorParts,
	{ Http2ServerRequest, Http2ServerResponse, constants }: Classes,
): OnStream {
	const { limits, lobby, strangers, clock } = parts;
	const calm = (stream: ServerHttp2Stream) => stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
	/** Others share the connection of a proxy, and the owner may share one with callers that send no token. */
	const turnAway = (peer: Peer, stream: ServerHttp2Stream, caller: Caller) => {
		if (caller.proxied || peer.proven) calm(stream);
		else peer.session.destroy();
	};
	const serve = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[], caller: Caller) =>
		parts.answer(new Http2ServerRequest(stream, headers, {}, rawHeaders), new Http2ServerResponse(stream), caller);
	return (peer, stream, headers, rawHeaders) => {
		const { address: remoteAddress, encrypted } = peer;
		const caller = parts.identify({ headers, socket: { remoteAddress, encrypted } });
		if (caller.proof) {
			if (!peer.proven && peer.socket) lobby.leave(peer.socket);
			peer.proven = true;
			return serve(stream, headers, rawHeaders, caller);
		}
		stream.on("error", () => {});
		if (!strangers.calls(caller.address)) return turnAway(peer, stream, caller);
		if (bytesOf(rawHeaders) > limits.tokenlessHeadersBytesMax) return calm(stream);
		strangers.enter(caller.address, stream, () => calm(stream));
		stream.once("aborted", () => strangers.calls(caller.address));
		const contentType = headers["content-type"] ?? "";
		if (headers[":path"]?.startsWith(OPEN_PATHS) || !GRPC.test(contentType))
			return serve(stream, headers, rawHeaders, caller);
		if (caller.heldMs === undefined) return parts.refuse(stream, contentType);
		clock.after(caller.heldMs, () => stream.closed || parts.refuse(stream, contentType));
	};
}

function bytesOf(rawHeaders: readonly string[]): number {
	let bytes = 0;
	for (const text of rawHeaders) bytes += text.length;
	return bytes;
}
