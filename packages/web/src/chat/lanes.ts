/** Arranges the messages of several agents: those that worked in parallel stand side by side. */

import type { MessageView } from "@nexus-stream/protocol";

/** The messages of one agent in a stretch. */
export interface SpeakerLane {
	readonly agent: string | undefined;
	readonly messages: readonly MessageView[];
}

/** A part of the answer; its lanes stand side by side. */
export interface Stretch {
	readonly key: string;
	readonly lanes: readonly SpeakerLane[];
}

/** In the order of their begins. Messages of different agents that overlap in time share a stretch. */
export function stretchesOf(messages: readonly MessageView[]): Stretch[] {
	const stretches: { lanes: Map<string | undefined, MessageView[]>; key: string; untilMs: number }[] = [];
	for (const message of messages) {
		const { agent, startedAt, endedAt = Number.POSITIVE_INFINITY } = message;
		const open = stretches.at(-1);
		const isParallel = open !== undefined && agent !== undefined && startedAt < open.untilMs;
		if (open && (isParallel || open.lanes.has(agent))) {
			const lane = open.lanes.get(agent);
			if (lane) lane.push(message);
			else open.lanes.set(agent, [message]);
			open.untilMs = Math.max(open.untilMs, endedAt);
		} else stretches.push({ lanes: new Map([[agent, [message]]]), key: message.messageId, untilMs: endedAt });
	}
	return stretches.map(({ key, lanes }) => ({
		key,
		lanes: [...lanes].map(([agent, own]) => ({ agent, messages: own })),
	}));
}

/** The lane colours of the style sheet. */
const TONES = ["text", "reasoning", "tool", "part", "media", "other"] as const;

/** The same agent always has the same colour. */
export function toneOf(agent: string): (typeof TONES)[number] {
	let sum = 0;
	for (const char of agent) sum = (sum * 31 + char.codePointAt(0)!) % 9973;
	return TONES[sum % TONES.length]!;
}
