/**
 * A log without an end: a chain whose links are sealed and followed by another when they are big or old enough, so that retention can remove
 * what is old while the newest is being written (ST25).
 */

import { type LogKind, newId, Refused } from "../protocol/protocol.ts";
import type { Clock } from "../std/clock.ts";
import type { Write } from "../std/write.ts";
import type { Bus, LogWriter } from "./port.ts";

export interface EndlessSpec {
	/** Read it as this chain. */
	chain: string;
	kind: LogKind;
	/** A link is sealed at this size or age, whichever comes first. */
	linkCharsMax: number;
	linkMsMax: number;
}

export interface EndlessLog {
	/** Resolves once the record, and what is written with it, is durable. In the order of calls. */
	append(record: string, writes?: readonly Write[]): Promise<void>;
	/** Everything that was appended is durable or refused; the last link stays open for the next start to seal. */
	settled(): Promise<void>;
}

/** One daemon writes it. What a dead one left of it, or the store gave up, is sealed before the next record. */
export function endlessLog(bus: Bus, clock: Clock, spec: EndlessSpec): EndlessLog {
	const { chain, kind, linkCharsMax, linkMsMax } = spec;
	let link: { writer: LogWriter; chars: number; since: number } | undefined;
	let isTaken = false;
	let last: Promise<unknown> = Promise.resolve();

	const takeOver = async () => {
		for (const { log } of await bus.list({ live: true, chain })) await (await bus.reopen(log)).seal([]);
		isTaken = true;
	};
	const isFull = () => link !== undefined && (link.chars >= linkCharsMax || clock.now() - link.since >= linkMsMax);
	const write = async (record: string, writes: readonly Write[]) => {
		if (!isTaken) await takeOver();
		if (link && isFull()) {
			await link.writer.seal([]);
			link = undefined;
		}
		if (link) await link.writer.appendWith([record], writes);
		else {
			const log = newId(kind, clock.now());
			const writer = await bus.create({ log, kind, chain }, [record], { with: writes });
			link = { writer, chars: 0, since: clock.now() };
		}
		link.chars += record.length;
	};
	return {
		append(record, writes = []) {
			const written = last.then(() => write(record, writes));
			last = written.catch((cause: unknown) => {
				// What is written with a record may be refused for its own sake; after anything else the link is found anew.
				if (cause instanceof Refused && link) return;
				link = undefined;
				isTaken = false;
			});
			return written;
		},
		settled: async () => void (await last),
	};
}
