/** "Allow for this session": calls approved in advance, for one person, agent and tool (A14). */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { own } from "@nexus-stream/protocol/own";
import type { Bus } from "../../bus/bus.ts";
import type { Approval } from "../../ledger/approvals/port.ts";
import { type Grant, grantWrites } from "../../ledger/grants/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import type { Write } from "../../std/write.ts";
import type { ApprovalsConfig } from "../inbox/config.ts";

export type SessionGrants = ReturnType<typeof createGrants>;

/** Grants of all sessions. */
const GRANTS_MAX = 1000;
const WRITE_MS_MAX = 1000;

export interface SessionGrantsDeps {
	bus: Pick<Bus, "write" | "listen" | "isShared">;
	ledger: Pick<Ledger, "grants">;
	config(): ApprovalsConfig;
	clock: Clock;
	log: Log;
}

/** The Bus topic of changed grants: the other daemons read them again. */
const TOPIC = "grants";

export function createGrants({ bus, ledger, config, clock, log }: SessionGrantsDeps) {
	let grants: Grant[] = [];
	const reload = async () => {
		grants = [...(await ledger.grants.list())];
	};
	const prefixOf = ({ tool, args }: Approval) =>
		(own(config().prefixes, tool) ?? []).find((prefix) => beginsPlainly(commandOf(args), prefix));
	return {
		async load(): Promise<void> {
			await reload();
			const failed = (cause: unknown) => log.error({ err: cause }, "the grants of sessions could not be read");
			if (bus.isShared) bus.listen(TOPIC, () => void reload().catch(failed));
		},
		/** The approver of a grant that covers the call, in words. */
		agreed(row: Approval): string | undefined {
			const found = grants.find((grant) => covers(grant, row));
			return found && `${found.by} (allowed for this session)`;
		},
		/** The write commits with the decision. Throws `invalid` when the call has several requesters. */
		granting(row: Approval, by: string): { write: Write; done(): void } {
			const { requester, session, agent, tool, digest, id } = row;
			if (!requester?.only)
				throw new NexusError("invalid", "several people wrote this request: it can be approved only once");
			if (grants.length >= GRANTS_MAX)
				throw new NexusError("busy", `${GRANTS_MAX} calls are allowed already; revoke some with \`nexus approvals\``);
			const { channel, account, sender } = requester;
			const prefix = prefixOf(row);
			const now = clock.now();
			const grant: Grant = {
				id: `${id}-${now.toString(36)}`,
				session,
				channel,
				account,
				sender,
				tool,
				by,
				createdAt: now,
				agent,
				digest: prefix === undefined ? digest : undefined,
				prefix,
			};
			const done = () => {
				if (!grants.some((known) => known.id === grant.id)) grants.unshift(grant);
			};
			return { write: { ...grantWrites.save(grant), topic: TOPIC }, done };
		},
		/** Newest first. */
		list: () => [...grants],
		async revoke(id: string): Promise<void> {
			if (!grants.some((grant) => grant.id === id)) throw new NexusError("not_found", `there is no grant ${id}`);
			await bus.write([{ ...grantWrites.revoke(id), topic: TOPIC }], WRITE_MS_MAX);
			grants = grants.filter((grant) => grant.id !== id);
		},
	};
}

function covers(grant: Grant, { session, agent, tool, digest, args, requester }: Approval): boolean {
	const isFor =
		requester?.only === true &&
		grant.session === session &&
		grant.channel === requester.channel &&
		grant.account === requester.account &&
		grant.sender === requester.sender &&
		grant.agent === agent &&
		grant.tool === tool;
	if (!isFor) return false;
	return grant.prefix === undefined ? grant.digest === digest : beginsPlainly(commandOf(args), grant.prefix);
}

/** Prefixes apply only to calls whose only argument is a command. */
function commandOf(args: unknown): string {
	if (typeof args !== "object" || args === null) return "";
	const { command, ...rest } = args as Record<string, unknown>;
	return typeof command === "string" && Object.keys(rest).length === 0 ? command : "";
}

/** Characters with a special meaning in a shell. */
const SHELL_SYNTAX = /[;&|<>$`\\(){}[\]*?!#~"'\p{Cc}]/u;

/** The prefix ends at the end of a word, and the command has no shell syntax. */
const beginsPlainly = (command: string, prefix: string): boolean =>
	prefix.trim() !== "" &&
	(command === prefix.trim() || command.startsWith(`${prefix.trim()} `)) &&
	!SHELL_SYNTAX.test(command);
