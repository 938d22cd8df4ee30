/** Sends the approvals and questions of runs to chats, and takes decisions from chats, buttons and the API. */

import type { InboundChoice, Target } from "@nexus-stream/adapter/port";
import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type ApprovalDecision, type Broker, isPersons } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import type { Approval, Requester } from "../../ledger/approvals/port.ts";
import { type InboundEvent, inboxWrites } from "../../ledger/inbox/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { type AclQuestion, isApprovedIn, mayApprove } from "../access/acl.ts";
import type { PairingService } from "../access/pairing.ts";
import { type InboundConfig, rulesOf } from "../inbox/config.ts";
import type { Destination, InboxMessage } from "../inbox/message.ts";
import type { QuestionPort } from "../port.ts";
import { createGrants, type SessionGrants } from "./grants.ts";
import {
	ALWAYS,
	APPROVE,
	askIdOf,
	type ChatCommand,
	chatCommandIn,
	choiceAt,
	choicesOf,
	DENY,
	outcomeOf,
	promptOf,
	shortIdIn,
	waitingText,
} from "./prompts.ts";

export interface ChatApprovalsDeps {
	approvals: Broker["approvals"];
	bus: Pick<Bus, "write" | "listen" | "isShared">;
	ledger: Pick<Ledger, "approvals" | "grants">;
	outbound: QuestionPort;
	pairing: Pick<PairingService, "isPaired">;
	config(): InboundConfig;
	/** Sends a note that is not the answer of a run. Never rejects. */
	tell(to: Destination, text: string): void;
	/** Called when a question of an interrupted run is answered: a new run continues from there (A2). Never rejects. */
	onLateAnswer(row: Approval): void;
	clock: Clock;
	log: Log;
}

/** A person in a chat, as the platform identifies them. */
type ChatPerson = Omit<Requester, "only" | "target">;

/** A pressed button of a question that was asked in a chat. */
export interface ChannelChoice {
	channel: string;
	account: string;
	choice: InboundChoice;
}

interface DecisionOutcome {
	because: string;
	reply?: string;
}

const GONE = "This question is no longer open.";

export class ChatApprovals {
	readonly #deps: ChatApprovalsDeps;
	/** "Allow for this session": calls approved in advance. */
	readonly grants: SessionGrants;

	constructor(deps: ChatApprovalsDeps) {
		this.#deps = deps;
		this.grants = createGrants({ ...deps, config: () => deps.config().approvals ?? {} });
	}

