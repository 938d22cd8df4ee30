/** Approvals and questions in words, and which of them are open. */

import { describe, expect, it } from "vitest";
import type { MessageView, RunView, ToolApprovalStatus, ToolView } from "../../packages/protocol/src/protocol.ts";
import {
	type ApprovalActions,
	approvalOf,
	approvalTitle,
	decidedWords,
	isOpen,
	openAsksOf,
	type ShownApproval,
	settledApproval,
	timeLeftWords,
	wantsWords,
} from "../../packages/web/src/chat/approvals.ts";
import { announcement } from "../../packages/web/src/chat/words.ts";

const status = (part: Partial<ToolApprovalStatus> = {}): ToolApprovalStatus => ({
	id: "K7Q2",
	state: "pending",
	text: 'bash {"command":"ls"}',
	expires_at: 600_000,
	...part,
});
const approval = (part: Partial<ToolApprovalStatus> = {}): ShownApproval => ({ kind: "approval", ...status(part) });
const tool = (part: Partial<ToolView> = {}): ToolView => ({
	messageId: "r.2",
	callId: "c",
	name: "bash",
	status: "progress",
	startedAt: 1,
	after: 0,
	...part,
});
const message: MessageView = {
	messageId: "r.1",
	contentType: "text/markdown",
	text: "",
	state: "streaming",
	reasoning: [],
	tools: [],
	parts: [],
	startedAt: 1,
};
const view = (...tools: ToolView[]): RunView => ({
	runId: "r",
	compacting: false,
	state: "streaming",
	final: false,
	violations: [],
	messages: [{ ...message, tools }],
});

describe("A6: what is asked", () => {
	it("is an approval or a question; most calls ask nothing", () => {
		expect(approvalOf(tool())).toBeUndefined();
		expect(approvalOf(tool({ approval: status() }))).toMatchObject({ kind: "approval", id: "K7Q2" });
		expect(approvalOf(tool({ question: status({ text: "Which?" }) }))).toMatchObject({
			kind: "question",
			text: "Which?",
		});
	});

	it("is open until it is decided or its time is over", () => {
		expect([isOpen(approval(), 599_999), isOpen(approval(), 600_000)]).toEqual([true, false]);
		for (const state of ["approved", "denied", "answered", "expired", "withdrawn"] as const)
			expect(isOpen(approval({ state }), 0)).toBe(false);
		const asks = openAsksOf(
			view(tool({ approval: status() }), tool({ approval: status({ state: "denied" }) }), tool()),
		);
		expect(asks.map(({ state }) => state)).toEqual(["pending"]);
	});

	it("says who decided where a person did", () => {
		expect(decidedWords(approval({ state: "approved", by: "the owner" }))).toBe("Allowed by you");
		expect(decidedWords(approval({ state: "approved", by: "Ann" }))).toBe("Allowed by Ann");
		expect(decidedWords(approval({ state: "approved", by: "the owner" }), true)).toBe(
			"Allowed by you; continued below",
		);
		expect(decidedWords(approval({ state: "denied" }))).toBe("Denied");
		expect(decidedWords(approval({ state: "withdrawn", by: "nexus" }))).toBe("No longer asked");
		expect(decidedWords(approval({ state: "expired", by: "nexus" }))).toBe("Not answered in time");
	});

	it("takes the daemon's word for what the frames of an ended run leave open", () => {
		const desk = { decided: () => ({ state: "approved", by: "the owner" }) as const } as unknown as ApprovalActions;
		expect(decidedWords(settledApproval(approval(), desk))).toBe("Allowed by you");
		expect(decidedWords(settledApproval(approval({ state: "denied" }), desk))).toBe("Denied");
		expect(decidedWords(settledApproval(approval(), undefined))).toBe("No longer open");
	});

	it("says of a call that was not allowed yet that it wants to run", () => {
		expect(wantsWords({ args: { command: "wc -w notes.md" } })).toBe("Wants to run: wc -w notes.md");
		expect(wantsWords({ args: { path: "x" } })).toBe("Wants to run");
		expect(wantsWords({})).toBe("Wants to run");
	});

	it("counts seconds in the last minute only", () => {
		expect([0, 1, 539_999, 540_000, 599_500, 700_000].map((now) => timeLeftWords(approval(), now))).toEqual([
			...["10 min left", "10 min left", "2 min left", "60 s left", "1 s left", "0 s left"],
		]);
	});

	it("has a title that names the tool, or who asks", () => {
		expect(approvalTitle("approval", "bash")).toBe("Allow bash to run?");
		expect(approvalTitle("question", "ask")).toBe("The agent asks");
		expect(approvalTitle("question", "ask", "writer")).toBe("writer asks");
	});

	it("is announced once to screen readers", () => {
		const before = { runId: "r", view: view() };
		const asking = { runId: "r", view: view(tool({ approval: status() })) };
		expect(announcement(before, asking)).toBe('Waiting for your decision: bash {"command":"ls"}');
		expect(announcement(asking, { ...asking })).toBeUndefined();
		const question = { runId: "r", view: view(tool({ question: status({ text: "Which?" }) })) };
		expect(announcement(before, question)).toBe("A question: Which?");
	});
});
