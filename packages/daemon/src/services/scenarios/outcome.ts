/** The outcome of a run, computed from its log alone: every reader gets the same at any time. */

import {
	type ChunkFrame,
	decodeFrame,
	type EndFrame,
	reasonOf,
	reasonOfEnd,
	toNexusError,
} from "@nexus-stream/protocol";
import { type Batch, type Cursor, follow } from "../../bus/bus.ts";
import type { ScenarioOutcome } from "./port.ts";

/** Waits for the end of the log. A log that cannot be read is a failure. */
export async function outcomeOf(open: () => Promise<Cursor>, grew = () => {}): Promise<ScenarioOutcome> {
	const answer = new OutcomeCollector();
	try {
		for await (const batch of follow(await open())) {
			answer.take(batch);
			grew();
		}
		return answer.outcome();
	} catch (cause) {
		const { code, message, reason = reasonOf(code) } = toNexusError(cause);
		return { ...answer.outcome(), status: "failed", error: { code, message, reason } };
	}
}

/** The text that is in the log now; undefined when it is longer than that. */
export async function textSoFar(cursor: Cursor, charsMax: number): Promise<string | undefined> {
	const answer = new OutcomeCollector();
	try {
		for (let batch = await cursor.next(); batch; batch = await cursor.next()) {
			answer.take(batch);
			if (answer.textChars > charsMax) return undefined;
		}
		return answer.outcome().text;
	} finally {
		cursor.close();
	}
}

/** The Bus was closed before: recovery writes the end. */
const UNENDED: Pick<EndFrame, "reason" | "error" | "usage"> = {
	reason: "error",
	error: { code: "unavailable", message: "The daemon stopped before the run had ended.", reason: "STOPPING" },
};

function errorOf(end: Pick<EndFrame, "reason" | "error">): NonNullable<ScenarioOutcome["error"]> {
	const { code = "aborted", message = "The run was stopped." } = end.error ?? {};
	return { code, message, reason: reasonOfEnd(end) };
}

class OutcomeCollector {
	/** Characters of the text so far. */
	textChars = 0;
	readonly #text: string[] = [];
	readonly #audio: Buffer[] = [];
	readonly #vectors: number[][] = [];
	#mimeType = "";
	/** The beginning of a value that the next chunk continues. */
	#partial = "";
	/** By the id of a stream. */
	readonly #modalities = new Map<string, string>();
	#end: EndFrame | undefined;

	take({ records }: Batch): void {
		for (const record of records) {
			const frame = decodeFrame(record);
			if (frame.type === "stream.chunk") this.#takeChunk(frame);
			else if (frame.type === "stream.end") this.#end = frame.final ? frame : this.#end;
			else {
				this.#modalities.set(frame.message_id, frame.modality);
				if (frame.modality === "audio") this.#mimeType = frame.content_type;
			}
		}
	}

	outcome(): ScenarioOutcome {
		const { reason, error, usage = { input: -1, output: -1 } } = this.#end ?? UNENDED;
		return {
			status: reason === "completed" || reason === "aborted" ? reason : "failed",
			text: this.#text.join(""),
			audio: this.#audio.length > 0 ? { mimeType: this.#mimeType, data: Buffer.concat(this.#audio) } : undefined,
			vectors: this.#vectors.length > 0 ? this.#vectors : undefined,
			usage: { input: usage.input, output: usage.output },
			error: reason !== "completed" ? errorOf({ reason, error }) : undefined,
		};
	}

	#takeChunk({ message_id: id, payload, is_partial: isPartial }: ChunkFrame): void {
		switch (this.#modalities.get(id)) {
			case "audio":
				this.#audio.push(Buffer.from(payload, "base64"));
				return;
			case "data": {
				const whole = this.#partial + payload;
				this.#partial = isPartial ? whole : "";
				if (!isPartial) this.#vectors.push(JSON.parse(whole) as number[]);
				return;
			}
			default:
				this.#text.push(payload);
				this.textChars += payload.length;
		}
	}
}
