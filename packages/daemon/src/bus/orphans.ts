/** Takes over what dead nodes left, in portions. Several daemons share the work: each item goes to the one whose compare-and-set came first. */

import { type LogKind, NexusError, type Random } from "@nexus-stream/protocol";
import type { Bus, LogInfo } from "./port.ts";
import { OwnedByAnother } from "./storage.ts";

/** Items that are taken over at the same time. */
const AT_ONCE_MAX = 32;

/** In random order and in small portions in a shared store, so that two daemons rarely try the same item; else all of it, in order. */
function portions<T>(items: readonly T[], { isShared }: Pick<Bus, "isShared">, random: Random = Math.random): T[][] {
	if (items.length === 0) return [];
	if (!isShared) return [[...items]];
	const drawn = items.map((item) => ({ item, at: random() })).toSorted((one, other) => one.at - other.at);
	const all: T[][] = [];
	for (let at = 0; at < drawn.length; at += AT_ONCE_MAX)
		all.push(drawn.slice(at, at + AT_ONCE_MAX).map(({ item }) => item));
	return all;
}

/** Calls `take` for every live log of a dead node: the oldest first, or a portion at a time. `take` does not reject. */
async function each(
	bus: Pick<Bus, "list" | "isShared">,
	kind: LogKind,
	take: (info: LogInfo) => Promise<void>,
): Promise<void> {
	const left = (await bus.list({ kind, orphaned: true })).toReversed();
	for (const portion of portions(left, bus)) {
		if (bus.isShared) await Promise.all(portion.map(take));
		else for (const info of portion) await take(info);
	}
}

const isOwnedByAnother = (cause: unknown): boolean => cause instanceof OwnedByAnother;

export const orphans = {
	portions,
	each,
	/** A living daemon has the log, or the last one of its chain: that changes when its work ends, or it dies. */
	isOwnedByAnother,
	/** Another daemon takes the log over, or has ended it already. */
	isTakenByAnother: (cause: unknown): boolean =>
		isOwnedByAnother(cause) || (cause instanceof NexusError && cause.code === "not_found"),
};
