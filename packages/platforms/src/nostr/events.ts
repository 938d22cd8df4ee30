/** The events of an answer: what is stored, what only passes by, and the tags of each. */

import { PlatformError, type SendOptions, type Target, type Tools } from "@nexus-stream/adapter";
import { wordsOf } from "@nexus-stream/protocol";
import type { EventTemplate } from "nostr-tools/core";
import { NOSTR_THREAD } from "../chats.ts";

export const PROFILE = 0;
export const NOTE = 1;
export const THREAD_START = 11;
export const CHAT_MESSAGE = 14;
export const FILE_MESSAGE = 15;
export const GIFT_WRAP = 1059;
export const COMMENT = 1111;
export const INBOX_RELAYS = 10_050;
/** Ephemeral: relays pass these on and keep none. */
export const STREAM = 21_111;
export const TYPING_ON = 24_111;
export const TYPING_OFF = 24_112;

export type Tags = string[][];

const EVENT_ID = /^[0-9a-f]{64}$/;

/** The part of an event that a retry must not change: with the same text it gives the same event id. */
export interface Intent {
	kind: number;
	created_at: number;
	tags: Tags;
	/** A digest of the text: with another one it would be another event. */
	text: string;
}

/** Where an answer in a public thread goes; inbound.ts makes it, the daemon gives it back. */
export interface ThreadTarget {
	/** Kind of the reply: as the thread's. */
	kind: number;
	tags: Tags;
}

const isTags = (value: unknown): value is Tags =>
	Array.isArray(value) &&
	value.every((tag) => Array.isArray(tag) && tag.length > 0 && tag.every((each) => typeof each === "string"));

/** A target that a person has typed names only the thread: it is taken for one of notes. */
export function threadOf(target: Target): ThreadTarget {
	const { kind, tags } = target;
	if ((kind === NOTE || kind === COMMENT) && isTags(tags)) return { kind, tags };
	const root = rootOf(target);
	if (!EVENT_ID.test(root))
		throw new PlatformError("invalid", `${NOSTR_THREAD}… must name an event by its 64 hex digits.`);
	return { kind: NOTE, tags: [["e", root, "", "root"]] };
}

export const isThread = ({ to }: Target): boolean => to.startsWith(NOSTR_THREAD);

export const rootOf = ({ to }: Target): string => to.slice(NOSTR_THREAD.length);

/** Facts about the run, for programs that read threads. */
export function factTags({ runId, agent, model, phase, usage = {} }: NonNullable<SendOptions["facts"]>): Tags {
	const named = Object.entries({ run: runId, agent, model, phase });
	const tags = named.flatMap(([name, value]) => (value ? [[name, value]] : []));
	// -1 stands for an unknown count.
	const counts = Object.entries(usage).filter(([, count]) => Number.isFinite(count) && count >= 0);
	return [...tags, ...counts.map(([name, count]) => ["usage", name, String(count)])];
}

/** A piece of an answer that is being written: `content` replaces everything from `from` (UTF-16 units) on. */
export interface AnswerPiece {
	from: number;
	content: string;
	/** Counts an answer's pieces from 1. */
	sequence: number;
}

export function streamEvent(target: Target, stream: string, piece: AnswerPiece, createdAt: number): EventTemplate {
	const place = [
		["stream", stream],
		["sequence", String(piece.sequence)],
		["from", String(piece.from)],
	];
	return { kind: STREAM, created_at: createdAt, tags: [...ephemeralTags(target), ...place], content: piece.content };
}

export function typingEvent(target: Target, on: boolean, text: string, createdAt: number): EventTemplate {
	const kind = on ? TYPING_ON : TYPING_OFF;
	return { kind, created_at: createdAt, tags: ephemeralTags(target), content: on ? text : "" };
}

/** Readers of a thread subscribe to its first event; the one that is answered tells whose question it is. */
function ephemeralTags(target: Target): Tags {
	const { reply_to } = target;
	const root = rootOf(target);
	// A thread below an article or a web page has no first event.
	const above = EVENT_ID.test(root) ? [["e", root, "", "root"]] : [];
	return reply_to === undefined || reply_to === root ? above : [...above, ["e", reply_to, "", "reply"]];
}

const MEMORY_MAX = 1000;

/**
 * Intents are stored before their event is sent: after a crash another process makes the same event, with the same id. Returns the intent of a
 * nonce: an earlier one, or the one made now, which is durable when the promise resolves.
 */
export function openIntents({ notes }: Pick<Tools, "notes">) {
	const memory = new Map<string, Intent>();
	return async (nonce: string, make: () => Intent): Promise<Intent> => {
		const known = memory.get(nonce) ?? findNote(notes?.all() ?? [], nonce);
		if (known) return known;
		const intent = make();
		try {
			await notes?.addLasting(JSON.stringify({ intent: nonce, ...intent }));
		} catch (cause) {
			throw new PlatformError("unavailable", `The message was not sent: ${wordsOf(cause)}`, { cause });
		}
		memory.set(nonce, intent);
		if (memory.size > MEMORY_MAX) memory.delete(memory.keys().next().value ?? "");
		return intent;
	};
}

function findNote(lines: readonly string[], nonce: string): Intent | undefined {
	for (const line of lines) {
		if (!line.includes(nonce)) continue;
		try {
			const { intent, kind, created_at, tags, text } = JSON.parse(line) as Intent & { intent?: string };
			if (intent === nonce) return { kind, created_at, tags, text };
		} catch {
			// A power cut may leave half a line; then nothing left with it either.
		}
	}
	return undefined;
}
