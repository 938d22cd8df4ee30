/** Shared by the cases: starting the adapter, and the daemon's part of a delivery in the dialect that the adapter declared. */

import type { AdapterField, AdapterInfo, Resume, Target } from "../port.ts";
import { checkLine, KEEP_SHAPES, MONITOR_SHAPES, SEND_SHAPES, type Shapes, STREAM_SHAPES } from "../shapes.ts";
import { type AdapterLine, AdapterProcess } from "./process.ts";

export interface ConformanceOptions {
	account?: string;
	env?: Record<string, string>;
	/** The folder it is started in. */
	cwd?: string;
	/** Where test messages go. */
	target?: Target;
	/** How long to wait for what the adapter must say. */
	limitMs?: number;
	/** How long to wait for what should take only a moment, such as stopping; by default a third of `limitMs`, and at least ten seconds. */
	momentMs?: number;
	/** Only cases whose name contains this. */
	only?: string;
	/** Presses a button of a message as a person does. Absent: buttons cannot be pressed. */
	press?(messageId: string, label: string): Promise<unknown>;
}

const MOMENT_MS = 10_000;
const SHAPES: Readonly<Record<string, Shapes>> = {
	stream: new Map([...STREAM_SHAPES, ...KEEP_SHAPES]),
	send: new Map([...SEND_SHAPES, ...KEEP_SHAPES]),
	monitor: new Map([...MONITOR_SHAPES, ...KEEP_SHAPES]),
};

export class Rig {
	readonly info: AdapterInfo;
	readonly target: Target;
	readonly limitMs: number;
	readonly momentMs: number;
	readonly #command: readonly string[];
	readonly #options: ConformanceOptions;
	readonly #started: { verb: string; process: AdapterProcess }[] = [];
	#counter = 0;

	constructor(command: readonly string[], info: AdapterInfo, options: ConformanceOptions) {
		this.#command = command;
		this.info = info;
		this.#options = options;
		this.target = options.target ?? { to: "conformance" };
		this.limitMs = options.limitMs ?? 30_000;
		this.momentMs = options.momentMs ?? Math.min(this.limitMs, Math.max(MOMENT_MS, this.limitMs / 3));
	}

