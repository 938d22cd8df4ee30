/**
 * Notices: endless logs whose records commit with what they tell of. A log of the Bus has one writer and is no part of another's unit, so
 * these are rows. Each topic counts its own, densely, from 1.
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

/** What is kept of a topic: `first` to `last`; `first` is `last + 1` when nothing is. */
export interface NoticeRange {
	first: number;
	last: number;
}

export interface Notices {
	/** What follows a place, oldest first: at most so many, and fewer when they are large. None only at the end. */
	read(topic: string, after: number, limit: number): Reading<Notice[]>;
	/** What is before a place, newest first. */
	newest(topic: string, before: number, limit: number): Reading<Notice[]>;
	range(topic: string): Reading<NoticeRange>;
	/** Whether the oldest of a topic is from before a time. */
	isOlder(topic: string, before: number): Reading<boolean>;
	/** The topics that begin so. */
	topics(prefix: string): Reading<string[]>;
}

export interface NoticeOps {
	post(topic: string, text: string, at: number): void;
	/** Forgets the oldest of a topic that are from before a time, at most so many. */
	forget(topic: string, before: number, limit: number): void;
}

/** What a reader of notices listens to on the Bus. */
export const noticeCall = (topic: string): string => `notices:${topic}`;

const { post, forget } = writesOf<NoticeOps>("notices", ["post", "forget"]);

export const noticeWrites = {
	/** The text is one line, the topic one of a few: what a person names in it is checked before. Readers are called after the commit. */
	post: (topic: string, text: string, at: number): Write => ({ ...post(topic, text, at), topic: noticeCall(topic) }),
	forget,
};
