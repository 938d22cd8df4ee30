/** Limits of open streams for one application and for all callers without a token, so that neither can keep the others out. */

import type { EventEmitter } from "node:events";
import { NexusError } from "@nexus-stream/protocol";
import type { EdgeLimits, Principal } from "../port.ts";

type Holder = Pick<Principal, "owner" | "appId">;

/** Counts one more stream of the caller until `ended` closes; throws `busy` at its limit. The owner's are limited with all others only. */
export type HoldStream = (holder: Holder | undefined, ended: EventEmitter) => void;

/** No application is called so. */
const NOBODY = "";

export function createShares({ streamsPerAppMax, streamsTokenlessMax }: EdgeLimits): HoldStream {
	const counts = createCounts();
	return (holder, ended) => {
		if (holder?.owner) return;
		const key = holder?.appId ?? NOBODY;
		const most = key === NOBODY ? streamsTokenlessMax : streamsPerAppMax;
		if (counts.of(key) >= most) throw tooMany(key, most);
		counts.add(key, ended);
	};
}

const tooMany = (appId: string, most: number): NexusError =>
	new NexusError(
		"busy",
		appId === NOBODY
			? `${most} streams without a token are open already: send a token, or ask with Check`
			: `${appId} has ${most} streams open already; close one or try later`,
	);

/** How many of something each of several has open. */
export function createCounts() {
	const counts = new Map<string, number>();
	const of = (key: string) => counts.get(key) ?? 0;
	return {
		of,
		/** Until `ended` closes; returns how many there are now. */
		add(key: string, ended: EventEmitter): number {
			counts.set(key, of(key) + 1);
			ended.once("close", () => {
				const left = of(key) - 1;
				if (left === 0) counts.delete(key);
				else counts.set(key, left);
			});
			return of(key);
		},
	};
}
