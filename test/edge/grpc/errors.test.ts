/** Errors of remote procedures: one table to a status, a reason as detail and trailer, and nothing of the inside. */

import { connect, type IncomingHttpHeaders } from "node:http2";
import { beforeEach, expect, it, vi } from "vitest";
import { ErrorInfoSchema } from "../../../packages/client/src/gen/google/rpc/error_details_pb.ts";
import { ReasonCode } from "../../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { RuntimeMemoryService } from "../../../packages/client/src/gen/nexus/runtime/v1/memory_pb.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { ERROR_TABLE, type ErrorCode, NexusError, reasonOf } from "../../../packages/protocol/src/protocol.ts";
import { BEARER, TOKEN } from "../rig.ts";
import { strings } from "./fake-methods.ts";
import { errorOf, kitForTest, PROTOCOLS, readStream, statusOf } from "./kit.ts";

vi.mock("../../../packages/daemon/src/services/memory/rpc.ts", () => import("./fake-methods.ts"));

beforeEach(() => {
	strings.recall = () => {};
});

const RECALL = "/nexus.runtime.v1.RuntimeMemoryService/Recall";

interface RawAnswer {
	headers: IncomingHttpHeaders;
	/** The headers, if the answer has no trailers. */
	trailers: IncomingHttpHeaders;
}

/** A call as bytes, with the flag and length of gRPC before them unless they are given whole. */
export async function rawCall(
	url: string,
	path: string,
	body: Uint8Array | undefined,
	headers: Record<string, string> = BEARER,
): Promise<RawAnswer> {
	const session = connect(url);
	const stream = session.request({ ":method": "POST", ":path": path, "content-type": "application/grpc", ...headers });
	const answer: RawAnswer = { headers: {}, trailers: {} };
	stream.on("response", (got) => Object.assign(answer.headers, got));
	stream.on("trailers", (got) => Object.assign(answer.trailers, got));
	stream.on("error", () => {});
	const ended = new Promise<void>((resolve) => stream.on("close", () => resolve()));
	stream.resume();
	if (body) {
		const head = Buffer.alloc(5);
		head.writeUInt32BE(body.length, 1);
		stream.end(Buffer.concat([head, body]));
	}
	await ended;
	session.destroy();
	return { ...answer, trailers: { ...answer.headers, ...answer.trailers } };
}

it.each(PROTOCOLS)(
	"P8.2: every code of the error table is its status over %s, with its reason as detail and as trailer",
	async (protocol) => {
		const memory = (await kitForTest()).client(RuntimeMemoryService, protocol);
		for (const code of Object.keys(ERROR_TABLE) as ErrorCode[]) {
			strings.recall = () => {
				throw new NexusError(code, `it is ${code}`);
			};
			const error = await errorOf(memory.recall({}));
			const reason = `REASON_CODE_${reasonOf(code)}`;
			expect([error.code, error.rawMessage, error.metadata.get("x-nexus-reason-code")]).toEqual([
				ERROR_TABLE[code][1],
				`it is ${code}`,
				reason,
			]);
			expect(error.findDetails(ErrorInfoSchema)).toMatchObject([{ reason, domain: "nexus.runtime.v1" }]);
			expect(ReasonCode, "the proto knows it").toHaveProperty(reasonOf(code));
		}
		strings.recall = () => {
			throw new NexusError("invalid", "no", { reason: "AI_CONNECTOR_ID_REQUIRED" });
		};
		expect(statusOf(await errorOf(memory.recall({})))).toEqual({
			code: "InvalidArgument",
			reason: "REASON_CODE_AI_CONNECTOR_ID_REQUIRED",
		});
	},
);

