/** The record of an account's creations, written before the call and after it, so that after a crash only a call under way is in doubt. */

import { randomBytes } from "node:crypto";
import { wordsOf } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";
import { cannotTell, PlatformError } from "../platform/platform-error.ts";
import type { CreatedMessage } from "../platform/session.ts";
import type { Notes } from "./notes.ts";

/** A message of ours in a chat's history. */
export interface KeptMessage {
	/** The ids under which its creation may have been answered, the best first. */
	ids: readonly [string, ...string[]];
	/** By the platform's clock, in milliseconds since the epoch; 0: unknown. */
	ts: number;
}

export interface MessageSearch<T extends KeptMessage> {
	/** Our messages in the chat since a time, newest first. */
	list(since: number): Promise<readonly T[]>;
	isAlike(message: T): boolean;
	/** The waits before each look: a platform may list a message only some time after it has taken it. */
	waitsMs: readonly number[];
}

export type MessageMatch = "made" | "other" | "unclear";

/** How far the platform's clock may be from ours, and how far back a look-up goes. */
const SKEW_MS_MAX = 60 * 60_000;
/** Clocks that are set by the network differ by less. */
const SKEW_MS = 2000;

/** `ts`: when it was noted, by our clock. Absent in notes of earlier versions. */
type Note = ({ at: "leaving" } | { at: "refused" } | { at: "sent"; messageId: string }) & { ts?: number };

interface NonceState {
	/** Calls that left, or were about to, and were not refused. */
	open: number;
	/** When the first of these was noted. */
	left?: number | undefined;
	messageId?: string;
	/** When its message was known. */
	sent?: number | undefined;
}

export class SentLog {
	readonly #notes: Notes;
	readonly #clock: Clock;
	/** Notes of earlier processes are there too. */
	readonly #isDurable: boolean;
	#read: { lines: readonly string[]; entries: ReadonlyMap<string, NonceState> } = { lines: [], entries: new Map() };

	/** Without notes the record lasts as long as the process. */
	constructor(notes: Notes | undefined, clock: Clock) {
		this.#notes = notes ?? inMemory();
		this.#clock = clock;
		this.#isDurable = notes !== undefined;
	}

	/** Runs a call that creates a message, with its notes. `inDoubt`: an earlier call with this nonce may have created it. */
	async create(nonce: string, work: (inDoubt: boolean) => Promise<CreatedMessage>): Promise<CreatedMessage> {
		const inDoubt = this.#isDurable && this.mayHaveLeft(nonce);
		// Without this note the message would count as never sent; without the later ones it is only in doubt.
		const noted = this.#notes.addLasting(this.#lineOf(nonce, { at: "leaving" }));
		await noted?.catch((cause: unknown) => {
			throw new PlatformError("unavailable", `The message was not sent: ${wordsOf(cause)}`, { cause });
		});
		try {
			const made = await work(inDoubt);
			this.add(nonce, made.messageId);
			return made;
		} catch (cause) {
			const refused = cause instanceof PlatformError && cause.fault !== "unknown_outcome";
			if (refused) this.#notes.add(this.#lineOf(nonce, { at: "refused" }));
			throw cause;
		}
	}

	/** Notes that this nonce created this message. */
	add(nonce: string, messageId: string): void {
		this.#notes.add(this.#lineOf(nonce, { at: "sent", messageId }));
	}

	of(nonce: string): string | undefined {
		return this.#entries().get(nonce)?.messageId;
	}

