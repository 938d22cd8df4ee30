/** HTTP/2 by hand, for clients that no library would be: windows that stay closed, requests that do not end, and the flags of frames. */

import { connect, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { StreamScenarioRequestSchema } from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { BEARER } from "../rig.ts";

export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, windowUpdate: 8 } as const;
export const END_STREAM = 1;
const END_HEADERS = 4;
const ACK = 1;
const INITIAL_WINDOW_SIZE = 4;
const HEAD_BYTES = 9;

export interface RawFrame {
	type: number;
	flags: number;
	stream: number;
	payload: Buffer;
}

export interface RawHttp2 {
	readonly frames: RawFrame[];
	/** The frames of a stream so far. */
	of(stream: number): RawFrame[];
	request(stream: number, headers: Readonly<Record<string, string>>, body?: Buffer, end?: boolean): void;
	/** Lets the server send so many bytes more: of a stream, and on the connection. */
	grant(stream: number, bytes: number): void;
	destroy(): void;
}

/** The server may send `windowBytes` of each stream, until it is granted more. */
export function rawHttp2(target: string, windowBytes: number): RawHttp2 {
	const [host, port] = target.split(":") as [string, string];
	const socket: Socket = connect(Number(port), host);
	socket.on("error", () => {});
	const frames: RawFrame[] = [];
	const send = (type: number, flags: number, stream: number, payload: Buffer) => {
		const head = Buffer.alloc(HEAD_BYTES);
		head.writeUIntBE(payload.length, 0, 3);
		head[3] = type;
		head[4] = flags;
		head.writeUInt32BE(stream, 5);
		socket.write(Buffer.concat([head, payload]));
	};
	let left = Buffer.alloc(0);
	socket.on("data", (bytes) => {
		left = Buffer.concat([left, bytes]);
		while (left.length >= HEAD_BYTES && left.length >= HEAD_BYTES + left.readUIntBE(0, 3)) {
			const end = HEAD_BYTES + left.readUIntBE(0, 3);
			const payload = left.subarray(HEAD_BYTES, end);
			const frame = { type: left[3]!, flags: left[4]!, stream: left.readUInt32BE(5), payload };
			left = left.subarray(end);
			frames.push(frame);
			if (frame.type === FRAME.ping && frame.flags === 0) send(FRAME.ping, ACK, 0, payload);
			if (frame.type === FRAME.settings && frame.flags === 0) send(FRAME.settings, ACK, 0, Buffer.alloc(0));
		}
	});
	socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	const settings = Buffer.alloc(6);
	settings.writeUInt16BE(INITIAL_WINDOW_SIZE);
	settings.writeUInt32BE(windowBytes, 2);
	send(FRAME.settings, 0, 0, settings);
	return {
		frames,
		of: (stream) => frames.filter((frame) => frame.stream === stream),
		request(stream, headers, body = Buffer.alloc(0), end = true) {
			send(FRAME.headers, END_HEADERS, stream, Buffer.concat(Object.entries(headers).map(literal)));
			send(FRAME.data, end ? END_STREAM : 0, stream, body);
		},
		grant(stream, bytes) {
			const payload = Buffer.alloc(4);
			payload.writeUInt32BE(bytes);
			for (const id of [0, stream]) send(FRAME.windowUpdate, 0, id, payload);
		},
		destroy: () => void socket.destroy(),
	};
}

/** A header as HPACK spells one that is in no table; names and values are short. */
function literal([name, value]: readonly [string, string]): Buffer {
	return Buffer.concat([Buffer.from([0, name.length]), Buffer.from(name), lengthOf(value), Buffer.from(value)]);
}

const lengthOf = (value: string): Buffer =>
	value.length < 127 ? Buffer.from([value.length]) : Buffer.from([127, value.length - 127]);

/** The headers of a call with the owner's token. */
export const callHeaders = (path: string, target: string) => ({
	":method": "POST",
	":scheme": "http",
	":path": path,
	":authority": target,
	"content-type": "application/grpc",
	te: "trailers",
	...BEARER,
});

export const STREAM_SCENARIO = "/nexus.runtime.v1.RuntimeAiService/StreamScenario";

/** The body of a call that reads this run. */
export const readingRun = (runId: string): Buffer =>
	framed(toBinary(StreamScenarioRequestSchema, create(StreamScenarioRequestSchema, { runId })));

/** A message as gRPC frames it. */
export function framed(message: Uint8Array): Buffer {
	const head = Buffer.alloc(5);
	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}
