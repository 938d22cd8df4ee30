/** Waits for what a process owes: one that says nothing at all is ended, one that is busy with others is waited for, but not for ever. */

import type { Clock } from "@nexus-stream/protocol/clock";

export interface AnswerRules {
	clock: Clock;
	/** Longest silence of the process. */
	answerMs: number;
	/** Longest wait for this answer, however much it says about others. */
	giveUpMs: number;
	/** The platform has asked for patience: the waiting does not count. */
	paused(): boolean;
	/** When the process last said anything. */
	receivedAt(): number;
	late(waitedMs: number): void;
}

export interface AnswerWatch {
	/** It said something about this answer. */
	touch(): void;
	end(): void;
}

export function watchAnswer({ clock, answerMs, giveUpMs, paused, receivedAt, late }: AnswerRules): AnswerWatch {
	let since = clock.now();
	let cancel = () => {};
	const dueAt = () => Math.min(Math.max(since, receivedAt()) + answerMs, since + Math.max(answerMs, giveUpMs));
	const plan = () => {
		cancel = clock.after(Math.max(0, dueAt() - clock.now()), look);
	};
	const look = () => {
		if (paused()) since = clock.now();
		if (dueAt() > clock.now()) plan();
		else late(clock.now() - Math.max(since, receivedAt()) >= answerMs ? answerMs : giveUpMs);
	};
	plan();
	return {
		touch() {
			since = clock.now();
			cancel();
			plan();
		},
		end: () => cancel(),
	};
}
