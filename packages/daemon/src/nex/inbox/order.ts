/** Work of the same name is done one after another, in the order it was given; other names do not wait (ST11). */

import { NexusError } from "@nexus-stream/protocol";

export type Order = <T>(name: string, work: () => Promise<T>) => Promise<T>;

const NOTHING = Promise.resolve();

export function createOrder(waitingMax = Infinity): Order {
	const lines = new Map<string, { last: Promise<unknown>; count: number }>();
	return async (name, work) => {
		const line = lines.get(name) ?? { last: NOTHING, count: 0 };
		if (line.count >= waitingMax)
			throw new NexusError("busy", `${waitingMax} messages wait in ${name} already; try again later.`);
		lines.set(name, line);
		line.count++;
		const mine = line.last.then(work, work);
		line.last = mine;
		try {
			return await mine;
		} finally {
			if (--line.count === 0) lines.delete(name);
		}
	};
}
