/** Writes the messages of a stream past Connect's pipeline, in which every message passes through some twenty promises. */

import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { OutgoingResponse } from "./outgoing.ts";

export interface Direct {
	/** False: full until drained. Undefined: not written, because it is too large; Connect has the error for it. */
	write(message: Readonly<Record<string, unknown>>): boolean | undefined;
	whenDrained(go: () => void): void;
}

/** Unsent bytes of a connection: another message is written while there are fewer than this. */
const WAITING_BYTES_MAX = 16 * 1024;
/** Where a message keeps its bytes: one that several readers get is encoded for the first of them. */
const BYTES = Symbol("bytes");
/** A message's head in gRPC, gRPC-web and Connect alike: no flags, as answers are not compressed, and the length. */
const HEAD_BYTES = 5;
/** In which messages are protobuf; the others have JSON. */
const BINARY = /^application\/(grpc|grpc\+proto|grpc-web|grpc-web\+proto|connect\+proto)$/;

export function directTo(
	outgoing: Pick<OutgoingResponse, "write" | "waitingBytes">,
	schema: DescMessage,
	contentType: string,
	bytesMax: number,
): Direct | undefined {
	if (!BINARY.test(contentType)) return undefined;
	let isFull = false;
	let drained = () => {};
	const taken = (cause?: Error | null) => {
		if (!isFull || cause || outgoing.waitingBytes >= WAITING_BYTES_MAX) return;
		isFull = false;
		drained();
	};
	return {
		write(message: Spelled) {
			const chunk = message[BYTES] ?? spell(schema, message);
			message[BYTES] = chunk;
			if (chunk.length - HEAD_BYTES > bytesMax) return undefined;
			outgoing.write(chunk, taken);
			isFull = outgoing.waitingBytes >= WAITING_BYTES_MAX;
			return !isFull;
		},
		whenDrained(go) {
			drained = go;
		},
	};
}

type Spelled = Readonly<Record<string, unknown>> & { [BYTES]?: Buffer };

function spell(schema: DescMessage, message: Readonly<Record<string, unknown>>): Buffer {
	const bytes = toBinary(schema, create(schema, message));
	const chunk = Buffer.allocUnsafe(HEAD_BYTES + bytes.length);
	chunk[0] = 0;
	chunk.writeUInt32BE(bytes.length, 1);
	chunk.set(bytes, HEAD_BYTES);
	return chunk;
}
