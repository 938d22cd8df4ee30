/** Commands in a chat: recognised after the access rules and before plugins and queue, and answered with a note (A28). */

import type { LiveRun } from "../../broker/broker.ts";
import { ADMIT_MS_MAX } from "../../bus/bus.ts";
import { type InboundEvent, inboxWrites } from "../../ledger/inbox/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { chatCommandIn } from "../approvals/prompts.ts";
import { type InboundConfig, rulesOf } from "./config.ts";
import type { InboxDeps } from "./deps.ts";
import type { ChannelMessage, InboxMessage } from "./message.ts";
import type { Sessions } from "./sessions.ts";

export type SessionCommand = "/stop" | "/stop all" | "/new" | "/status";

/** Also with `!`: clients of some platforms reserve the slash. */
const COMMAND = /^[/!](?:(stop)(?:\s+(all))?|(new)|(status))$/i;

/** In a group only a message that mentions the bot is its command: another bot may have the same commands. */
export function commandIn({
	message: { text, attachments = [], chat, mention = false },
}: ChannelMessage): SessionCommand | undefined {
	if (attachments.length > 0 || (chat.type === "group" && !mention)) return undefined;
	const words = COMMAND.exec(text.trim())
		?.slice(1)
		.filter((word) => word !== undefined);
	return words && (`/${words.join(" ").toLowerCase()}` as SessionCommand);
}

/** A command, or the reply to an approval or a question. */
export const isCommand = (inbound: ChannelMessage): boolean =>
	commandIn(inbound) !== undefined || chatCommandIn(inbound.message.text) !== undefined;

export type CommandsDeps = InboxDeps & { sessions: Sessions; stops: Stops };

const NEW: SessionCommand = "/new";
const LABEL_CHARS_MAX = 128;

/** The session of a chat since its last `/new` before this message. The recorded command is the only state. */
export async function sessionSince({ inbox }: Ledger, label: string, eventId: string): Promise<string> {
	const event = await inbox.handled(label, NEW, eventId);
	if (event === undefined) return label;
	const suffix = `:${event.eventId}`;
	return `${label.slice(0, LABEL_CHARS_MAX - suffix.length)}${suffix}`;
}

/** Recorded first, so that a command which the platform sends twice runs once. `label` is the original label of the chat's session. */
export async function carryOut(
	deps: CommandsDeps,
	command: SessionCommand,
	message: InboxMessage,
	label: string,
): Promise<InboundEvent> {
	const { origin, facts } = message;
	const refusal = command === NEW ? refusalOfNew(deps.config(), message) : undefined;
	const event: InboundEvent = {
		...message,
		session: command === NEW ? label : message.session,
		disposition: { state: "handled", because: refusal === undefined ? command : `${command}, refused` },
	};
	await deps.bus.write([inboxWrites.accept(event)], ADMIT_MS_MAX);
	const { target } = facts;
	const reply = refusal ?? (await answers[command](deps, message));
	if (target) deps.tell({ channel: origin.channel, account: origin.account, target }, reply);
	return event;
}

/** Why the session cannot be restarted from this chat. */
function refusalOfNew(config: InboundConfig, { origin }: InboxMessage): string | undefined {
	const { session } = rulesOf(config, origin.channel, origin.account);
	if (session === "chat" || session === "sender") return undefined;
	return `This chat shares the session ${session} with others, so it cannot be restarted from here.`;
}

const answers: Record<SessionCommand, (deps: CommandsDeps, message: InboxMessage) => string | Promise<string>> = {
	"/new": () => "New session: your next message starts without the earlier conversation.",
	"/stop": ({ sessions, stops }, { session }) =>
		sessions.stop(session) || stops.first(session) ? "Stopped." : "Nothing is running.",
	async "/stop all"({ sessions, stops }, message) {
		const overtaken = stops.all(message);
		const cancelled = overtaken + (await sessions.cancel(message.session, (one) => mayCancel(message, one)));
		const stopped = sessions.stop(message.session) ? "Stopped." : "Nothing is running.";
		return `${stopped} ${counted(cancelled)} cancelled.`;
	},
	async "/status"({ broker, sessions, ledger, clock }, { session }) {
		const waiting = sessions.waiting(session);
		const waits = waiting === 0 ? "Nothing waits." : `${counted(waiting)} ${waiting === 1 ? "waits" : "wait"}.`;
		const phase = await ledger.phases.get(session);
		const rest = phase ? `${waits} The phase is ${phase.name}.` : waits;
		const run = broker.liveRuns().find((live) => live.session === session);
		return run ? `${stateOf(run, clock.now())} ${rest}` : `Nothing is running. ${rest}`;
	},
};

function stateOf({ status, startedAt, engine, compacting, toolCalls }: LiveRun, now: number): string {
	const tools = toolCalls.filter((call) => call.status === "started").map(({ name }) => name);
	const doing = compacting ? ", compacting its context" : tools.length > 0 ? `, in ${tools.join(", ")}` : "";
	const seconds = Math.round((now - startedAt) / 1000);
	return `${status === "stopping" ? "Stopping" : "Running"} for ${seconds} s with ${engine}${doing}.`;
}

const counted = (count: number): string => `${count} ${count === 1 ? "message" : "messages"}`;

/** Remembered `/stop all` commands; beyond this the oldest is forgotten. */
const COMMANDS_MAX = 1000;

/** Cancels messages that a command overtook: those that plugins are looking at, and those that wait behind them. */
export class Stops {
	/** Messages at the plugins, by session, oldest first. */
	readonly #seen = new Map<string, Set<InboxMessage>>();
	readonly #stopped = new WeakSet<InboxMessage>();
	/** The last `/stop all` by session and person, or by session alone for an owner. */
	readonly #all = new Map<string, InboxMessage>();

	/** A command can stop the message while the work runs. */
	async during<T>(message: InboxMessage, work: () => Promise<T>): Promise<T> {
		const { session } = message;
		const seen = this.#seen.get(session) ?? new Set();
		this.#seen.set(session, seen.add(message));
		try {
			return await work();
		} finally {
			seen.delete(message);
			if (seen.size === 0) this.#seen.delete(session);
		}
	}

	/** Stops the message that would become the next run. False when there is none. */
	first(session: string): boolean {
		for (const message of this.#seen.get(session) ?? []) {
			if (this.#stopped.has(message)) continue;
			this.#stopped.add(message);
			return true;
		}
		return false;
	}

	/** Stops all earlier messages that the command's sender may cancel; returns how many of them are at the plugins. */
	all(command: InboxMessage): number {
		const key = stopKeyOf(command);
		this.#all.delete(key);
		this.#all.set(key, command);
		for (const oldest of this.#all.keys()) {
			if (this.#all.size <= COMMANDS_MAX) break;
			this.#all.delete(oldest);
		}
		return [...(this.#seen.get(command.session) ?? [])].filter((message) => this.has(message)).length;
	}

	has(message: InboxMessage): boolean {
		if (this.#stopped.has(message)) return true;
		const commands = [this.#all.get(message.session), this.#all.get(stopKeyOf(message))];
		return commands.some((command) => command && message.eventId < command.eventId && mayCancel(command, message));
	}
}

const stopKeyOf = ({ session, origin, facts }: InboxMessage): string =>
	facts.sender.owner ? session : JSON.stringify([session, origin.channel, origin.account, origin.sender]);

/** Senders may cancel their own messages, an owner all messages. */
export const mayCancel = ({ facts, origin }: InboxMessage, other: InboxMessage): boolean =>
	facts.sender.owner || origin.sender === other.origin.sender;
