/** One realtime session: input that waits for its commit, the log of inputs and answers, and the timer that closes it. */

import { NexusError, type Reason } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { LogWriter } from "../../bus/bus.ts";
import { type Answers, type AnswersOptions, createAnswers } from "./answers.ts";
import type { RealtimeEvent, RealtimeInput, RealtimeLimits, RealtimeTaken } from "./port.ts";

export interface SessionDeps {
	id: string;
	appId: string;
	writer: LogWriter;
	answers: Omit<AnswersOptions, "tell">;
	/** Undefined: only text is understood. */
	transcribe: ((audio: Uint8Array, signal: AbortSignal) => Promise<string>) | undefined;
	/** Hands a message to the session, which stops answering the one before; resolves with its event's id. */
	submit(text: string, key: string | undefined): Promise<string>;
	/** Whether so many more bytes of audio may be held. */
	reserve(bytes: number): boolean;
	limits: RealtimeLimits;
	clock: Clock;
	log: Log;
	/** Called once, when it has closed by itself or was closed. */
	onClosed(): void;
}

export interface Closing {
	reason: Reason;
	message: string;
}

interface Buffered {
	text: string;
	audio: readonly Uint8Array[];
	audioBytes: number;
}

const NOTHING: Buffered = { text: "", audio: [], audioBytes: 0 };

type NewRealtimeEvent = Parameters<AnswersOptions["tell"]>[0];

export class RealtimeSession {
	readonly appId: string;
	readonly #deps: SessionDeps;
	readonly #answers: Answers;
	readonly #closed = new AbortController();
	readonly #taken = new Map<string, Promise<RealtimeTaken>>();
	#buffered = NOTHING;
	#waiting = 0;
	#last: Promise<unknown> = Promise.resolve();
	#logBytes = 0;
	#cancelIdle: () => void;

	constructor(deps: SessionDeps) {
		this.#deps = deps;
		this.appId = deps.appId;
		this.#answers = createAnswers({ ...deps.answers, tell: (event) => this.#tell(event) });
		this.#cancelIdle = this.#arm();
		void this.#listen();
	}

	get audioBytes(): number {
		return this.#buffered.audioBytes;
	}

	/** One after another: the order of calls is the order of what was said. */
	append(input: RealtimeInput): Promise<RealtimeTaken> {
		const { limits } = this.#deps;
		const known = input.inputId === "" ? undefined : this.#taken.get(input.inputId);
		if (known) return known;
		if (this.#waiting >= limits.appendsMax)
			throw new NexusError("busy", `${limits.appendsMax} inputs wait already; send this again later`);
		this.#waiting++;
		const taken = this.#last.then(() => this.#take(input)).finally(() => this.#waiting--);
		this.#last = taken.catch(() => {});
		if (input.inputId !== "") this.#remember(input.inputId, taken);
		return taken;
	}

	#remember(inputId: string, taken: Promise<RealtimeTaken>): void {
		this.#taken.set(inputId, taken);
		// Forget an input that failed, so that it can be sent again.
		taken.catch(() => this.#taken.delete(inputId));
		const [oldest] = this.#taken.keys();
		if (this.#taken.size > this.#deps.limits.inputIdsMax && oldest !== undefined) this.#taken.delete(oldest);
	}

	/** An input that fails leaves nothing behind: the same call can be made again. */
	async #take(input: RealtimeInput): Promise<RealtimeTaken> {
		this.#refuseWhenClosed();
		this.#cancelIdle();
		const before = this.#buffered;
		try {
			this.#buffered = this.#joined(before, input);
			if (!input.commit) return { audioBytes: this.audioBytes };
			const text = await this.#words();
			const eventId = await this.#submit(text, input.inputId);
			this.#buffered = NOTHING;
			return { audioBytes: 0, eventId };
		} catch (cause) {
			this.#buffered = before;
			throw cause;
		} finally {
			this.#cancelIdle = this.#arm();
		}
	}

	#joined(before: Buffered, { text, audio }: RealtimeInput): Buffered {
		const { limits, transcribe, reserve } = this.#deps;
		if (audio.length > 0 && !transcribe)
			throw new NexusError(
				"precondition",
				"this session cannot transcribe audio: open it with transcription_connector_id, or append text",
				{ reason: "AI_CONNECTOR_ID_REQUIRED" },
			);
		const audioBytes = before.audioBytes + audio.length;
		if (audioBytes > limits.audioBytesMax)
			throw new NexusError(
				"too_large",
				`one input has at most ${limits.audioBytesMax} bytes of audio; commit it earlier`,
			);
		if (audio.length > 0 && !reserve(audio.length))
			throw new NexusError("busy", "too much audio waits for its commit; send this again later");
		const all = before.text + text;
		if (all.length > limits.textCharsMax)
			throw new NexusError("too_large", `one input has at most ${limits.textCharsMax} characters`);
		return { text: all, audio: audio.length > 0 ? [...before.audio, audio] : before.audio, audioBytes };
	}

