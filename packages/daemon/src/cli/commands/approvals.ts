/** `nexus approvals`, `approve`, `deny` and `answer`: what runs wait for, and how a person decides it. */

import { NexusError } from "@nexus-stream/protocol";
import type { ApprovalJson, GrantJson } from "@nexus-stream/protocol/api";
import {
	type CommandContext,
	type Declarations,
	type JsonOption,
	type ListOptions,
	remoteJson,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { chosenOf } from "../prompt.ts";
import { list, since } from "../table.ts";
import { Hinted, tell } from "../terminal.ts";

export const declare: Declarations = {
	approvals: (command, local) =>
		remoteRows(command)
			.option("--all", "those that were decided, too")
			.option("--remembered", "what was allowed for the rest of a session")
			.option("--revoke <id>", "ask again about something that was allowed for a session")
			.option("--limit <count>", "at most this many", wholeNumber, 50)
			.addHelpText(
				"after",
				"\nExamples:\n  nexus approvals\n  nexus approvals --remembered\n  nexus approvals --revoke K7Q2-m3x9",
			)
			.action(withDaemon(local, approvals)),
	approve: (command, local) =>
		remoteJson(command, "print the decision as JSON")
			.argument("<id>", "as `nexus approvals` lists it")
			.option("--remember", "allow the same for the rest of the session")
			.option("--reason <text>", "why, for the record")
			.addHelpText("after", "\nExample:\n  nexus approve K7Q2")
			.action(
				withDaemon(local, (context, id: string, options: DecideOptions) => decide(context, id, "approve", options)),
			),
	deny: (command, local) =>
		remoteJson(command, "print the decision as JSON")
			.argument("<id>", "as `nexus approvals` lists it")
			.argument("[reason...]", "why: the model reads it")
			.addHelpText("after", "\nExample:\n  nexus deny K7Q2 use the staging server")
			.action(
				withDaemon(local, (context, id: string, words: string[], options: DecideOptions) =>
					decide(context, id, "deny", { ...options, reason: words.length === 0 ? undefined : words.join(" ") }),
				),
			),
	answer: (command, local) =>
		remoteJson(command, "print the answer as JSON")
			.argument("<id>", "as `nexus approvals` lists it")
			.argument("<text...>", "the answer, or the number of a choice")
			.addHelpText("after", "\nExample:\n  nexus answer K7Q2 the second one")
			.action(withDaemon(local, answer)),
};

async function approvals(
	context: CommandContext,
	{ json, limit, all, remembered, revoke }: ListOptions<"revoke"> & { all?: boolean; remembered?: boolean },
) {
	const { client, terminal } = context;
	if (revoke !== undefined) {
		await client.api.revokeGrant(revoke);
		return terminal.out(`${revoke} is asked about again\n`);
	}
	if (remembered) return listGrants(context, json);
	const { approvals } = await client.api.approvals({ state: all ? undefined : "pending", limit });
	return list(terminal, json, approvals, {
		none: all ? "no approvals" : "nothing waits for a decision",
		columns: {
			ID: (row) => row.id,
			STATE: ({ state, by }) => (by === undefined || by === "nexus" ? state : `${state} by ${by}`),
			ASKED: (row) => since(row.created_at),
			FOR: ({ asked_for: asker }) =>
				asker === undefined ? "" : `${asker.channel}/${asker.account} ${asker.sender_name ?? asker.sender}`,
			RUN: (row) => row.run_id,
			WHAT: ({ text, because }) => (because === undefined ? text : `${text} (asked because ${because})`),
		},
		optional: ["RUN", "ASKED"],
	});
}

async function listGrants({ client, terminal }: CommandContext, json: boolean | undefined) {
	const { grants } = await client.api.grants();
	return list(terminal, json, grants, {
		none: "nothing is allowed for a session",
		columns: {
			ID: (grant) => grant.id,
			SESSION: (grant) => grant.session,
			FOR: (grant) => `${grant.channel}/${grant.account}/${grant.sender}`,
			BY: (grant) => grant.by,
			SINCE: (grant) => since(grant.created_at),
			WHAT: whatOf,
		},
		optional: ["SINCE", "BY"],
	});
}

const whatOf = ({ tool, prefix, agent }: GrantJson): string =>
	`${agent === undefined ? "" : `${agent}: `}${tool} ${prefix === undefined ? "with the approved arguments" : `${prefix} …`}`;

interface DecideOptions extends JsonOption {
	reason?: string;
	remember?: boolean;
}

async function decide(
	context: CommandContext,
	given: string,
	decision: "approve" | "deny",
	{ json, reason, remember }: DecideOptions,
) {
	const { run_id, id } = await rowOf(context, given, "approval");
	const body = { decision, reason, remember: remember || undefined };
	say(context, await context.client.api.decideApproval(run_id, id, body), json);
}

async function answer(context: CommandContext, given: string, words: readonly string[], { json }: JsonOption) {
	const { run_id, id, choices } = await rowOf(context, given, "question");
	const body = { answer: chosenOf(choices, words.join(" ")) };
	say(context, await context.client.api.answerQuestion(run_id, id, body), json);
}

const say = ({ terminal }: CommandContext, row: ApprovalJson, json: boolean | undefined): void =>
	tell(terminal, json, row, `${row.id} ${row.state}: ${row.text}`);

/** The pending one, or the newest that had the id: the daemon then says who decided it. */
async function rowOf({ client }: CommandContext, given: string, kind: ApprovalJson["kind"]): Promise<ApprovalJson> {
	const id = given.toUpperCase();
	const find = async (state: string | undefined) => {
		const rows = (await client.api.approvals({ state })).approvals.filter((row) => row.id === id);
		return rows.find((row) => row.kind === kind) ?? rows[0];
	};
	const row = (await find("pending")) ?? (await find(undefined));
	if (row?.kind === kind) return row;
	if (row) throw otherKind(row);
	throw new Hinted(new NexusError("not_found", `there is no ${kind} ${id}`), "`nexus approvals` lists what waits");
}

/** Words meant for an approval would answer a question wrongly, and the other way round. */
function otherKind({ id, kind }: ApprovalJson): Hinted {
	const [is, how] =
		kind === "question"
			? ["a question, not a tool call that waits for approval", `answer it with \`nexus answer ${id} <text>\``]
			: ["a tool call that waits for approval, not a question", `\`nexus approve ${id}\`, or \`nexus deny ${id}\``];
	return new Hinted(new NexusError("invalid", `${id} is ${is}`), how);
}
