/** Approvals, questions and grants. A caller with the token decides as the owner. */

import { NexusError, shownJson, shownText } from "@nexus-stream/protocol";
import { z } from "zod";
import type { Approval } from "../../ledger/approvals/port.ts";
import type { Grant } from "../../ledger/grants/port.ts";
import { defined } from "../../std/defined.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";
import {
	component,
	get,
	type HandlersOf,
	limit,
	named,
	post,
	remove,
	runParams,
	sessionLabel,
	time,
	viewOf,
} from "./resource.ts";

const id = z.string().regex(/^[A-Za-z][2-9][A-Za-z][2-9]$/, "an id looks like K7Q2");
const state = z.enum(["pending", "approved", "denied", "answered", "expired", "withdrawn"]);
const questionParams = runParams.extend({ id: id.transform((text) => text.toUpperCase()) });

const AskerView = z.object({
	channel: z.string(),
	account: z.string(),
	sender: z.string(),
	sender_name: z.string().exactOptional(),
});
const ApprovalView = component("Approval", {
	id: z.string().describe("Short enough to be typed; one pending question has it at a time."),
	kind: z.enum(["approval", "question"]),
	run_id: z.string(),
	session: z.string(),
	call_id: z.string(),
	tool: z.string(),
	agent: z.string().exactOptional(),
	args: z.unknown().describe("Whole: what is approved is what is run."),
	text: z
		.string()
		.describe("For people: one line, what could deceive a reader is escaped. Of a question, the question."),
	because: z.string().exactOptional().describe("Why a person is asked whatever the policy says; one line."),
	choices: z.array(z.string()).exactOptional(),
	asked_for: AskerView.exactOptional().describe("The author of the message that the run answers."),
	state,
	created_at: time,
	expires_at: time,
	decided_at: time.exactOptional(),
	by: z
		.string()
		.exactOptional()
		.describe("A name for the person who decided, for example `the owner`; `nexus` if no person did."),
	reason: z.string().exactOptional(),
	answer: z.string().exactOptional(),
});
const ApprovalList = component("ApprovalList", { approvals: z.array(ApprovalView) });

/** Strict: a caller that sends other arguments must not believe that those were approved. */
const ApprovalRequest = component(
	"ApprovalRequest",
	z.strictObject({
		decision: z.enum(["approve", "deny"]),
		reason: z.string().max(500).exactOptional(),
		remember: z.boolean().exactOptional().describe("Allows the same for the rest of the session."),
	}),
);
const AnswerRequest = component("AnswerRequest", z.strictObject({ answer: z.string().min(1).max(10_000) }));

const GrantView = named("GrantJson", {
	id: z.string(),
	session: z.string(),
	channel: z.string(),
	account: z.string(),
	sender: z.string(),
	agent: z.string().exactOptional(),
	tool: z.string(),
	prefix: z.string().exactOptional().describe("Commands that begin so; else exactly the approved arguments."),
	by: z.string(),
	created_at: time,
});
const GrantList = component("GrantList", { grants: z.array(GrantView) });
const GrantRevoked = component("GrantRevoked", { revoked: z.literal(true) });

export const APPROVAL_ROUTES = {
	listApprovals: get(
		"/v1/approvals",
		"What runs wait for a person to decide or answer, and what was decided, newest first.",
		{
			query: z.object({ state: state.optional(), session: sessionLabel.optional(), limit }),
			answer: ApprovalList,
		},
	),
	decideApproval: post(
		"/v1/runs/{run}/approvals/{id}",
		"Approves or denies a tool call. The first decision counts: a later one is a conflict that says who decided.",
		{ params: questionParams, body: ApprovalRequest, answer: ApprovalView, errors: ["not_found", "conflict"] },
	),
	answerQuestion: post("/v1/runs/{run}/questions/{id}", "Answers what a run asks.", {
		params: questionParams,
		body: AnswerRequest,
		answer: ApprovalView,
		errors: ["not_found", "conflict"],
	}),
	listGrants: get("/v1/grants", "Calls that are allowed for the rest of their session, newest first.", {
		answer: GrantList,
	}),
	revokeGrant: remove("/v1/grants/{grant}", "Asks a person again from now on.", {
		params: z.object({ grant: z.string().min(1).max(64) }),
		answer: GrantRevoked,
		errors: ["not_found"],
	}),
};

const OWNER = "the owner";

export function approvalHandlers(
	{ ledger, approvals }: EdgeDeps,
	limits: EdgeLimits,
): HandlersOf<typeof APPROVAL_ROUTES> {
	const found = async (runId: string, id: string, kind: Approval["kind"]) => {
		const row = await ledger.approvals.get(runId, id);
		if (row?.kind !== kind) throw new NexusError("not_found", `there is no ${kind} ${id} of run ${runId}`);
	};
	return {
		async listApprovals({ query: { limit = limits.listItemsMax, ...query } }) {
			const asked = { ...query, limit: Math.min(limit, limits.listItemsMax) };
			return { approvals: (await ledger.approvals.list(defined(asked))).map(approvalView) };
		},
		async decideApproval({ params: { run, id }, body: { decision, reason, remember } }) {
			await found(run, id, "approval");
			const state = decision === "approve" ? "approved" : "denied";
			return approvalView(await approvals.decide(run, id, { state, by: OWNER, reason }, remember));
		},
		async answerQuestion({ params: { run, id }, body: { answer } }) {
			await found(run, id, "question");
			return approvalView(await approvals.decide(run, id, { state: "answered", by: OWNER, text: answer }));
		},
		listGrants: () => ({ grants: approvals.grants.list().map(grantView) }),
		async revokeGrant({ params: { grant } }) {
			await approvals.grants.revoke(grant);
			return { revoked: true };
		},
	};
}

const grantView = (grant: Grant) => viewOf(GrantView, grant);

const approvalView = (row: Approval) =>
	viewOf(ApprovalView, {
		...row,
		text: row.kind === "question" ? shownText(row.question ?? "") : `${row.tool} ${shownJson(row.args)}`,
		choices: row.choices && [...row.choices],
		askedFor: row.requester && viewOf(AskerView, row.requester),
		answer: row.text,
	});