	/** The appended text, with the transcript of the appended audio. */
	async #words(): Promise<string> {
		const { text, audio, audioBytes } = this.#buffered;
		if (text.trim() === "" && audioBytes === 0)
			throw new NexusError("invalid", "there is nothing to answer: append text or audio before the commit");
		if (audioBytes === 0) return text;
		const heard = (await this.#deps.transcribe!(Buffer.concat(audio), this.#closed.signal)).trim();
		this.#refuseWhenClosed();
		await this.#tell({ type: "transcribed", text: heard });
		const words = [text, heard].filter((part) => part.trim() !== "").join("\n");
		if (words === "") throw new NexusError("invalid", "no words were understood in this audio");
		return words;
	}

	async #submit(text: string, inputId: string): Promise<string> {
		const interruption = this.#answers.interrupting();
		try {
			const eventId = await this.#deps.submit(text, inputId === "" ? undefined : `${this.#deps.id}:${inputId}`);
			interruption.taken();
			return eventId;
		} catch (cause) {
			interruption.refused();
			throw cause;
		}
	}

	heard(runId: string, audio: Uint8Array, mimeType: string): Promise<void> {
		return this.#tell({ type: "audio", runId, audio: Buffer.from(audio).toString("base64"), mimeType });
	}

	async #listen(): Promise<void> {
		const { log, id } = this.#deps;
		try {
			await this.#answers.listen(this.#closed.signal);
		} catch (cause) {
			log.error({ err: cause, realtime: id }, "a realtime session cannot go on");
			await this.close({ reason: "INTERNAL", message: "the session's answers cannot be read: open another one" });
		}
	}

	async #tell(event: NewRealtimeEvent): Promise<void> {
		if (this.#closed.signal.aborted) return;
		const { writer, limits, clock } = this.#deps;
		const record = JSON.stringify({ ...event, at: clock.now() } satisfies RealtimeEvent);
		this.#logBytes += record.length;
		writer.append(record);
		if (this.#logBytes > limits.logBytesMax)
			void this.close({ reason: "QUOTA_EXCEEDED", message: "the session's log is full: open another one" });
		else if (writer.crowded) await writer.room();
	}

	#arm(): () => void {
		const { clock, limits } = this.#deps;
		const minutes = Math.round(limits.idleMs / 60_000);
		return clock.after(limits.idleMs, () => {
			if (this.#closed.signal.aborted) return;
			if (this.#answers.busy || this.#waiting > 0) this.#cancelIdle = this.#arm();
			else void this.close({ reason: "TIMEOUT", message: `nothing was said for ${minutes} minutes` });
		});
	}

	#refuseWhenClosed(): void {
		if (this.#closed.signal.aborted)
			throw new NexusError("precondition", "this realtime session is closed: open another one");
	}

	/** Ends the log, with a reason where no client asked for the end. A run under way continues in its session. */
	async close(why?: Closing): Promise<void> {
		if (this.#closed.signal.aborted) return;
		this.#closed.abort(new NexusError("aborted", "the realtime session was closed"));
		this.#cancelIdle();
		this.#answers.silence();
		this.#buffered = NOTHING;
		const { writer, clock, log, id, onClosed } = this.#deps;
		onClosed();
		try {
			await writer.seal(why ? [JSON.stringify({ type: "failed", ...why, at: clock.now() })] : []);
		} catch (cause) {
			log.error({ err: cause, realtime: id }, "a realtime session's log could not be ended; the next start ends it");
		}
	}
}
