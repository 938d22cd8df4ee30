/** Handlers for approvals and questions, and their JSON views. A caller with the token decides as the owner. */

import { type ApprovalJson, type GrantJson, NexusError, shownJson, shownText } from "@nexus-stream/protocol";
import type { Approval } from "../../ledger/approvals/port.ts";
import type { Grant } from "../../ledger/grants/port.ts";
import { defined } from "../../std/defined.ts";
import type { Handlers } from "../http/handler.ts";
import type { EdgeDeps, EdgeLimits } from "../port.ts";

const OWNER = "the owner";

export function approvalHandlers({ ledger, broker, approvals }: EdgeDeps, limits: EdgeLimits) {
	const grants = () => {
		if (approvals) return approvals.grants;
		throw new NexusError("not_found", "nothing is allowed for sessions here");
	};
	const found = async (runId: string, id: string, kind: Approval["kind"]) => {
		const row = await ledger.approvals.get(runId, id);
		if (row?.kind !== kind) throw new NexusError("not_found", `there is no ${kind} ${id} of run ${runId}`);
	};
	const decide = (...args: Parameters<NonNullable<EdgeDeps["approvals"]>["decide"]>) =>
		approvals ? approvals.decide(...args) : broker.approvals.decide(args[0], args[1], args[2]);
	return {
		async listApprovals({ query: { limit = limits.listItemsMax, ...query } }) {
			const asked = { ...query, limit: Math.min(limit, limits.listItemsMax) };
			return { approvals: (await ledger.approvals.list(defined(asked))).map(approvalView) };
		},
		async decideApproval({ params: { run, id }, body: { decision, reason, remember } }) {
			await found(run, id, "approval");
			const state = decision === "approve" ? "approved" : "denied";
			const decided = { state, by: OWNER, reason } as const;
			return approvalView(await decide(run, id, decided, remember));
		},
		async answerQuestion({ params: { run, id }, body: { answer } }) {
			await found(run, id, "question");
			return approvalView(await decide(run, id, { state: "answered", by: OWNER, text: answer }));
		},
		listGrants: () => ({ grants: (approvals?.grants.list() ?? []).map(grantView) }),
		async revokeGrant({ params: { grant } }) {
			await grants().revoke(grant);
			return { revoked: true };
		},
	} satisfies Partial<Handlers>;
}

const grantView = ({ digest: _digest, createdAt, ...grant }: Grant): GrantJson => ({ ...grant, created_at: createdAt });

function approvalView(row: Approval): ApprovalJson {
	const { requester } = row;
	const facts = defined({
		id: row.id,
		kind: row.kind,
		run_id: row.runId,
		session: row.session,
		call_id: row.callId,
		tool: row.tool,
		agent: row.agent,
		text: row.kind === "question" ? shownText(row.question ?? "") : `${row.tool} ${shownJson(row.args)}`,
		because: row.because,
		choices: row.choices && [...row.choices],
		asked_for: requester && {
			channel: requester.channel,
			account: requester.account,
			sender: requester.sender,
			sender_name: requester.senderName,
		},
		state: row.state,
		created_at: row.createdAt,
		expires_at: row.expiresAt,
		decided_at: row.decidedAt,
		by: row.by,
		reason: row.reason,
		answer: row.text,
	});
	return { ...facts, args: row.args };
}
