/** Messages that are written past Connect: in order, with back-pressure, and never after a cut. */

import { fromBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { StreamScenarioResponseSchema } from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { type Direct, directTo, OpenStream } from "../../../packages/daemon/src/edge/rpc/fast-stream/fast-stream.ts";
import { opening } from "../../../packages/daemon/src/edge/rpc/rpc.ts";
import { until } from "../../until.ts";

/** Holds what is written until it is taken. */
class Pipe {
	readonly written: Buffer[] = [];
	waitingBytes = 0;
	isFull = false;
	readonly #taken: (() => void)[] = [];

	write(chunk: Buffer, taken: () => void): boolean {
		this.written.push(chunk);
		if (this.isFull) this.waitingBytes += 16 * 1024;
		this.#taken.push(taken);
		return true;
	}

	drain(): void {
		this.isFull = false;
		this.waitingBytes = 0;
		for (const taken of this.#taken.splice(0)) taken();
	}
}

const directOver = (pipe: Pipe, type = "application/grpc", bytesMax = 1024): Direct | undefined =>
	directTo(pipe as never, StreamScenarioResponseSchema, type, bytesMax);

function openStream(direct: Direct | undefined) {
	const controller = new AbortController();
	const stream = new OpenStream({
		closes: "A",
		controller,
		establish() {},
		direct,
		shown: (cause, signal) => ConnectError.from(signal.aborted ? signal.reason : cause),
	});
	return { stream, signal: controller.signal };
}

async function* texts(...all: string[]) {
	for (const textDelta of all) yield { textDelta };
}

const decoded = (chunk: Buffer) => {
	expect([chunk[0], chunk.readUInt32BE(1)]).toEqual([0, chunk.length - 5]);
	return fromBinary(StreamScenarioResponseSchema, chunk.subarray(5)).textDelta;
};

describe("messages written past Connect", () => {
	it("gives the end to Connect alone, and writes every message in order", async () => {
		const pipe = new Pipe();
		const { stream, signal } = openStream(directOver(pipe));
		const given: string[] = [];
		for await (const { textDelta } of stream.carry(() => texts("a", "b", "c"), signal)) given.push(textDelta);
		expect(given).toEqual([]);
		expect(pipe.written.map(decoded)).toEqual(["a", "b", "c"]);
	});

	it("I6: takes nothing more while the connection is full", async () => {
		const pipe = new Pipe();
		pipe.isFull = true;
		const { stream, signal } = openStream(directOver(pipe));
		const reader = stream.carry(() => texts("a", "b", "c"), signal)[Symbol.asyncIterator]();
		const end = reader.next();
		await until("the pipe is full", () => pipe.waitingBytes > 0);
		for (let turns = 0; turns < 3; turns++) await new Promise(setImmediate);
		expect(pipe.written).toHaveLength(1);
		pipe.drain();
		expect((await end).done).toBe(true);
		expect(pipe.written.map(decoded)).toEqual(["a", "b", "c"]);
	});

	it("Z7: a cut while the connection is full is an error, and nothing is written after it", async () => {
		const pipe = new Pipe();
		pipe.isFull = true;
		const { stream, signal } = openStream(directOver(pipe));
		const reader = stream.carry(() => texts("a", "b", "c"), signal)[Symbol.asyncIterator]();
		const end = reader.next();
		await until("the pipe is full", () => pipe.waitingBytes > 0);
		stream.cut(new ConnectError("stopping"));
		await expect(end).rejects.toThrow("stopping");
		pipe.drain();
		await expect(reader.next()).rejects.toThrow("stopping");
		expect(pipe.written).toHaveLength(1);
	});

	it("I6: a message that several readers get is encoded once, and its bytes are shared", async () => {
		const message = { textDelta: "for all" };
		const pipes = [new Pipe(), new Pipe()];
		for (const pipe of pipes) directOver(pipe)!.write(message);
		expect(pipes[0]!.written.map(decoded)).toEqual(["for all"]);
		expect(pipes[1]!.written[0]).toBe(pipes[0]!.written[0]);
	});

	it("Z13: leaves a message that is too large to Connect, which refuses it", async () => {
		const pipe = new Pipe();
		const { stream, signal } = openStream(directOver(pipe, "application/grpc", 8));
		const given: string[] = [];
		for await (const { textDelta } of stream.carry(() => texts("a", "x".repeat(9), "c"), signal)) given.push(textDelta);
		expect(given).toEqual(["x".repeat(9)]);
		expect(pipe.written.map(decoded)).toEqual(["a", "c"]);
	});

	it.each([
		["application/grpc", true],
		["application/grpc-web+proto", true],
		["application/connect+proto", true],
		["application/connect+json", false],
		["application/grpc-web-text", false],
	])("%s: %s", (type, isDirect) => {
		expect(directOver(new Pipe(), type) !== undefined).toBe(isDirect);
	});
});

it("a stream that is left while it opens is closed once it has", async () => {
	const open = Promise.withResolvers<AsyncIterable<string>>();
	const reader = opening(() => open.promise)[Symbol.asyncIterator]();
	const first = reader.next();
	await reader.return?.();
	let closed = 0;
	const inner = {
		next: async () => ({ done: true, value: undefined }) as const,
		async return() {
			closed++;
			return { done: true, value: undefined } as const;
		},
	};
	open.resolve({ [Symbol.asyncIterator]: () => inner });
	expect((await first).done).toBe(true);
	expect(closed).toBe(1);
});
