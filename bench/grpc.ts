/** The least that reads a stream of a remote procedure: node:http2, the frames of gRPC, and one field of each message. */

import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import { create, type DescMessage, type MessageInitShape, toBinary } from "@bufbuild/protobuf";

const WINDOW_BYTES = 1 << 24;
const HEAD_BYTES = 5;

/** Windows that no measured stream fills. */
export async function connectGrpc(port: number): Promise<ClientHttp2Session> {
	const session = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: WINDOW_BYTES } });
	await new Promise<void>((resolve, reject) => {
		session.once("connect", () => resolve());
		session.once("error", reject);
	});
	session.setLocalWindowSize(WINDOW_BYTES);
	// A connection that breaks breaks its streams, which say so.
	session.on("error", () => {});
	return session;
}

export interface Procedure<Request extends DescMessage> {
	/** `package.Service/Method`. */
	path: string;
	schema: Request;
	request: MessageInitShape<Request>;
	token?: string | undefined;
}

export interface GrpcReader {
	/** The server took the call. */
	opened: Promise<void>;
	/** The status was OK. */
	ended: Promise<void>;
}

/** Calls back with every message; its bytes are good until it returns. */
export function readGrpc<Request extends DescMessage>(
	session: ClientHttp2Session,
	{ path, schema, request, token }: Procedure<Request>,
	take: (message: Buffer) => void,
): GrpcReader {
	const opened = Promise.withResolvers<void>();
	const ended = Promise.withResolvers<void>();
	const stream = session.request({
		":method": "POST",
		":path": `/${path}`,
		"content-type": "application/grpc",
		te: "trailers",
		authorization: token === undefined ? undefined : `Bearer ${token}`,
	});
	stream.on("response", () => opened.resolve());
	stream.on("data", framesInto(take));
	const fail = (cause: Error) => {
		opened.reject(cause);
		ended.reject(cause);
	};
	statusOf(stream).then((status) => {
		if (status.code === "0") ended.resolve();
		else fail(new Error(`${path}: status ${status.code} ${status.message}`));
	}, fail);
	ended.promise.catch(() => {});
	stream.end(framed(toBinary(schema, create(schema, request))));
	return { opened: opened.promise, ended: ended.promise };
}

/** From the trailers, or from the headers when there are no trailers. */
function statusOf(stream: ClientHttp2Stream): Promise<{ code: string; message: string }> {
	return new Promise((resolve, reject) => {
		let found = { code: "missing", message: "" };
		const look = (headers: IncomingHttpHeaders) => {
			const { "grpc-status": code, "grpc-message": message } = headers;
			if (typeof code === "string")
				found = { code, message: typeof message === "string" ? decodeURIComponent(message) : "" };
		};
		stream.on("response", look);
		stream.on("trailers", look);
		stream.on("error", reject);
		stream.on("close", () => resolve(found));
	});
}

function framed(message: Uint8Array): Buffer {
	const head = Buffer.alloc(HEAD_BYTES);
	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}

/** Cuts what arrives into messages. A large one comes in many pieces, which are joined once. */
export function framesInto(take: (message: Buffer) => void): (bytes: Buffer) => void {
	let pieces: Buffer[] = [];
	let has = 0;
	let wants = HEAD_BYTES;
	return (bytes) => {
		pieces.push(bytes);
		has += bytes.length;
		if (has < wants) return;
		const all = pieces.length === 1 ? bytes : Buffer.concat(pieces);
		let at = 0;
		for (wants = HEAD_BYTES; all.length - at >= wants; wants = HEAD_BYTES) {
			wants += all.readUInt32BE(at + 1);
			if (all.length - at < wants) break;
			take(all.subarray(at + HEAD_BYTES, at + wants));
			at += wants;
		}
		pieces = at === all.length ? [] : [all.subarray(at)];
		has = all.length - at;
	};
}

/** The bytes of a field that is a text, bytes or a message; undefined when it is not set. Knows no fixed-size numbers. */
export function fieldOf(message: Buffer, field: number): Buffer | undefined {
	let at = 0;
	const varint = () => {
		let value = 0;
		for (let shift = 1; ; shift *= 128) {
			const byte = message[at++] ?? 0;
			value += (byte & 127) * shift;
			if (byte < 128) return value;
		}
	};
	while (at < message.length) {
		const tag = varint();
		const length = varint();
		if ((tag & 7) === 0) continue;
		if (tag >> 3 === field) return message.subarray(at, at + length);
		at += length;
	}
	return undefined;
}