	/** Is this message already attributed to a nonce? */
	has(messageId: string): boolean {
		return [...this.#entries().values()].some((entry) => entry.messageId === messageId);
	}

	/** False: the call with this nonce never left, or was refused. */
	mayHaveLeft(nonce: string): boolean {
		const entry = this.#entries().get(nonce);
		if (entry === undefined) return !this.#isDurable;
		return entry.open > 0 || entry.messageId !== undefined;
	}

	/** Returns the outcome from the notes, or asks `look` and notes the result, so that a later look-up cannot claim the same message. */
	async find(nonce: string, look: () => Promise<CreatedMessage | undefined>): Promise<CreatedMessage | undefined> {
		const messageId = this.of(nonce);
		if (messageId !== undefined) return { messageId };
		if (!this.mayHaveLeft(nonce)) return undefined;
		const found = await look();
		if (found) this.add(nonce, found.messageId);
		return found;
	}

	/** A look-up for platforms where messages are recognised by their text. Throws when the text does not decide it. */
	async findAlike<T extends KeptMessage>(
		nonce: string,
		{ list, isAlike, waitsMs }: MessageSearch<T>,
	): Promise<CreatedMessage | undefined> {
		const since = (this.#entries().get(nonce)?.left ?? this.#clock.now()) - SKEW_MS_MAX;
		let unclear = false;
		for (const waitMs of waitsMs) {
			if (waitMs > 0) await sleep(this.#clock, waitMs);
			const listed = await list(since);
			const verdictOn = this.judge(nonce, listed);
			const alike = listed.filter(isAlike);
			const made = alike.find((each) => verdictOn(each) === "made");
			if (made) return { messageId: made.ids[0] };
			unclear = alike.some((each) => verdictOn(each) === "unclear");
		}
		if (unclear) {
			throw cannotTell(
				"The chat has a message with the same content, and its time does not tell whether it is this one. Look at the chat.",
			);
		}
		return undefined;
	}

	/** Could the call with this nonce have created a message with the same text, judged by our messages that the platform lists? */
	judge(nonce: string, listed: readonly KeptMessage[]): (message: KeptMessage) => MessageMatch {
		const byId = new Map([...this.#entries().values()].map((entry) => [entry.messageId, entry]));
		const knownAs = ({ ids }: KeptMessage) => ids.map((id) => byId.get(id)).find((entry) => entry !== undefined);
		const { left } = this.#entries().get(nonce) ?? {};
		const earliest = left === undefined ? undefined : earliestOf(left, listed, knownAs);
		return (message) => {
			if (knownAs(message)) return "other";
			if (!earliest || message.ts === 0) return "unclear";
			if (message.ts < wholeSeconds(earliest.possible, message.ts)) return "other";
			return message.ts < wholeSeconds(earliest.certain, message.ts) ? "unclear" : "made";
		};
	}

	#entries(): ReadonlyMap<string, NonceState> {
		const lines = this.#notes.all();
		if (lines !== this.#read.lines) this.#read = { lines, entries: readEntries(lines) };
		return this.#read.entries;
	}

	/** The random id makes every note unique, so that copies of one note count once. */
	#lineOf(nonce: string, note: Note): string {
		return JSON.stringify({ id: randomBytes(9).toString("base64url"), nonce, ts: this.#clock.now(), ...note });
	}
}

/**
 * When, by the platform's clock, a call that left at this time can have made its message: not before one that was known by then (`possible`), and
 * as long after it as the call left after that was known (`certain`). Without such a message both clocks are taken to agree.
 */
function earliestOf(
	left: number,
	listed: readonly KeptMessage[],
	knownAs: (message: KeptMessage) => NonceState | undefined,
): { possible: number; certain: number } {
	const before = listed.flatMap((message) => {
		const { sent } = knownAs(message) ?? {};
		return sent !== undefined && sent <= left && message.ts !== 0 ? [{ ts: message.ts, agoMs: left - sent }] : [];
	});
	if (before.length === 0) return { possible: left - SKEW_MS_MAX, certain: left - SKEW_MS };
	const possible = Math.max(...before.map(({ ts }) => ts));
	const certain = Math.max(...before.map(({ ts, agoMs }) => ts + agoMs));
	return { possible, certain: Math.max(possible, certain - SKEW_MS) };
}

/** Some platforms cut times to whole seconds: the limit is cut likewise. */
const wholeSeconds = (limit: number, ts: number): number => (ts % 1000 === 0 ? Math.floor(limit / 1000) * 1000 : limit);

/** Skips damaged lines and repeated notes. */
function readEntries(lines: readonly string[]): Map<string, NonceState> {
	const found = new Map<string, NonceState>();
	const read = new Set<string>();
	for (const line of lines) {
		try {
			const note = JSON.parse(line) as Note & { nonce: string; id?: string };
			if (note.id !== undefined && read.has(note.id)) continue;
			if (note.id !== undefined) read.add(note.id);
			const entry = found.get(note.nonce) ?? { open: 0 };
			found.set(note.nonce, entry);
			// Refused calls created nothing and do not count as the first.
			if (note.at === "leaving" && entry.open <= 0) entry.left = note.ts;
			if (note.at === "leaving") entry.open++;
			else if (note.at === "refused") entry.open--;
			else Object.assign(entry, { messageId: note.messageId, sent: note.ts });
		} catch {}
	}
	return found;
}

function inMemory(): Notes {
	let lines: readonly string[] = [];
	const add = (line: string) => {
		lines = [...lines.slice(-1000), line];
	};
	return { add, addLasting: add, all: () => lines };
}
