/** Messages that join a run while it is under way: on record, with their place in its log, before the engine gets them (A26). */

import type { LogWriter } from "../bus/bus.ts";
import type { EngineMessage } from "../engine/engine.ts";
import { encodeInjected } from "../protocol/protocol.ts";
import { asked, told } from "./context.ts";
import type { Framer } from "./framer.ts";
import type { RunInbox } from "./port.ts";
import { storedQuestion, type Transcript } from "./transcript.ts";

export interface JoiningRun {
	framer: Framer;
	transcript: Transcript;
	writer: LogWriter;
	now(): number;
	/** It takes nothing any more. */
	isOver(): boolean;
}

/** What the engine is handed. Rejects when the store did not take it: the messages wait on then. */
export async function takeJoining(inbox: RunInbox | undefined, run: JoiningRun): Promise<EngineMessage[]> {
	const { framer, transcript, writer, now, isOver } = run;
	const taken: EngineMessage[] = [];
	await inbox?.take(async (events, writes) => {
		if (isOver()) return false;
		const ts = now();
		framer.pause(ts, (record) => writer.append(record));
		const records: string[] = [];
		const place = framer.note(encodeInjected(events.map(({ eventId }) => eventId)), ts, (record) =>
			records.push(record),
		);
		transcript.join(events.map(storedQuestion), place);
		await writer.appendWith(records, writes);
		for (const { context = [], ...event } of events) taken.push(...context.map(told), asked(event));
		return true;
	});
	return taken;
}
