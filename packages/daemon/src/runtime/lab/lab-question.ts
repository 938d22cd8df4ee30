/** The lab's own question: put to every platform at once, decided by the first button that is pressed on any of them. */

import { NexusError, newId } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import { type Bench, LAB_ACCOUNT } from "./lab-bench.ts";

export interface LabQuestions {
	/** Was anything asked on this bench? */
	readonly asked: boolean;
	/** Does anything wait for a press, or is what was decided not shown everywhere? */
	open(): Promise<boolean>;
	/** Withdraws the open questions. */
	drop(): void;
	ask(text: string, channels: readonly string[]): Promise<string>;
	press(channel: string, message: string, label: string): Promise<void>;
}

const CLOSED = "This question is not open any more.";
const VERDICTS: Readonly<Record<string, string>> = { approve: "Approved", deny: "Denied" };

export function createQuestions(bench: Bench, clock: Clock, log: Log): LabQuestions {
	/** By question: what was decided, once it was. */
	const decided = new Map<string, string | undefined>();
	const heard = new Set<string>();
	/** Questions whose buttons were not pressed yet. */
	const waiting = new Set<string>();
	/** Decisions that replace buttons at this moment. */
	let showing = 0;

	async function choose(channel: string, id: string, choice: string, name: string): Promise<string | undefined> {
		const verdict = VERDICTS[choice];
		const before = decided.get(id);
		if (before !== undefined) return before;
		if (!decided.has(id) || verdict === undefined) return CLOSED;
		const text = `${verdict} by ${name} on ${channel}.`;
		decided.set(id, text);
		waiting.delete(id);
		showing++;
		bench.outbound
			.settleQuestion(id, text)
			.catch((cause: unknown) => {
				log.warn({ id, err: cause }, "what was decided in the lab was not shown everywhere");
			})
			.finally(() => showing--);
		return undefined;
	}

	/** Once for each platform. */
	function listen(channel: string): void {
		if (heard.has(channel)) return;
		heard.add(channel);
		bench.outbound.monitor(channel, LAB_ACCOUNT, {
			onMessage: async () => {},
			onChoice: ({ id, choice, from }) => choose(channel, id, choice, from.name ?? from.id),
			isUrgent: () => false,
		});
	}

	return {
		get asked() {
			return decided.size > 0;
		},
		async open() {
			if (waiting.size > 0 || showing > 0) return true;
			return (await bench.outbound.deliveries({ state: "active", limit: 1 })).length > 0;
		},
		drop() {
			for (const id of waiting) decided.set(id, CLOSED);
			waiting.clear();
		},
		async ask(text, channels) {
			const id = newId("q", clock.now()).slice(-20);
			const code = id.slice(-4);
			decided.set(id, undefined);
			const choices = [
				{ id: "approve", label: "Approve", reply: `approve ${code}` },
				{ id: "deny", label: "Deny", reply: `deny ${code}`, danger: true },
			];
			await Promise.all(
				channels.map(async (channel) => {
					if ((await bench.outbound.info(channel)).supports.includes("ask")) {
						listen(channel);
						waiting.add(id);
					}
					const { target } = bench.channels[channel]!;
					await bench.outbound.ask({ account: { channel, id: LAB_ACCOUNT }, target, id, text, choices });
				}),
			);
			return id;
		},
		async press(channel, message, label) {
			const { pressed } = await bench.ask<{ pressed: boolean }>("POST", "/press", { channel, message, label });
			if (!pressed) throw new NexusError("not_found", `there is no button "${label}" on ${channel} any more`);
		},
	};
}
