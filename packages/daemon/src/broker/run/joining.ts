/** Messages that join a live run: durable, with their place in its log, before the engine gets them (A26). */

import { encodeInjected } from "@nexus-stream/protocol";
import type { EngineMessage } from "@nexus-stream/protocol/engine";
import type { LogWriter } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import { contextMessage, userMessage } from "../context.ts";
import type { Framer } from "../frames/framer.ts";
import type { Recorder } from "../frames/recorder.ts";
import type { Transcript } from "../frames/transcript.ts";
import type { Joining, RunInbox } from "../port.ts";
import { storedQuestion } from "./run-parts.ts";

export interface JoinedRun {
	inbox: RunInbox | undefined;
	framer: Framer;
	transcript: Transcript;
	recorder: Recorder;
	now(): number;
	/** The run takes no more messages. */
	isOver(): boolean;
}

type CheckpointFor = (arrived: readonly EngineMessage[]) => unknown;

export class RunJoining {
	readonly #run: JoinedRun;
	#committing: Promise<unknown> | undefined;

	constructor(run: JoinedRun) {
		this.#run = run;
	}

	/** Returns the messages for the engine. Rejects when the store refuses them: then they keep waiting. */
	async take(writer: LogWriter, checkpointFor?: CheckpointFor): Promise<EngineMessage[]> {
		const { inbox, isOver } = this.#run;
		const taken: EngineMessage[] = [];
		await inbox?.take(async (events, writes) => {
			if (isOver()) return false;
			for (const { context = [], ...event } of events) taken.push(...context.map(contextMessage), userMessage(event));
			this.#committing = this.#join(writer, events, [...writes, ...this.#marked(taken, checkpointFor)]);
			await this.#committing;
			return true;
		});
		return taken;
	}

	/** Resolves when no join is under way. */
	async settled(): Promise<void> {
		await this.#committing?.catch(() => {});
	}

	#marked(taken: readonly EngineMessage[], checkpointFor: CheckpointFor | undefined): Write[] {
		const { recorder, now } = this.#run;
		const data = checkpointFor?.(taken);
		return data === undefined ? [] : recorder.mark(data, now());
	}

	async #join(writer: LogWriter, events: readonly Joining[], writes: readonly Write[]): Promise<void> {
		const { framer, transcript, now } = this.#run;
		const ts = now();
		framer.pause(ts);
		let place = "";
		const records = framer.collect(() => {
			place = framer.note(encodeInjected(events.map(({ eventId }) => eventId)), ts);
		});
		const leave = transcript.join(events.map(storedQuestion), place);
		try {
			await writer.appendWith(records, writes);
		} catch (cause) {
			leave();
			throw cause;
		}
	}
}
