/** The writers of live logs: they append to memory, and the group commit makes it durable. */

import { NexusError } from "@nexus-stream/protocol";
import type { Write } from "../../std/write.ts";
import type { Committer } from "../commit/committer.ts";
import { unwritten } from "../commit/outcome.ts";
import { type BusLimits, type Tell, withTellWrites } from "../options.ts";
import type { LogWriter } from "../port.ts";
import type { LiveLog, Seal, Waiter } from "./live-log.ts";

export interface WriterParts {
	readonly committer: Committer;
	readonly limits: BusLimits;
	readonly tell: Tell | undefined;
	closed(): boolean;
}

export class Writers {
	readonly #parts: WriterParts;

	constructor(parts: WriterParts) {
		this.#parts = parts;
	}

	of(log: LiveLog): LogWriter {
		const { committer, limits } = this.#parts;
		const { commitRecordsMax, commitCharsMax, waitingCharsMax } = limits;
		return {
			log: log.spec.log,
			get offset() {
				return log.assigned;
			},
			append: (record) => this.append(log, record),
			get crowded() {
				return (
					log.waitingCount >= commitRecordsMax ||
					log.waitingChars >= commitCharsMax ||
					committer.waitingChars >= waitingCharsMax
				);
			},
			room: () => (log.broken ? Promise.reject(this.#refusal(log)) : log.room()),
			flushed: () => (log.broken ? Promise.reject(this.#refusal(log)) : log.flushed()),
			appendWith: (records, writes) => this.#appendWith(log, records, writes),
			seal: (records, writes = [], patienceMs = Infinity) => this.#seal(log, { records, writes, patienceMs }),
		};
	}

	append(log: LiveLog, record: string): void {
		if (!log.open || this.#parts.closed()) throw this.#refusal(log);
		log.append(record);
		this.#parts.committer.waitingChars += record.length + 1;
		this.#parts.committer.touch(log);
	}

	async #appendWith(log: LiveLog, records: readonly string[], writes: readonly Write[]): Promise<number> {
		// One at a time: what was appended behind the one before comes first.
		while (log.joint) await log.joint.settled;
		if (!log.open || this.#parts.closed()) throw this.#refusal(log);
		const { promise, resolve, reject } = Promise.withResolvers<void>();
		const last = log.assigned + records.length;
		const settled = promise.catch(() => {});
		const told = withTellWrites(this.#parts.tell, { writes, log: log.spec });
		log.joint = { records, writes: told, last, resolve, reject, settled };
		this.#parts.committer.touch(log);
		await promise;
		return last;
	}

	#seal(log: LiveLog, last: Omit<Seal, keyof Waiter>): Promise<void> {
		if (!log.open || this.#parts.closed()) return Promise.reject(this.#refusal(log));
		return new Promise((resolve, reject) => {
			log.seal = {
				...last,
				writes: withTellWrites(this.#parts.tell, { writes: last.writes, log: log.spec }),
				resolve,
				reject,
			};
			this.#parts.committer.touch(log);
		});
	}

	#refusal(log: LiveLog): NexusError {
		const name = log.spec.log;
		if (log.broken) return unwritten(name, log.broken);
		return this.#parts.closed()
			? new NexusError("unavailable", "the daemon is stopping")
			: new NexusError("conflict", `log ${name} is sealed`);
	}
}
