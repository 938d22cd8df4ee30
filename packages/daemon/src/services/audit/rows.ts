/**
 * Notices: endless logs whose records commit with the change they describe. A log of the Bus has one writer and cannot be part of another's unit, so
 * these are rows. Each topic counts its own records, densely, from 1.
 */

import { type Reading, type Write, writesOf } from "../../std/write.ts";

export interface Notice {
	/** Its place in the topic. */
	sequence: number;
	/** In milliseconds since the epoch. */
	at: number;
	/** One line. */
	text: string;
}

/** Neighbouring records. */
export interface NoticePage {
	/** The place of the first one. */
	first: number;
	count: number;
	/** Joined by line feeds. */
	text: string;
}

/** The kept records of a topic: `first` to `last`; `first` is `last + 1` when nothing is kept. */
export interface NoticeRange {
	first: number;
	last: number;
}

export interface NoticeRows {
	/** Records after a position: about `limit` at most, fewer when they are large. The page may begin before the position. Undefined at the end. */
	read(topic: string, after: number, limit: number): Reading<NoticePage | undefined>;
	/** Records before a position, newest first. */
	newest(topic: string, before: number, limit: number): Reading<Notice[]>;
	range(topic: string): Reading<NoticeRange>;
	/** Whether the oldest of a topic is from before a time. */
	isOlder(topic: string, before: number): Reading<boolean>;
	/** The topics that begin so. */
	topics(prefix: string): Reading<string[]>;
	/** The size of all records that count for one. */
	bytes(countedFor: string): Reading<number>;
}

export interface NoticeOps {
	/** Records that are posted together stay together until they are forgotten. */
	post(topic: string, text: string, at: number, count: number, countedFor?: string): void;
	/** Forgets the oldest of a topic that are from before a time: so many posts at most. */
	forget(topic: string, before: number, limit: number): void;
}

/** The Bus topic that wakes the readers of a topic's notices. */
export const noticeCall = (topic: string): string => `notices:${topic}`;

const { post, forget } = writesOf<NoticeOps>("notices", ["post", "forget"]);

/** Each record is one line. Readers are called after the commit. */
const postAll = (topic: string, records: readonly string[], at: number, countedFor?: string): Write => ({
	...post(topic, records.join("\n"), at, records.length, ...(countedFor === undefined ? [] : [countedFor])),
	topic: noticeCall(topic),
});

export const noticeWrites = {
	/** `countedFor`: in whose share of the store it counts. */
	post: (topic: string, record: string, at: number, countedFor?: string): Write =>
		postAll(topic, [record], at, countedFor),
	/** Several records as one row, which costs as much as one. */
	postAll,
	forget,
};