	start(verb: string, env: Record<string, string> = {}): AdapterProcess {
		const account = ["--account", this.#options.account ?? "conformance"];
		// As the daemon starts them.
		const format = verb === "send" || verb === "health" ? [] : ["--format", "jsonl"];
		const options = { ...this.#options, env: { ...this.#options.env, ...env } };
		const process = new AdapterProcess(this.#command, [verb, ...account, ...format], options);
		this.#started.push({ verb, process });
		return process;
	}

	/** Lets every process come to its end, so that nothing it says is missed. One that does not stop is another case's matter. */
	async hearOut(): Promise<void> {
		for (const { process } of this.#started) process.closeInput();
		await Promise.all(this.#started.map(({ process }) => process.exited(this.momentMs)));
	}

	async stopAll(): Promise<void> {
		await Promise.all(this.#started.splice(0).map(({ process }) => process.kill()));
	}

	/** Every line that was said is one that the daemon takes, and no delivery ends twice. */
	checkLines(): void {
		for (const { verb, process } of this.#started) {
			const ends = process.lines.filter((line) => verb === "stream" && isEnd(line)).length;
			expect(ends <= process.begun, `${ends} ends for ${process.begun} deliveries: one has ended twice`);
			const shapes = SHAPES[verb];
			for (const line of shapes ? process.lines : []) {
				const checked = checkLine(line, shapes!);
				expect(!("fault" in checked), `the daemon skips a line: ${"fault" in checked ? checked.fault : ""}`);
			}
		}
	}

	get canPress(): boolean {
		return this.#options.press !== undefined;
	}

	/** Some platforms release a button only when the press is answered, which is the case's next step, so the press is not awaited. */
	press(messageId: string, label: string): void {
		this.#options.press?.(messageId, label).catch(() => {}); // The case misses the choice then.
	}

	speaks(field: AdapterField): boolean {
		return this.info.fields?.includes(field) === true;
	}

	drive(process = this.start("stream"), id = this.fresh()): DeliveryDriver {
		return new DeliveryDriver(this, process, id);
	}

	/** The message of a `send`, `ask` or `find` line. */
	line(text: string, from = 0, nonce = this.nonce()) {
		return { delivery: `dlv_${nonce}`, nonce, target: this.target, text, from, to: from + text.length };
	}

	nonce(): string {
		return this.fresh().slice(0, 20);
	}

	/** Names that no earlier run of the suite has used on the same platform. */
	fresh(): string {
		this.#counter++;
		return `c${Date.now().toString(36)}${process.pid.toString(36)}n${this.#counter}`;
	}
}

/** One delivery as the daemon sees it. Acknowledges intents unless the case forbids it. */
export class DeliveryDriver {
	readonly id: string;
	readonly name: string;
	readonly runId: string;
	readonly process: AdapterProcess;
	acknowledge = true;
	readonly #rig: Rig;
	#offset = 1;

	constructor(rig: Rig, process: AdapterProcess, id: string) {
		this.#rig = rig;
		this.process = process;
		this.id = id;
		this.name = `dlv_${id}`;
		this.runId = `run_${id}`;
		const before = process.onLine;
		process.onLine = (line) => {
			before(line);
			if (line.type === "message_creating" && this.acknowledge && this.isMine(line)) this.ack(String(line.nonce));
		};
	}

	/** An adapter that names no runs gets the basic fields and nothing else. */
	#names(): object {
		if (!this.#rig.speaks("runId")) return {};
		return { delivery: this.name, runId: this.runId, offset: this.#rig.speaks("offset") ? this.#offset++ : undefined };
	}

	isMine(line: AdapterLine): boolean {
		return !this.#rig.speaks("runId") || line.delivery === this.name;
	}

	start(extra: StartExtra = {}): void {
		const { target } = this.#rig;
		const added = this.#rig.speaks("runId") ? extra : {};
		this.#say("stream_start", { sessionLabel: "conformance", target, runId: this.runId, ...added });
	}

	#say(type: string, fields: object): void {
		this.process.say({ type, ...fields, ...this.#names() });
	}

	token(text: string): void {
		this.#say("token", { text });
	}

	/** A whole answer of one message. */
	answer(texts: readonly string[], extra?: StartExtra): void {
		this.start(extra);
		for (const text of texts) this.token(text);
		this.end();
	}

	/** Read by every adapter, shown by none. */
	reasoning(text: string): void {
		this.#say("reasoning", { text });
	}

	end(final = true): void {
		this.#say("stream_end", { runId: this.runId, final });
	}

	error(): void {
		this.#say("stream_error", { error: "the model failed", partial: true });
	}

	ack(nonce: string): void {
		this.#say("ack", { nonce });
	}

	hear(type: string, limitMs = this.#rig.limitMs): Promise<AdapterLine> {
		return this.process.hear(`${type} of ${this.name}`, (line) => line.type === type && this.isMine(line), limitMs);
	}

	/** Whichever of these comes first, or the end of this delivery, good or bad. */
	hearFirst(types: readonly string[] = []): Promise<AdapterLine> {
		const fits = (line: AdapterLine) => (types.includes(line.type) || isEnd(line)) && this.isMine(line);
		return this.process.hear(`${[...types, "the end"].join(" or ")} of ${this.name}`, fits, this.#rig.limitMs);
	}

	all(type: string): AdapterLine[] {
		return this.process.lines.filter((line) => line.type === type && this.isMine(line));
	}

	/** Waits for the end and checks it: at least one message, none twice, and every position covered once, in order. */
	async finish(length: number, from = 0): Promise<AdapterLine[]> {
		const end = await this.hearFirst();
		expectType(end, "delivery_complete");
		const sent = this.all("message_sent");
		expect(sent.length > 0, "a delivery with text ends without message_sent");
		const ids = new Set(sent.map((line) => line.messageId));
		expect(ids.size === sent.length, "two message_sent lines have the same messageId");
		expect(Array.isArray(end.messageIds), "delivery_complete lacks messageIds");
		if (this.#rig.speaks("offset")) expectCovered(sent, from, length);
		return sent;
	}
}

interface StartExtra {
	resume?: Resume;
	options?: object;
}

function expectCovered(sent: readonly AdapterLine[], from: number, length: number): void {
	let at = from;
	for (const line of sent) {
		expect(line.from === at, `message_sent begins at ${String(line.from)}, the one before ended at ${at}`);
		expect(typeof line.to === "number" && line.to >= at, `message_sent ends at ${String(line.to)}, before ${at}`);
		at = line.to as number;
	}
	expect(at === length, `the messages end at ${at}, the source at ${length}`);
}

export const isEnd = (line: AdapterLine): boolean =>
	line.type === "delivery_complete" || line.type === "delivery_error";

export function expect(holds: boolean, otherwise: string): asserts holds {
	if (!holds) throw new Error(otherwise);
}

export const expectType = (line: AdapterLine, type: string): void =>
	expect(line.type === type, `${line.type}: ${String(line.error)}`);

/** A case cannot be tried with this adapter; the reason is shown. */
export class SkippedCase extends Error {}

export interface Case {
	name: string;
	/** Verbs and fields that the adapter needs for it. */
	needs: readonly (AdapterInfo["supports"][number] | AdapterField)[];
	run(rig: Rig): Promise<void>;
}

export const WORDS = "The quick brown fox jumps over the lazy dog. ";

export const repeated = (text: string, length: number): string =>
	text.repeat(Math.ceil(length / text.length)).slice(0, length);
