/** Limits the wait for an answer of a process: a silent process times out sooner than one that reports progress on other deliveries. */

import type { Clock } from "@nexus-stream/protocol/clock";

export interface AnswerRules {
	clock: Clock;
	/** Longest silence of the process. */
	answerMs: number;
	/** Longest wait for this answer, even while the process reports on others. */
	giveUpMs: number;
	/** The platform's rate limit pauses the account: this time does not count. */
	paused(): boolean;
	/** When the process last wrote a line. */
	receivedAt(): number;
	late(waitedMs: number): void;
}

export type AnswerWatch = ReturnType<typeof watchAnswer>;

export function watchAnswer({ clock, answerMs, giveUpMs, paused, receivedAt, late }: AnswerRules) {
	let since = clock.now();
	let cancel = () => {};
	const dueAt = () => Math.min(Math.max(since, receivedAt()) + answerMs, since + Math.max(answerMs, giveUpMs));
	const schedule = () => {
		cancel = clock.after(Math.max(0, dueAt() - clock.now()), check);
	};
	const check = () => {
		if (paused()) since = clock.now();
		if (dueAt() > clock.now()) schedule();
		else late(clock.now() - Math.max(since, receivedAt()) >= answerMs ? answerMs : giveUpMs);
	};
	schedule();
	return {
		/** The process reported progress on this answer. */
		touch(): void {
			since = clock.now();
			cancel();
			schedule();
		},
		end: () => cancel(),
	};
}
