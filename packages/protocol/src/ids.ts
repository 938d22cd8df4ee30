/** Names: ids that sort by the time they were made, the ids derived from them, and what a session or a memory bank may be called. */

import { crc32 } from "./frames/crc.ts";

/** Crockford's base 32: its order is the order of its characters, so ids compare as strings. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_CHARS = 10;
const TAIL_CHARS = 16;

const SESSION_LABEL = /^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/;

/** A number in [0, 1), like Math.random. */
export type Random = () => number;

/** Asked for in advance: a call costs more than the numbers it brings. */
const words = new Uint32Array(256);
let wordsUsed = words.length;

const secureRandom: Random = () => {
	if (wordsUsed === words.length) {
		crypto.getRandomValues(words);
		wordsUsed = 0;
	}
	return words[wordsUsed++]! / 2 ** 32;
};

/** The last id's time and tail: within one millisecond, and when the clock steps back, the tail counts up instead. */
const last = { time: -1, timeText: "", tail: new Uint8Array(TAIL_CHARS) };

function encodeTime(time: number): string {
	let text = "";
	for (let rest = time, place = 0; place < TIME_CHARS; place++) {
		text = ALPHABET[rest % 32] + text;
		rest = Math.floor(rest / 32);
	}
	return text;
}

function startMillisecond(time: number, random: Random): void {
	last.time = time;
	last.timeText = encodeTime(time);
	for (let place = 0; place < TAIL_CHARS; place++) last.tail[place] = Math.floor(random() * 32);
	// The upper half stays free: room to count up 2^79 times.
	last.tail[0]! &= 15;
}

function countUp(): void {
	let place = TAIL_CHARS - 1;
	while (last.tail[place] === 31) last.tail[place--] = 0;
	last.tail[place]!++;
}

const codes = Array.from({ length: TAIL_CHARS }, () => 0);

/** In one piece: sixteen longer and longer texts would be garbage at once. */
function tailText(): string {
	for (let place = 0; place < TAIL_CHARS; place++) codes[place] = ALPHABET.charCodeAt(last.tail[place]!);
	return String.fromCharCode(...codes);
}

/** `<prefix>_<26 characters>`: 48 bits of time, 80 bits that are random or counted up. Later ids of this process are greater. */
export function newId(prefix: string, now: number = Date.now(), random: Random = secureRandom): string {
	const time = Math.floor(now);
	if (time > last.time) startMillisecond(time, random);
	else countUp();
	return `${prefix}_${last.timeText}${tailText()}`;
}

/** From now on this process makes ids that are greater than this one, also when the clock was set back since it was made. */
export function idsAfter(id: string): void {
	const time = timeOfId(id);
	if (time !== undefined && time >= last.time) startMillisecond(time + 1, secureRandom);
}

/** When an id was made, in milliseconds since the epoch; undefined when it is not one of these. */
export function timeOfId(id: string): number | undefined {
	const digits = id.slice(id.indexOf("_") + 1);
	if (digits.length !== TIME_CHARS + TAIL_CHARS) return undefined;
	let time = 0;
	for (const digit of digits.slice(0, TIME_CHARS)) {
		const value = ALPHABET.indexOf(digit);
		if (value < 0) return undefined;
		time = time * 32 + value;
	}
	return time;
}

/** Whether a text has the form of an id of this kind, for example as a list's cursor. */
export const isIdOf = (prefix: string, text: string): boolean =>
	text.startsWith(`${prefix}_`) && timeOfId(text) !== undefined;

export const newRunId = (now?: number, random?: Random): string => newId("run", now, random);
export const newEventId = (now?: number, random?: Random): string => newId("evt", now, random);

/** The id of the n-th stream that a run opens (n = 1, 2, 3 …). */
export const messageIdOf = (runId: string, n: number): string => `${runId}.${n}`;

/** The n of the run's n-th stream: streams begin in this order. */
export const streamNumberOf = (messageId: string): number => Number(messageId.slice(messageId.lastIndexOf(".") + 1));

/** The run that a stream belongs to: chunks and ends carry only the stream's id. */
export function runIdOf(messageId: string): string {
	const dot = messageId.lastIndexOf(".");
	return dot < 0 ? messageId : messageId.slice(0, dot);
}

/** A W3C trace id (32 hex digits) that is always the same for the same run: the id's own 128 bits, or a digest of a foreign id. */
export function traceIdOf(runId: string): string {
	const digits = runId.slice(runId.indexOf("_") + 1);
	if (/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(digits)) {
		// Two digits are the first eight bits; after them four digits are five hex digits.
		let hex = hexOf(digits, 0, 2);
		for (let at = 2; at < digits.length; at += 4) hex += hexOf(digits, at, at + 4);
		return hex;
	}
	return [1, 2, 3, 4].map((part) => crc32(`${part}:${runId}`).toString(16).padStart(8, "0")).join("");
}

function hexOf(digits: string, from: number, to: number): string {
	let bits = 0;
	for (let at = from; at < to; at++) bits = bits * 32 + ALPHABET.indexOf(digits[at]!);
	return bits.toString(16).padStart(to - from === 2 ? 2 : 5, "0");
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/;

/** The trace that a caller's W3C `traceparent` header names; undefined when it is malformed, which by that standard starts a new one. */
export function traceIdIn(traceparent: string): string | undefined {
	const [, version, traceId, parentId, more] = TRACEPARENT.exec(traceparent.trim()) ?? [];
	if (traceId === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
	return /[^0]/.test(traceId) && /[^0]/.test(parentId!) ? traceId : undefined;
}

/** 1 to 128 characters that need no escaping in a path, a file name or a log line. */
export const isSessionLabel = (text: string): boolean => SESSION_LABEL.test(text);

/** The name of an agent, a channel or an account, as the configuration takes it. */
const NAME = "[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}";
/** A sender is called as its platform calls it: anything but control characters. */
const BANK = new RegExp(`^(?:agent:${NAME}|person:${NAME}/${NAME}/[^\\p{Cc}\\p{Cs}]{1,512})$`, "u");

export const isMemoryBank = (text: string): boolean => BANK.test(text);
