/**
 * A store whose connection is bad (ST27): it answers late and out of order, loses answers, and dies before or after a commit was applied.
 * What it does is drawn from a seed.
 */

import { setImmediate } from "node:timers/promises";
import fc from "fast-check";
import { OutcomeUnknown, type Storage } from "../../packages/daemon/src/bus/storage.ts";

export interface Faults {
	/** Every call takes up to so many turns of the loop. */
	turnsMax: number;
	/** How often in a hundred a commit is applied and its answer is lost, or is lost itself. */
	lostAnswers: number;
	lostCommits: number;
}

export const FAULTS: Faults = { turnsMax: 4, lostAnswers: 8, lostCommits: 8 };

export function faulty(inner: Storage, seed: number, faults: Faults = FAULTS): Storage {
	const random = fc.sample(fc.infiniteStream(fc.nat(9999)), { numRuns: 1, seed })[0]!;
	const draw = (below: number) => (random.next().value as number) % below;
	const late = async <T>(work: () => T | Promise<T>): Promise<T> => {
		for (let turns = draw(faults.turnsMax + 1); turns > 0; turns--) await setImmediate();
		const answer = await work();
		for (let turns = draw(faults.turnsMax + 1); turns > 0; turns--) await setImmediate();
		return answer;
	};
	return {
		join: (...args) => late(() => inner.join(...args)),
		renew: (...args) => late(() => inner.renew(...args)),
		expire: (...args) => late(() => inner.expire(...args)),
		leave: (...args) => late(() => inner.leave(...args)),
		reserve: (...args) => late(() => inner.reserve(...args)),
		async commit(commit) {
			const fate = draw(100);
			if (fate < faults.lostCommits) {
				await late(() => {});
				throw new OutcomeUnknown(new Error("the connection was cut before the commit"));
			}
			const committed = await late(() => inner.commit(commit));
			if (fate < faults.lostCommits + faults.lostAnswers)
				throw new OutcomeUnknown(new Error("the connection was cut after the commit"));
			return committed;
		},
		find: (...args) => late(() => inner.find(...args)),
		read: (...args) => late(() => inner.read(...args)),
		link: (...args) => late(() => inner.link(...args)),
		chain: (...args) => late(() => inner.chain(...args)),
		chainWith: (...args) => late(() => inner.chainWith(...args)),
		list: (...args) => late(() => inner.list(...args)),
		adopt: (...args) => late(() => inner.adopt(...args)),
		oldestSealed: (...args) => late(() => inner.oldestSealed(...args)),
		totalBytes: (...args) => late(() => inner.totalBytes(...args)),
		removeSome: (...args) => late(() => inner.removeSome(...args)),
		tidy: (...args) => late(() => inner.tidy(...args)),
		async notify(notification) {
			// It may be lost or doubled.
			for (let times = draw(3); times > 0; times--) await late(() => inner.notify(notification));
		},
		follow(...args) {
			const { look, stop } = inner.follow(...args);
			return { look: () => late(look), stop };
		},
	};
}