	/** Loads the grants of sessions, and begins to send approvals to chats. */
	async load(): Promise<void> {
		const { approvals, log } = this.#deps;
		await this.grants.load();
		approvals.relyOn((row) => this.grants.agreed(row));
		approvals.listen({
			opened: (row) =>
				void this.#prompt(row).catch((cause: unknown) => {
					log.error({ runId: row.runId, approval: row.id, err: cause }, "an approval could not be sent to a chat");
				}),
			closed: (row, live) => this.#closed(row, live),
		});
	}

	/** Whether a message decides an existing approval; such a message needs no mention. */
	async decides(text: string): Promise<boolean> {
		const command = chatCommandIn(text);
		return command !== undefined && (await this.#deps.ledger.approvals.find(command.id)) !== undefined;
	}

	/** Records a message that decides an approval, and replies to its sender (A12); undefined when the message is for the agent. */
	async takeMessage(message: InboxMessage): Promise<InboundEvent | undefined> {
		const { bus, tell } = this.#deps;
		const command = chatCommandIn(message.text);
		if (!command) return undefined;
		const { origin, facts } = message;
		const { channel, account, sender, senderName } = origin;
		const person = { channel, account, sender, senderName, chat: facts.chat };
		const { because, reply } = await this.#byCommand(person, command);
		const event: InboundEvent = { ...message, attachments: [], disposition: { state: "answered", because } };
		await bus.write([inboxWrites.accept(event)], ADMIT_MS_MAX);
		if (reply !== undefined && facts.target) tell({ channel, account, target: facts.target }, reply);
		return event;
	}

	/** Asks in the requester's chat if a member may decide; otherwise tells the requester who decides, and asks the operator (A14). */
	async #prompt(row: Approval): Promise<void> {
		const { tell, config } = this.#deps;
		const { requester } = row;
		// A requester on the page or the API decides there.
		if (!requester?.target) return;
		const here = { channel: requester.channel, account: requester.account, target: requester.target as Target };
		if (row.kind === "question" || (await this.#isDecidedIn(row))) return this.#put(row, here);
		tell(here, waitingText(row));
		const { to } = config().approvals ?? {};
		if (!to) return;
		const target: Target = { to: to.to, thread_id: to.thread };
		await this.#put(row, { channel: to.channel, account: to.account, target });
	}

	/** Shows the outcome in the chats that were asked; an answer that no run waits for starts one. */
	#closed(row: Approval, live: boolean): void {
		const { outbound, log, onLateAnswer } = this.#deps;
		outbound.settleQuestion(askIdOf(row), outcomeOf(row)).catch((cause: unknown) => {
			log.error({ runId: row.runId, approval: row.id, err: cause }, "a decision could not be shown in a chat");
		});
		if (!live && isPersons(row)) onLateAnswer(row);
	}

	async #byCommand(person: ChatPerson, { verb, id, rest }: ChatCommand): Promise<DecisionOutcome> {
		const row = await this.#deps.ledger.approvals.find(id);
		if (!row) return { because: "there is no such question", reply: `There is no question ${id}.` };
		const fault = await this.#fault(person, row);
		if (fault !== undefined) return { because: fault, reply: fault };
		const isQuestion = row.kind === "question";
		if (isQuestion !== (verb === "answer")) {
			const usage = isQuestion ? `\`answer ${row.id} …\`` : `\`approve ${row.id}\` or \`deny ${row.id}\``;
			return { because: "the wrong command for this approval", reply: `Reply ${usage}.` };
		}
		if (isQuestion && rest === "")
			return { because: "the answer is empty", reply: `Reply \`answer ${row.id}\` and your answer.` };
		const by = nameOf(person);
		const always = verb === "approve" && rest.toLowerCase() === ALWAYS;
		const decision: ApprovalDecision = isQuestion
			? { state: "answered", by, text: rest }
			: { state: verb === "approve" ? "approved" : "denied", by, reason: rest !== "" && !always ? rest : undefined };
		return this.#try(row, decision, always);
	}

	/** Handles a pressed button; resolves with the text for the person who pressed it. */
	async pressed({ channel, account, choice }: ChannelChoice): Promise<string | undefined> {
		const row = await this.#deps.ledger.approvals.find(shortIdIn(choice.id));
		if (!row || askIdOf(row) !== choice.id) return GONE;
		const { from, chat } = choice;
		const person = { channel, account, sender: from.id, senderName: from.name, chat };
		const fault = await this.#fault(person, row);
		if (fault !== undefined) return fault;
		const decision = decisionOf(row, choice.choice, nameOf(person));
		if (!decision) return GONE;
		return (await this.#try(row, decision, choice.choice === ALWAYS)).reply;
	}

	/** A decision of the operator. */
	async decide(runId: string, id: string, decision: ApprovalDecision, remember = false): Promise<Approval> {
		const { approvals, ledger } = this.#deps;
		if (!remember) return approvals.decide(runId, id, decision);
		const row = await ledger.approvals.get(runId, id);
		if (!row) throw new NexusError("not_found", `there is no question ${id} of run ${runId}`);
		if (decision.state !== "approved") throw new NexusError("invalid", "only an approval can be remembered");
		const { write, done } = this.grants.granting(row, decision.by);
		const decided = await approvals.decide(runId, id, decision, [write]);
		done();
		return decided;
	}

	async #try(row: Approval, decision: ApprovalDecision, remember: boolean): Promise<DecisionOutcome> {
		try {
			const { state } = await this.decide(row.runId, row.id, decision, remember);
			return { because: `${row.id} ${state}` };
		} catch (cause) {
			const { message, code } = toNexusError(cause);
			if (code !== "conflict" && code !== "invalid" && code !== "busy") throw cause;
			return { because: message, reply: message };
		}
	}

	/** Why this person may not decide. Identified by the platform, never by the text of the message. */
	async #fault(person: ChatPerson, row: Approval): Promise<string | undefined> {
		const { requester, kind, tool, id } = row;
		const isRequester =
			requester?.channel === person.channel &&
			requester.account === person.account &&
			requester.sender === person.sender;
		if (kind === "question") return isRequester ? undefined : `Only the person who was asked can answer ${id}.`;
		const { acl } = rulesOf(this.#deps.config(), person.channel, person.account);
		const may = async (chat: ChatPerson["chat"]) => mayApprove(acl, await this.#aclQuestion({ ...person, chat }), tool);
		const isOperator = this.#isOperatorChat(person) || (acl.owner?.includes(person.sender) ?? false);
		const isSameAccount = requester?.channel === person.channel && requester.account === person.account;
		// An approval right granted for one chat does not apply to another.
		const mayDecide = (await may(person.chat)) && (isOperator || (isSameAccount && (await may(requester.chat))));
		return mayDecide ? undefined : `You may not decide ${id}.`;
	}

	/** The chat where the operator is asked. */
	#isOperatorChat({ channel, account, chat }: ChatPerson): boolean {
		const { to } = this.#deps.config().approvals ?? {};
		return to?.channel === channel && to.account === account && to.to === chat.id;
	}

	async #isDecidedIn({ requester, tool }: Approval): Promise<boolean> {
		const { channel, account, chat } = requester!;
		const { acl } = rulesOf(this.#deps.config(), channel, account);
		if (mayApprove(acl, await this.#aclQuestion(requester!), tool)) return true;
		return isApprovedIn(acl, chat.id, tool);
	}

	/** Counts as mentioned: a button or a command needs no mention. */
	async #aclQuestion({ channel, account, sender, chat }: ChatPerson): Promise<AclQuestion> {
		const { agent } = rulesOf(this.#deps.config(), channel, account);
		const paired = await this.#deps.pairing.isPaired({ channel, account, sender });
		return { channel, account, sender, chat, agent, mention: true, public: true, paired };
	}

	async #put(row: Approval, to: Destination): Promise<void> {
		const { outbound, tell } = this.#deps;
		const choices = choicesOf(row);
		if (choices.length === 0) return tell(to, promptOf(row));
		const { channel, account, target } = to;
		await outbound.ask({ account: { channel, id: account }, target, id: askIdOf(row), text: promptOf(row), choices });
	}
}

function decisionOf(row: Approval, button: string, by: string): ApprovalDecision | undefined {
	if (row.kind === "question") {
		const text = choiceAt(row, button);
		return text === undefined ? undefined : { state: "answered", by, text };
	}
	if (button === APPROVE || button === ALWAYS) return { state: "approved", by };
	return button === DENY ? { state: "denied", by } : undefined;
}

const nameOf = ({ senderName, sender, channel }: ChatPerson): string =>
	`${senderName === undefined ? sender : `${senderName} (${sender})`} on ${channel}`;
