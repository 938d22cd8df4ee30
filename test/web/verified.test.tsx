/** The mark of a complete answer, and the outcomes that it is shown with. */

import type { VNode } from "preact";
import { describe, expect, it } from "vitest";
import { createFold, type RunView } from "../../packages/protocol/src/protocol.ts";
import { Verified } from "../../packages/web/src/chat/view/answer.tsx";

const ended = (state: RunView["state"], violations: RunView["violations"] = []): RunView => ({
	...createFold().view(),
	final: true,
	state,
	violations,
});
const markOf = (view: RunView) => (Verified({ view }) as VNode<{ "data-ok": string }> | null)?.props["data-ok"];

describe("verified", () => {
	it("is shown with Done", () => {
		expect(markOf(ended("completed"))).toBe("true");
	});

	it.each(["aborted", "error", "timeout", "crashed"] as const)("is not shown with an answer that is %s", (state) => {
		expect(markOf(ended(state))).toBeUndefined();
	});

	it.each(["completed", "aborted", "crashed"] as const)("shows damage of an answer that is %s", (state) => {
		const violations = [{ rule: "P3.2", kind: "checksum", message: "the checksum differs" }] as never;
		expect(markOf(ended(state, violations))).toBe("false");
	});
});
