/** Commands in a chat: recognised after access rules and before plugins and queue, never waiting for either, and answered with a note (A28). */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Broker, LiveRun } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import { type InboundEvent, inboxWrites, type Ledger } from "../../ledger/ledger.ts";
import { chatCommandIn } from "../approvals/command.ts";
import { type InboundConfig, rulesOf } from "./config.ts";
import type { ChannelMessage, Destination, InboxMessage } from "./message.ts";
import type { Sessions } from "./sessions.ts";
import { maySilence, type Stops } from "./stops.ts";

export type SessionCommand = "/stop" | "/stop all" | "/new" | "/status";

/** Clients of some platforms keep a slash for themselves. */
const COMMAND = /^[/!](?:(stop)(?:\s+(all))?|(new)|(status))$/i;

/** In a group only what is said to us is a command of ours: another bot may have the same. */
export function commandIn({
	message: { text, attachments = [], chat, mention = false },
}: ChannelMessage): SessionCommand | undefined {
	if (attachments.length > 0 || (chat.type === "group" && !mention)) return undefined;
	const words = COMMAND.exec(text.trim())
		?.slice(1)
		.filter((word) => word !== undefined);
	return words && (`/${words.join(" ").toLowerCase()}` as SessionCommand);
}

/** A command, or a decision on what a run asked. */
export const isCommand = (inbound: ChannelMessage): boolean =>
	commandIn(inbound) !== undefined || chatCommandIn(inbound.message.text) !== undefined;

export interface CommandsDeps {
	broker: Pick<Broker, "liveRuns">;
	bus: Bus;
	ledger: Ledger;
	sessions: Sessions;
	stops: Stops;
	config(): InboundConfig;
	/** Says something that is not an answer to a run. Never rejects. */
	tell(place: Destination, text: string): void;
	clock: Clock;
}

const NEW: SessionCommand = "/new";
const LABEL_CHARS_MAX = 128;

/** The session that a message's chat talks to since the last `/new` before it. The record of that command is all there is of it. */
export async function sessionSince({ inbox }: Ledger, label: string, eventId: string): Promise<string> {
	const event = await inbox.handled(label, NEW, eventId);
	if (event === undefined) return label;
	const suffix = `:${event.eventId}`;
	return `${label.slice(0, LABEL_CHARS_MAX - suffix.length)}${suffix}`;
}

/** On record first: a platform that sends it again has it done once. `label` is what the chat's session was first called. */
export async function carryOut(
	deps: CommandsDeps,
	command: SessionCommand,
	message: InboxMessage,
	label: string,
): Promise<InboundEvent> {
	const { origin, facts } = message;
	const shared = command === NEW ? sharedBy(deps.config(), message) : undefined;
	const event: InboundEvent = {
		...message,
		session: command === NEW ? label : message.session,
		disposition: { state: "handled", because: shared === undefined ? command : `${command}, refused` },
	};
	await deps.bus.write([inboxWrites.accept(event)], ADMIT_MS_MAX);
	const { target } = facts;
	const said = shared ?? (await answers[command](deps, message));
	if (target) deps.tell({ channel: origin.channel, account: origin.account, target }, said);
	return event;
}

/** Why nobody may begin it anew from one chat. */
function sharedBy(config: InboundConfig, { origin }: InboxMessage): string | undefined {
	const { session } = rulesOf(config, origin.channel, origin.account);
	if (session === "chat" || session === "sender") return undefined;
	return `This chat shares the session ${session} with others, so it cannot be begun anew from here.`;
}

const answers: Record<SessionCommand, (deps: CommandsDeps, message: InboxMessage) => string | Promise<string>> = {
	"/new": () => "A new session: I do not know what was said before. Your next message begins it.",
	"/stop": ({ sessions, stops }, { session }) =>
		sessions.stop(session) || stops.first(session) ? "Stopped." : "Nothing is running.",
	async "/stop all"({ sessions, stops }, message) {
		const overtaken = stops.all(message);
		const cancelled = overtaken + (await sessions.cancel(message.session, (one) => maySilence(message, one)));
		const stopped = sessions.stop(message.session) ? "Stopped." : "Nothing is running.";
		return `${stopped} ${counted(cancelled)} that waited ${cancelled === 1 ? "is" : "are"} cancelled.`;
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
	const doing = compacting ? ", shortening what it remembers" : tools.length > 0 ? `, in ${tools.join(", ")}` : "";
	const seconds = Math.round((now - startedAt) / 1000);
	return `${status === "stopping" ? "Being stopped" : "Running"} for ${seconds} s with ${engine}${doing}.`;
}

const counted = (count: number): string => `${count} ${count === 1 ? "message" : "messages"}`;
