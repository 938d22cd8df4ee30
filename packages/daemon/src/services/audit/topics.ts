/** The topics of notices, and how long each is kept: whatever the others hold, so that a flood of runs evicts no audit (Z1). */

export const AUDIT_TOPIC = "audit";
export const AGENTS_TOPIC = "agents";
export const MEMORY_TOPIC = "memory";

const APP_PREFIX = "app:";

/** Topic of the messages to an application. */
export const appTopic = (appId: string): string => `${APP_PREFIX}${appId}`;

const DAY_MS = 24 * 60 * 60_000;

interface TopicRetention {
	/** A topic, or how the names of several begin. */
	topic: string;
	isPrefix: boolean;
	keptMs: number;
}

/** `auditDays` is configured. */
export const keptNotices = (auditDays: number): readonly TopicRetention[] => [
	{ topic: AUDIT_TOPIC, isPrefix: false, keptMs: auditDays * DAY_MS },
	{ topic: MEMORY_TOPIC, isPrefix: false, keptMs: 90 * DAY_MS },
	{ topic: AGENTS_TOPIC, isPrefix: false, keptMs: 7 * DAY_MS },
	{ topic: APP_PREFIX, isPrefix: true, keptMs: 7 * DAY_MS },
];
