/** What a person is asked about a tool call, and what became of it, in words. Pure. */

import type { AskedStatus, ToolView } from "../protocol/protocol.ts";
import { durationText } from "./words.ts";

export interface Asked extends AskedStatus {
	readonly kind: "approval" | "question";
}

export function askedOf({ approval, question }: ToolView): Asked | undefined {
	if (approval) return { kind: "approval", ...approval };
	return question && { kind: "question", ...question };
}

/** It can still be answered: also after its run was cut off, because the answer then starts the one that goes on. */
export const isOpen = ({ state, expires_at: expiresAt }: Asked, now: number): boolean =>
	state === "pending" && (expiresAt === 0 || expiresAt > now);

const DECIDED: Readonly<Record<AskedStatus["state"], string>> = {
	pending: "Nobody answered in time",
	approved: "Allowed",
	denied: "Refused",
	answered: "Answered",
	expired: "Nobody answered in time",
	withdrawn: "No longer asked",
};

export function decidedWords({ state, by }: Asked): string {
	return by === undefined ? DECIDED[state] : `${DECIDED[state]}: ${by}`;
}

export function leftWords({ expires_at: expiresAt }: Asked, now: number): string {
	return expiresAt === 0 ? "" : `${durationText(Math.max(0, expiresAt - now))} left`;
}
