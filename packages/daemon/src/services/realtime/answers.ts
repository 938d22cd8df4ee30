/** The answers of a session as they come: the frames of its runs become text, speech and one outcome each. */

import { decodeFrame, type EndFrame, type Frame, reasonOf, reasonOfEnd, runIdOf } from "@nexus-stream/protocol";
import { type Cursor, follow } from "../../bus/bus.ts";
import type { RealtimeEvent } from "./port.ts";
import type { Voice } from "./voice.ts";

type NewRealtimeEvent = RealtimeEvent extends infer Event
	? Event extends { at: number }
		? Omit<Event, "at">
		: never
	: never;

export interface AnswersOptions {
	/** Reads the session's chain of runs from where the listener joined. */
	cursor: Cursor;
	/** Undefined: answers are text alone. */
	voice?(runId: string): Voice;
	/** Resolves when there is room for more. */
	tell(event: NewRealtimeEvent): Promise<void>;
}

interface RealtimeAnswer {
	runId: string;
	voice: Voice | undefined;
	/** A newer input takes its place. */
	interrupted: boolean;
}

export type Answers = ReturnType<typeof createAnswers>;

export function createAnswers({ cursor, voice, tell }: AnswersOptions) {
	/** Visible text streams that are open, by their ids. */
	const texts = new Set<string>();
	let current: RealtimeAnswer | undefined;

	async function take(frame: Frame): Promise<void> {
		const runId = runIdOf(frame.message_id);
		switch (frame.type) {
			case "stream.begin":
				current ??= { runId, voice: voice?.(runId), interrupted: false };
				if (frame.modality === "text" && frame.visible !== false) texts.add(frame.message_id);
				return;
			case "stream.chunk":
				if (!texts.has(frame.message_id) || frame.payload === "") return;
				await tell({ type: "text", runId, text: frame.payload });
				return current?.voice?.push(frame.payload);
			case "stream.end":
				texts.delete(frame.message_id);
				// A run that began before the listener joined is not reported.
				return frame.final && current ? settle(current, frame) : undefined;
			default:
				return frame satisfies never;
		}
	}

	/** The text is whole; the answer has ended when it was spoken, too. */
	async function settle(answer: RealtimeAnswer, end: EndFrame): Promise<void> {
		const { silenced = false, fault } = (await answer.voice?.end()) ?? {};
		const { runId } = answer;
		const { error, reason } = end;
		const usage = end.usage && { input: end.usage.input, output: end.usage.output };
		current = undefined;
		if (reason === "aborted" ? answer.interrupted : reason === "completed" && silenced)
			return tell({ type: "interrupted", runId, usage });
		if (reason !== "completed") {
			const message = error?.message ?? `the answer ended: ${reason}`;
			return tell({ type: "failed", runId, usage, reason: reasonOfEnd(end), message });
		}
		if (!fault) return tell({ type: "completed", runId, usage });
		const message = `the text is whole, but not all of it was spoken: ${fault.message}`;
		return tell({ type: "failed", runId, usage, reason: fault.reason ?? reasonOf(fault.code), message });
	}

	return {
		/** Ends with the signal. Rejects when the session's log cannot be read. */
		async listen(signal: AbortSignal): Promise<void> {
			for await (const { records } of follow(cursor, signal))
				for (const record of records) if (!signal.aborted) await take(decodeFrame(record));
		},
		/** Newer input is on its way. The answer under way now is stopped for it, when it was taken. */
		interrupting() {
			const answer = current;
			if (answer) answer.interrupted = true;
			return {
				taken: () => answer?.voice?.silence(),
				refused() {
					if (answer) answer.interrupted = false;
				},
			};
		},
		/** Nothing more is spoken. */
		silence: () => current?.voice?.silence(),
		get busy(): boolean {
			return current !== undefined;
		},
	};
}
