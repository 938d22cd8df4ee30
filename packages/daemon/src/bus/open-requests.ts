/** A store with its open requests: closing awaits their answers, and after that the store is not asked any more (ST16). */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Reading } from "../std/write.ts";
import type { Storage } from "./storage.ts";

export interface TrackedStorage {
	/** The same store. A commit is not counted: the committer awaits its own. */
	storage: Storage;
	/** Throws once the store is not asked any more. */
	refuseWhenOver(): void;
	/** Resolves once all is answered, or the time is over. */
	end(deadlineMs: number): Promise<void>;
}

export function trackRequests(inner: Storage, clock: Clock): TrackedStorage {
	const open = new Set<Promise<unknown>>();
	let isOver = false;
	const refuseWhenOver = () => {
		if (isOver) throw new NexusError("unavailable", "the daemon has stopped");
	};
	/** A request that is answered at once costs no promise. */
	const ask = <T>(question: () => Reading<T>): Reading<T> => {
		refuseWhenOver();
		const answer = question();
		if (!(answer instanceof Promise)) return answer;
		const answered = () => void open.delete(answer);
		open.add(answer);
		answer.then(answered, answered);
		return answer;
	};
	return {
		refuseWhenOver,
		storage: {
			join: (...args) => ask(() => inner.join(...args)),
			renew: (...args) => ask(() => inner.renew(...args)),
			expire: (...args) => ask(() => inner.expire(...args)),
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
			notify: (...args) => ask(() => inner.notify(...args)),
			follow(...args) {
				const { look, stop } = inner.follow(...args);
				return { look: () => ask(look), stop };
			},
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
