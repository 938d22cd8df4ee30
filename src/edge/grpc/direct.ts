/** Writes the messages of a stream past Connect's pipeline, in which every message passes through some twenty promises. */

import { create, type DescMessage, toBinary } from "@bufbuild/protobuf";
import type { RpcResponse } from "./answer.ts";

export interface Direct {
	/** False: full until drained. Undefined: not written, because it is too large; Connect has the error for it. */
	write(message: Readonly<Record<string, unknown>>): boolean | undefined;
	whenDrained(go: () => void): void;
}

/** Of a message in gRPC, gRPC-web and Connect alike: no flags, as answers are not compressed, and the length. */
const HEAD_BYTES = 5;
/** In which messages are protobuf; the others have JSON. */
const BINARY = /^application\/(grpc|grpc\+proto|grpc-web|grpc-web\+proto|connect\+proto)$/;

export function directTo(
	response: RpcResponse,
	schema: DescMessage,
	contentType: string,
	bytesMax: number,
): Direct | undefined {
	if (!BINARY.test(contentType)) return undefined;
	const writable: { write(chunk: Uint8Array): boolean } = response;
	return {
		write(message) {
			const bytes = toBinary(schema, create(schema, message));
			if (bytes.length > bytesMax) return undefined;
			const chunk = Buffer.allocUnsafe(HEAD_BYTES + bytes.length);
			chunk[0] = 0;
			chunk.writeUInt32BE(bytes.length, 1);
			chunk.set(bytes, HEAD_BYTES);
			return writable.write(chunk);
		},
		whenDrained: (go) => void response.once("drain", go),
	};
}
