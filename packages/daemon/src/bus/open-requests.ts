/** A store with its open requests: closing awaits their answers, and after that the store is not asked any more (ST16). */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Reading } from "../std/write.ts";
import type { Storage } from "./storage.ts";

export interface TrackedStorage {
	/** The same store. A commit is not counted: the committer awaits its own. */
	storage: Storage;
	/** Resolves once all is answered, or the time is over. */
	end(deadlineMs: number): Promise<void>;
}

export function trackRequests(inner: Storage, clock: Clock): TrackedStorage {
	const open = new Set<Promise<unknown>>();
	let isOver = false;
	/** A request that is answered at once costs no promise. */
	const ask = <T>(question: () => Reading<T>): Reading<T> => {
		if (isOver) throw new NexusError("unavailable", "the daemon has stopped");
		const answer = question();
		if (!(answer instanceof Promise)) return answer;
		const answered = () => void open.delete(answer);
		open.add(answer);
		answer.then(answered, answered);
		return answer;
	};
	return {
		storage: {
			join: (...args) => ask(() => inner.join(...args)),
			renew: (...args) => ask(() => inner.renew(...args)),
			bury: (...args) => ask(() => inner.bury(...args)),
			leave: (...args) => ask(() => inner.leave(...args)),
			reserve: (...args) => ask(() => inner.reserve(...args)),
			commit: inner.commit.bind(inner),
			find: (...args) => ask(() => inner.find(...args)),
			read: (...args) => ask(() => inner.read(...args)),
			link: (...args) => ask(() => inner.link(...args)),
			chain: (...args) => ask(() => inner.chain(...args)),
			chainWith: (...args) => ask(() => inner.chainWith(...args)),
			list: (...args) => ask(() => inner.list(...args)),
			adopt: (...args) => ask(() => inner.adopt(...args)),
			oldestSealed: (...args) => ask(() => inner.oldestSealed(...args)),
			totalBytes: (...args) => ask(() => inner.totalBytes(...args)),
			removeSome: (...args) => ask(() => inner.removeSome(...args)),
			tidy: (...args) => ask(() => inner.tidy(...args)),
			call: (...args) => ask(() => inner.call(...args)),
			watch: (hint) => inner.watch(hint),
		},
		async end(deadlineMs) {
			const over = Promise.withResolvers<void>();
			const cancel = clock.after(deadlineMs, () => {
				isOver = true;
				over.resolve();
			});
			while (open.size > 0 && !isOver) {
				await Promise.race([Promise.allSettled(open), over.promise]);
				// The caller that got an answer may ask the next question.
				await new Promise<void>((resolve) => setImmediate(resolve));
			}
			cancel();
			isOver = true;
		},
	};
}
