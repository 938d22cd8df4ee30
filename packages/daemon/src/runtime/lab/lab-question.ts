/** The lab's own question: put to every platform at once, decided by the first button that is pressed on any of them. */

import { NexusError, newId } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type Bench, LAB_ACCOUNT } from "./lab-bench.ts";

const CLOSED = "This question is not open any more.";
const VERDICTS: Readonly<Record<string, string>> = { approve: "Approved", deny: "Denied" };

/** The questions on one bench. */
export class LabQuestions {
	readonly bench: Bench;
	readonly #clock: Clock;
	readonly #log: Log;
	/** By question: what was decided, once it was. */
	readonly #decided = new Map<string, string | undefined>();
	/** Platforms whose presses are listened to. */
	readonly #heard = new Set<string>();
	/** Questions whose buttons were not pressed yet. */
	readonly #waiting = new Set<string>();
	/** Decisions that replace buttons at this moment. */
	#showing = 0;

	constructor(bench: Bench, clock: Clock, log: Log) {
		this.bench = bench;
		this.#clock = clock;
		this.#log = log;
	}

	/** Was anything asked on this bench? */
	get asked(): boolean {
		return this.#decided.size > 0;
	}

	/** Does anything wait for a press, or is what was decided not shown everywhere? */
	async open(): Promise<boolean> {
		if (this.#waiting.size > 0 || this.#showing > 0) return true;
		return (await this.bench.outbound.deliveries({ state: "active", limit: 1 })).length > 0;
	}

	/** Withdraws the open questions. */
	drop(): void {
		for (const id of this.#waiting) this.#decided.set(id, CLOSED);
		this.#waiting.clear();
	}

	async ask(text: string, channels: readonly string[]): Promise<string> {
		const { outbound, channels: benched } = this.bench;
		const id = newId("q", this.#clock.now()).slice(-20);
		const code = id.slice(-4);
		this.#decided.set(id, undefined);
		const choices = [
			{ id: "approve", label: "Approve", reply: `approve ${code}` },
			{ id: "deny", label: "Deny", reply: `deny ${code}`, danger: true },
		];
		await Promise.all(
			channels.map(async (channel) => {
				if ((await outbound.info(channel)).supports.includes("ask")) {
					this.#listen(channel);
					this.#waiting.add(id);
				}
				const { target } = benched[channel]!;
				await outbound.ask({ account: { channel, id: LAB_ACCOUNT }, target, id, text, choices });
			}),
		);
		return id;
	}

	async press(channel: string, message: string, label: string): Promise<void> {
		const { pressed } = await this.bench.ask<{ pressed: boolean }>("POST", "/press", { channel, message, label });
		if (!pressed) throw new NexusError("not_found", `there is no button "${label}" on ${channel} any more`);
	}

	/** Once for each platform. */
	#listen(channel: string): void {
		if (this.#heard.has(channel)) return;
		this.#heard.add(channel);
		this.bench.outbound.monitor(channel, LAB_ACCOUNT, {
			onMessage: async () => {},
			onChoice: async ({ id, choice, from }) => this.#choose(channel, id, choice, from.name ?? from.id),
			isUrgent: () => false,
		});
	}

	/** The notice to the person who pressed; undefined: their press counts. */
	#choose(channel: string, id: string, choice: string, name: string): string | undefined {
		const verdict = VERDICTS[choice];
		const before = this.#decided.get(id);
		if (before !== undefined) return before;
		if (!this.#decided.has(id) || verdict === undefined) return CLOSED;
		const text = `${verdict} by ${name} on ${channel}.`;
		this.#decided.set(id, text);
		this.#waiting.delete(id);
		this.#showing++;
		this.bench.outbound
			.settleQuestion(id, text)
			.catch((cause: unknown) => {
				this.#log.warn({ id, err: cause }, "what was decided in the lab was not shown everywhere");
			})
			.finally(() => this.#showing--);
		return undefined;
	}
}