it.each(PROTOCOLS)("an unexpected error is INTERNAL over %s without its text, and logged", async (protocol) => {
	const logged: unknown[] = [];
	const log = { ...silentLog, error: (facts: object) => void logged.push(facts) };
	const memory = (await kitForTest({ deps: { log } })).client(RuntimeMemoryService, protocol);
	strings.recall = () => {
		throw new Error("the key is sk-123 in /home/me");
	};
	const error = await errorOf(memory.recall({}));
	expect(statusOf(error)).toEqual({ code: "Internal", reason: "REASON_CODE_INTERNAL" });
	expect(JSON.stringify(error)).not.toContain("sk-123");
	expect(error.message).not.toContain("/home");
	expect(logged).toMatchObject([{ err: { message: "the key is sk-123 in /home/me" } }]);
});

it.each(PROTOCOLS)("Z9: no or a wrong token is UNAUTHENTICATED over %s", async (protocol) => {
	const kit = await kitForTest();
	const refused = { code: "Unauthenticated", reason: "REASON_CODE_UNAUTHENTICATED" };
	for (const token of ["", "wrong"]) {
		const memory = kit.client(RuntimeMemoryService, protocol, token);
		expect(statusOf(await errorOf(memory.recall({})))).toEqual(refused);
		expect(statusOf((await readStream(memory.subscribeMemoryEvents({}))).error)).toEqual(refused);
	}
});

it("P8.1, Z9: the token is checked before the body is read", async () => {
	const { grpcUrl } = await kitForTest();
	// The body never comes.
	const { trailers } = await rawCall(grpcUrl, RECALL, undefined, {});
	expect([trailers["grpc-status"], trailers["x-nexus-reason-code"]]).toEqual(["16", "REASON_CODE_UNAUTHENTICATED"]);
});

it("Z11: a cookie counts for nothing on the gRPC port", async () => {
	const { grpcUrl, rig } = await kitForTest();
	const signedIn = await rig.post("/v1/sign-in", { token: TOKEN });
	const cookie = signedIn.headers.get("set-cookie")?.split(";")[0];
	expect(cookie).toMatch(/^nexus_\d+=/);
	const { trailers } = await rawCall(grpcUrl, RECALL, new Uint8Array(), { cookie: cookie! });
	expect(trailers["grpc-status"]).toBe("16");
});

it("Z9: a message that cannot be read is the caller's mistake", async () => {
	const { grpcUrl, rig } = await kitForTest();
	const { trailers } = await rawCall(grpcUrl, RECALL, new Uint8Array([0x0a, 0xff]));
	expect([trailers["grpc-status"], trailers["x-nexus-reason-code"]]).toEqual([
		"3",
		"REASON_CODE_PROTOCOL_ENVELOPE_INVALID",
	]);
	const unread = await fetch(rig.url + RECALL, {
		method: "POST",
		headers: { ...BEARER, "content-type": "application/proto" },
		body: new Uint8Array([0x0a, 0xff]),
	});
	expect([unread.status, await unread.json()]).toMatchObject([400, { code: "invalid_argument" }]);
});

it("Z13: a message over the limit is RESOURCE_EXHAUSTED, in both directions", async () => {
	const { client } = await kitForTest({ limits: { grpcReadBytesMax: 1000, grpcWriteBytesMax: 100 } });
	const memory = client(RuntimeMemoryService);
	const error = await errorOf(memory.recall({ query: "x".repeat(2000) }));
	expect(statusOf(error)).toEqual({ code: "ResourceExhausted", reason: "REASON_CODE_TOO_LARGE" });
	const reading = readStream(memory.subscribeMemoryEvents({}, { onHeader: () => tell("y".repeat(200)) }));
	const tell = (bank: string) => {
		for (const listener of strings.tell) listener(bank);
	};
	expect((await reading).error?.code).toBe(8);
});

it("what there is no method for is UNIMPLEMENTED, also where a service has no such method yet", async () => {
	const { grpcUrl, rig, client } = await kitForTest();
	const { headers } = await rawCall(grpcUrl, "/nexus.runtime.v1.RuntimeMemoryService/Invent", new Uint8Array());
	expect([headers[":status"], headers["grpc-status"]]).toEqual([200, "12"]);
	expect((await errorOf(client(RuntimeMemoryService).forget({}))).code).toBe(12);
	expect((await rig.post("/nexus.runtime.v1.RuntimeMemoryService/Invent")).status).toBe(404);
});
