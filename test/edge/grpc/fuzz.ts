/** Garbage against the gRPC port: broken messages, broken envelopes, strange metadata. Whatever comes, there is a status. */

import { type ClientHttp2Session, connect } from "node:http2";
import type { DescMethod } from "@bufbuild/protobuf";
import { seededRandom } from "../../../packages/daemon/src/std/seed.ts";
import { methods, procedureOf } from "./descriptors.ts";

export interface FuzzResult {
	/** How often, by `grpc-status`, by the status of HTTP where it was no call of gRPC, `open` for a stream that was hung up on, or `reset`. */
	statuses: Map<string, number>;
}

export interface FuzzOptions {
	url: string;
	token: string;
	count: number;
	seed: number;
	/** Calls at a time. */
	parallel?: number;
}

type Random = () => number;

/** Resolves when every input has been answered; rejects when one was not. */
export async function fuzzCalls({ url, token, count, seed, parallel = 32 }: FuzzOptions): Promise<FuzzResult> {
	const random = seededRandom(seed);
	const statuses = new Map<string, number>();
	let session = await open(url);
	let left = count;
	const work = async () => {
		while (left-- > 0) {
			// A connection may be closed for what was sent over it; the next one has to work.
			if (session.closed || session.destroyed) session = await open(url);
			const status = await call(session, token, random);
			statuses.set(status, (statuses.get(status) ?? 0) + 1);
		}
	};
	await Promise.all(Array.from({ length: parallel }, work));
	session.destroy();
	return { statuses };
}

async function open(url: string): Promise<ClientHttp2Session> {
	const session = connect(url);
	session.on("error", () => {});
	return session;
}

const ANSWER_MS_MAX = 60_000;
const HANG_UP_MS = 20;

function call(session: ClientHttp2Session, token: string, random: Random): Promise<string> {
	const method = pick(random, methods);
	const headers = {
		":method": random() < 0.97 ? "POST" : "GET",
		":path": `/${random() < 0.97 ? procedureOf(method) : garbageText(random, 20)}`,
		"content-type": pick(random, TYPES),
		authorization: random() < 0.9 ? `Bearer ${token}` : garbageText(random, 40),
		...metadata(random),
	};
	return new Promise((resolve, reject) => {
		const stream = session.request(headers);
		let status: string | undefined;
		// Streams without an end are cancelled after their first message.
		const isOpen = method.methodKind !== "unary";
		stream.on("response", (got) => {
			const isGrpc = /^application\/grpc(\+|$)/.test(String(got["content-type"]));
			const said = got["grpc-status"] as string | undefined;
			status = said ?? (isGrpc && got[":status"] === 200 ? undefined : `http ${got[":status"]}`);
			if (!isOpen || said !== undefined) return;
			setTimeout(() => {
				status ??= "open";
				stream.close();
			}, HANG_UP_MS).unref();
		});
		stream.on("trailers", (got) => {
			status = got["grpc-status"] as string | undefined;
		});
		stream.on("error", () => {});
		stream.on("close", () => {
			clearTimeout(late);
			resolve(status ?? (stream.rstCode === 0 ? "none" : "reset"));
		});
		const late = setTimeout(() => {
			reject(new Error(`no answer to ${JSON.stringify(headers)}`));
			stream.close();
		}, ANSWER_MS_MAX);
		stream.resume();
		stream.end(body(method, random));
	});
}

const TYPES = [
	...["application/grpc", "application/grpc", "application/grpc+proto", "application/grpc+json"],
	...["application/grpc-web+proto", "application/connect+proto", "application/proto", "application/json", "text/plain"],
];

function metadata(random: Random): Record<string, string> {
	const found: Record<string, string> = {};
	const names = [
		"grpc-timeout",
		"grpc-encoding",
		"x-nexus-user-token",
		"x-nexus-key-source",
		"x-nexus-provider-endpoint",
	];
	for (const name of [...names, "x-random", "x-random-bin", "connect-timeout-ms", "content-encoding"])
		if (random() < 0.15) found[name] = garbageText(random, 200);
	return found;
}

/** An envelope around something that may be a message. */
function body(method: DescMethod, random: Random): Buffer {
	const message = random() < 0.5 ? garbageBytes(random, 200) : nearlyMessage(method, random);
	if (random() < 0.1) return message;
	const head = Buffer.alloc(5);
	head[0] = random() < 0.9 ? 0 : Math.floor(random() * 256);
	head.writeUInt32BE(random() < 0.9 ? message.length : Math.floor(random() * 2 ** 32), 1);
	return Buffer.concat(random() < 0.95 ? [head, message] : [head, message, head, message]);
}

/** Fields that the message has, with values of any wire type. */
function nearlyMessage({ input }: DescMethod, random: Random): Buffer {
	const parts: Buffer[] = [];
	for (const { number } of input.fields) {
		if (random() < 0.5) continue;
		const wire = random() < 0.7 ? 2 : Math.floor(random() * 8);
		const value = garbageBytes(random, 40);
		const length = random() < 0.9 ? value.length : Math.floor(random() * 128);
		parts.push(varint((number << 3) | wire), ...(wire === 2 ? [varint(length)] : []), value);
	}
	return Buffer.concat(parts);
}

function varint(value: number): Buffer {
	const bytes: number[] = [];
	let rest = value;
	for (; rest > 127; rest >>>= 7) bytes.push((rest & 127) | 128);
	return Buffer.from([...bytes, rest]);
}

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)]!;
const garbageBytes = (random: Random, max: number): Buffer =>
	Buffer.from(Array.from({ length: Math.floor(random() * max) }, () => Math.floor(random() * 256)));
/** Characters that a header may contain. */
const garbageText = (random: Random, max: number): string =>
	Array.from({ length: Math.floor(random() * max) }, () => String.fromCharCode(33 + Math.floor(random() * 94))).join(
		"",
	);
