/** Frees journal space that cut logs no longer need, now and then. */

import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Storage } from "../storage.ts";

export interface TidierParts {
	storage: Storage;
	node(): number;
	tidyMs: number;
	clock: Clock;
	log: Log;
	/** These logs hold space back with small tails. */
	onLagging(ids: ReadonlySet<number>): void;
}

export class Tidier {
	readonly #parts: TidierParts;
	#cancel: (() => void) | undefined;
	#stopped = false;

	constructor(parts: TidierParts) {
		this.#parts = parts;
	}

	/** There may be something to free. */
	schedule(): void {
		if (this.#cancel || this.#stopped) return;
		this.#cancel = this.#parts.clock.after(this.#parts.tidyMs, () => {
			this.#cancel = undefined;
			this.#tidy();
		});
	}

	#tidy(): void {
		const { storage, node, log } = this.#parts;
		const failed = (cause: unknown) =>
			log.warn({ err: cause }, "old journal space could not be freed; trying again later");
		try {
			const answer = storage.tidy(node());
			if (answer instanceof Promise) void answer.then((tidied) => this.#tidied(tidied), failed);
			else this.#tidied(answer);
		} catch (cause) {
			failed(cause);
		}
	}

	#tidied({ more, lagging }: { more: boolean; lagging: ReadonlySet<number> }): void {
		if (more) this.schedule();
		if (lagging.size > 0 && !this.#stopped) this.#parts.onLagging(lagging);
	}

	stop(): void {
		this.#stopped = true;
		this.#cancel?.();
	}
}
