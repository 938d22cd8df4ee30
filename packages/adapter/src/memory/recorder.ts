/** Asks the daemon to store a line for the account; the line counts once the daemon has confirmed it (ST26). */

import { randomBytes } from "node:crypto";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { KeepLine, NotedLine } from "../port.ts";

type Unnamed<Line> = Line extends { id: string } ? Omit<Line, "id"> : never;

export interface LineRecorder {
	/** Resolves once it is on record. Rejects when no answer came in time, or none will come. */
	record(what: Unnamed<KeepLine>): Promise<void>;
	/** Without waiting for the confirmation. */
	tell(what: Unnamed<KeepLine>): void;
	/** Takes a confirmation; false: the line is something else. */
	accept(line: object): boolean;
	/** No more answers will come. */
	end(): void;
}

export interface LineRecorderOptions {
	say(line: KeepLine): void;
	clock: Clock;
	/** Longest wait for an answer. Less than a platform call may take, of which it is a part. */
	answerMs: number;
}

export function createRecorder({ say, clock, answerMs }: LineRecorderOptions): LineRecorder {
	const name = randomBytes(6).toString("base64url");
	const waiting = new Map<string, (failure?: Error) => void>();
	let said = 0;
	let ended = false;
	const tell = (what: Unnamed<KeepLine>): string => {
		const id = `${name}-${++said}`;
		say({ ...what, id } as KeepLine);
		return id;
	};
	return {
		tell: (what) => void tell(what),
		async record(what) {
			if (ended) {
				// The daemon still reads. A state is worth saying; a note would tell of a call that never leaves.
				if (what.type === "state") tell(what);
				throw new Error("The daemon answers no more.");
			}
			const id = tell(what);
			const { promise, resolve, reject } = Promise.withResolvers<void>();
			const late = () => settle(new Error(`The daemon did not put it on record within ${answerMs} ms.`));
			const cancel = clock.after(answerMs, late);
			const settle = (failure?: Error) => {
				cancel();
				waiting.delete(id);
				if (failure) reject(failure);
				else resolve();
			};
			waiting.set(id, settle);
			await promise;
		},
		accept(line) {
			const { type, id } = line as Partial<NotedLine>;
			if (type !== "noted") return false;
			waiting.get(id ?? "")?.();
			return true;
		},
		end() {
			ended = true;
			for (const settle of [...waiting.values()]) settle(new Error("The daemon answers no more."));
		},
	};
}
