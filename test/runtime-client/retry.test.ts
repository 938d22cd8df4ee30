/** Statuses as verdicts, and the wait before another try as a value. */

import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { NO_OUTAGE, type Outage, stepOutage } from "../../packages/client/src/outage.ts";
import { RETRY_LIMITS, reasonCodeOf, verdictOf } from "../../packages/client/src/runtime/failures.ts";
import { ReasonCode } from "../../packages/client/src/runtime/runtime-client.ts";

const error = (code: Code, reason?: string) => ({
	code,
	metadata: new Headers(reason === undefined ? {} : { "x-nexus-reason-code": reason }),
});

describe("runtime client: verdicts", () => {
	it.each([
		[Code.Canceled, "STOPPING", "cut"],
		[Code.ResourceExhausted, "STALLED", "cut"],
		[Code.ResourceExhausted, undefined, "cut"],
		[Code.ResourceExhausted, "BUSY", "cut"],
		[Code.Unavailable, undefined, "cut"],
		[Code.Unavailable, "STOPPING", "cut"],
		[Code.Unknown, undefined, "cut"],
		[Code.Aborted, undefined, "cut"],
		[Code.DataLoss, "DATA_LOSS", "doubt"],
		[Code.Internal, undefined, "doubt"],
		[Code.DeadlineExceeded, undefined, "refused"],
		[Code.ResourceExhausted, "TOO_LARGE", "refused"],
		[Code.ResourceExhausted, "QUOTA_EXCEEDED", "refused"],
		[Code.Unavailable, "AI_ENDPOINT_UNRESOLVED", "refused"],
		[Code.Aborted, "CONFLICT", "refused"],
		[Code.InvalidArgument, "PROTOCOL_ENVELOPE_INVALID", "refused"],
		[Code.Unauthenticated, "UNAUTHENTICATED", "refused"],
		[Code.FailedPrecondition, "AI_CONNECTOR_DISABLED", "refused"],
		[Code.Unimplemented, undefined, "refused"],
	] as const)("Z5: %s with the reason %s is %s", (code, reason, verdict) => {
		expect(verdictOf(error(code, reason))).toBe(verdict);
	});

	it("a reason is read with and without its prefix; an unknown one is undefined", () => {
		expect(reasonCodeOf(error(Code.NotFound, "REASON_CODE_NOT_FOUND"))).toBe(ReasonCode.NOT_FOUND);
		expect(reasonCodeOf(error(Code.NotFound, "NOT_FOUND"))).toBe(ReasonCode.NOT_FOUND);
		expect(reasonCodeOf(error(Code.NotFound, "toString"))).toBe(ReasonCode.UNSPECIFIED);
	});
});

describe("runtime client: waits", () => {
	const steps = (count: number, verdict: "cut" | "doubt", random: () => number, everyMs = 1000) => {
		const delays: number[] = [];
		let outage: Outage = NO_OUTAGE;
		for (let now = 0; delays.length < count; now += everyMs) {
			const step = stepOutage(outage, verdict, now, random, RETRY_LIMITS);
			if (typeof step === "string") break;
			outage = step.outage;
			delays.push(step.delayMs);
		}
		return delays;
	};

	it("double up to a ceiling, and are spread over its upper half", () => {
		expect(steps(7, "cut", () => 1)).toEqual([250, 500, 1000, 2000, 4000, 5000, 5000]);
		expect(steps(3, "cut", () => 0)).toEqual([125, 250, 500]);
	});

	it("end after the limit of time, and doubts after a few", () => {
		expect(steps(1000, "cut", () => 1)).toHaveLength(120);
		expect(steps(1000, "doubt", () => 1)).toHaveLength(5);
	});
});
