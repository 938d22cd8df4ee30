import { expect, test } from "vitest";
import { ReasonCode } from "../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import {
	ERROR_TABLE,
	type ErrorCode,
	exitCodeOf,
	grpcStatusOf,
	httpStatusOf,
	isErrorCode,
	NexusError,
	type Reason,
	reasonOf,
	reasonOfEnd,
	toNexusError,
} from "../../packages/protocol/src/protocol.ts";

test.each(Object.keys(ERROR_TABLE) as ErrorCode[])(
	"P7.1: %s has an HTTP status, a gRPC status and an exit code",
	(code) => {
		expect(ERROR_TABLE[code]).toHaveLength(3);
		const [http, grpc, exit] = [httpStatusOf(code), grpcStatusOf(code), exitCodeOf(code)];
		for (const number of [http, grpc, exit]) expect(Number.isInteger(number)).toBe(true);
		expect(http).toBeGreaterThanOrEqual(400);
		expect(http).toBeLessThanOrEqual(599);
		// gRPC's codes are 0 to 16, of which 0 is success.
		expect(grpc).toBeGreaterThanOrEqual(1);
		expect(grpc).toBeLessThanOrEqual(16);
		expect(exit).toBeGreaterThanOrEqual(1);
		expect(exit).toBeLessThanOrEqual(255);
		expect(isErrorCode(code)).toBe(true);
	},
);

test("P7.1: a code outside the table is rejected", () => {
	for (const text of ["", "toString", "__proto__", "Invalid"]) expect(isErrorCode(text)).toBe(false);
});

test("P7.2: every error becomes one with a code, and the body says code and message", () => {
	const own = new NexusError("busy", "try later");
	expect(toNexusError(own)).toBe(own);
	const cause = new TypeError("x is not a function");
	const wrapped = toNexusError(cause, "engine_failed");
	expect(wrapped).toMatchObject({ code: "engine_failed", message: "x is not a function", cause });
	expect(toNexusError("plain")).toMatchObject({ code: "internal", message: "plain" });
	expect(toNexusError(new Error(""))).toMatchObject({ message: "unknown error" });
	expect(toNexusError(undefined)).toMatchObject({ message: "unknown error" });
	expect(toNexusError({ status: 500 })).toMatchObject({ message: '{"status":500}' });
	expect(toNexusError(Object.assign(Object.create(null), { n: 1n })).message).toBe("something that cannot be shown");
	expect(JSON.parse(JSON.stringify(own))).toEqual({ error: { code: "busy", message: "try later" } });
});

test.each<[Parameters<typeof reasonOfEnd>[0], Reason]>([
	[{ reason: "completed" }, "UNSPECIFIED"],
	[{ reason: "aborted" }, "ABORTED"],
	[{ reason: "aborted", error: { code: "unavailable", message: "", reason: "STOPPING" } }, "STOPPING"],
	[{ reason: "crashed", error: { code: "data_loss", message: "" } }, "CRASHED"],
	[{ reason: "timeout", error: { code: "timeout", message: "" } }, "TIMEOUT"],
	[{ reason: "error", error: { code: "too_large", message: "" } }, "TOO_LARGE"],
	[{ reason: "error", error: { code: "of a plugin", message: "" } }, "ENGINE_FAILED"],
	[{ reason: "error" }, "ENGINE_FAILED"],
])("Y2: the reason code of %j is %s", (end, reason) => expect(reasonOfEnd(end)).toBe(reason));

test("Y2: every error code has a reason of the contract", () => {
	for (const code of Object.keys(ERROR_TABLE) as ErrorCode[]) expect(ReasonCode[reasonOf(code)]).toBeTypeOf("number");
});
