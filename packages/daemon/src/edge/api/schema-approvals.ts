/** The shapes of the API about approvals and questions. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { component, type Fields, limit, runParams, sessionLabel, time } from "./schema.ts";

const id = z.string().regex(/^[A-Za-z][2-9][A-Za-z][2-9]$/, "an id looks like K7Q2");
const state = z.enum(["pending", "approved", "denied", "answered", "expired", "withdrawn"]);

export const approvalsQuery = z.object({ state: state.optional(), session: sessionLabel.optional(), limit });
export const questionParams = runParams.extend({ id: id.transform((text) => text.toUpperCase()) });
export const grantParams = z.object({ grant: z.string().min(1).max(64) });

export const ApprovalView = component(
	"Approval",
	z.object({
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
		asked_for: z
			.object({
				channel: z.string(),
				account: z.string(),
				sender: z.string(),
				sender_name: z.string().exactOptional(),
			})
			.exactOptional()
			.describe("Whose message the run answers."),
		state,
		created_at: time,
		expires_at: time,
		decided_at: time.exactOptional(),
		by: z.string().exactOptional().describe("Who decided, in words."),
		reason: z.string().exactOptional(),
		answer: z.string().exactOptional(),
	} satisfies Fields<wire.ApprovalJson>),
);
export const ApprovalList = component(
	"ApprovalList",
	z.object({ approvals: z.array(ApprovalView) } satisfies Fields<wire.ApprovalListJson>),
);
/** Strict: a caller that sends other arguments must not believe that those were approved. */
export const ApprovalRequest = component(
	"ApprovalRequest",
	z.strictObject({
		decision: z.enum(["approve", "deny"]),
		reason: z.string().max(500).exactOptional(),
		remember: z.boolean().exactOptional().describe("Allows the same for the rest of the session."),
	} satisfies Fields<wire.ApprovalRequest>),
);
export const AnswerRequest = component(
	"AnswerRequest",
	z.strictObject({ answer: z.string().min(1).max(10_000) } satisfies Fields<wire.AnswerRequest>),
);
export const GrantList = component(
	"GrantList",
	z.object({
		grants: z.array(
			z.object({
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
			} satisfies Fields<wire.GrantJson>),
		),
	} satisfies Fields<wire.GrantListJson>),
);
export const GrantRevoked = component(
	"GrantRevoked",
	z.object({ revoked: z.literal(true) } satisfies Fields<wire.GrantRevokedJson>),
);
