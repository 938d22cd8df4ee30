/** Takes back messages that a command overtook: those that plugins look at when it comes, and those that wait behind them. */

import type { InboxMessage } from "./message.ts";

/** Commands that are remembered; the oldest gives way. */
const COMMANDS_MAX = 1000;

export class Stops {
	/** By session, oldest first. */
	readonly #seen = new Map<string, Set<InboxMessage>>();
	readonly #stopped = new WeakSet<InboxMessage>();
	/** The last `/stop all` of each person and session, an owner's under the session alone. */
	readonly #all = new Map<string, InboxMessage>();

	/** Plugins look at the message until the work is done: meanwhile a command can stop it. */
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

	/** Stops the message that would be the next run. False when there is none. */
	first(session: string): boolean {
		for (const message of this.#seen.get(session) ?? []) {
			if (this.#stopped.has(message)) continue;
			this.#stopped.add(message);
			return true;
		}
		return false;
	}

	/** Stops all messages that came before the command and that its sender may take back; tells how many plugins look at. */
	all(command: InboxMessage): number {
		const key = keyOf(command);
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
		const commands = [this.#all.get(message.session), this.#all.get(keyOf(message))];
		return commands.some((command) => command && message.eventId < command.eventId && maySilence(command, message));
	}
}

const keyOf = ({ session, origin, facts }: InboxMessage): string =>
	facts.sender.owner ? session : JSON.stringify([session, origin.channel, origin.account, origin.sender]);

/** One's own; an owner anybody's. */
export const maySilence = ({ facts, origin }: InboxMessage, other: InboxMessage): boolean =>
	facts.sender.owner || origin.sender === other.origin.sender;
