/** A process that is silent is ended; one that works through a backlog, or waits for its platform, is not. */

import { describe, expect, it } from "vitest";
import { watchAnswer } from "../../../packages/daemon/src/nex/accounts/answer-watch.ts";
import { manualClock } from "../../clock.ts";
import { FAST, type Rig, rigForTest } from "./rig.ts";

let rig: Rig;

function watched({ answerMs = 300, giveUpMs = 3600 } = {}) {
	const clock = manualClock();
	const process = { heardAt: 0, paused: false };
	const late: number[] = [];
	const watch = watchAnswer({
		clock,
		answerMs,
		giveUpMs,
		receivedAt: () => process.heardAt,
		paused: () => process.paused,
		late: (ms) => late.push(ms),
	});
	const hear = (after: number) => {
		clock.advance(after);
		process.heardAt = clock.now();
	};
	return { clock, process, late, watch, hear };
}

describe("waiting for an answer", () => {
	it("silence is too late, once", () => {
		const { clock, late } = watched();
		clock.advance(299);
		expect(late).toEqual([]);
		clock.advance(1);
		expect(late).toEqual([300]);
		clock.advance(10_000);
		expect(late).toEqual([300]);
	});

	it("a process that speaks of others is not silent; when it falls silent the time counts from its last word", () => {
		const { clock, late, hear } = watched();
		for (let n = 0; n < 10; n++) hear(250);
		expect(late).toEqual([]);
		clock.advance(299);
		expect(late).toEqual([]);
		clock.advance(1);
		expect(late).toEqual([300]);
	});

	it("I11: an answer that never comes is not waited for without end", () => {
		const { late, hear } = watched();
		for (let n = 0; n < 14; n++) hear(250);
		expect(late).toEqual([]);
		hear(250);
		expect(late).toEqual([3600]);
	});

	it("while the platform asks for patience nothing is late", () => {
		const { clock, late, process } = watched();
		process.paused = true;
		clock.advance(10_000);
		expect(late).toEqual([]);
		process.paused = false;
		clock.advance(600);
		expect(late).toEqual([300]);
	});

	it("a report on the answer itself restarts the time; the end ends it", () => {
		const { clock, late, watch } = watched();
		for (let n = 0; n < 30; n++) {
			clock.advance(200);
			watch.touch();
		}
		watch.end();
		clock.advance(10_000);
		expect(late).toEqual([]);
	});
});

describe("a backlog", () => {
	it("longer than the patience with one answer does not cost the process its life", { timeout: 300_000 }, async () => {
		const limits = { ...FAST, answerMs: 4000 };
		rig = rigForTest((channel) => ({ mail: channel("mail", { slowMs: "450" }) }), { limits });
		const { outbound } = rig;
		const account = { channel: "mail", id: "main" };
		// Its start is not part of the backlog.
		const { id: first } = await outbound.deliver({ text: "first", account, target: { to: "c" } });
		expect(await outbound.settled(first)).toMatchObject({ state: "complete" });
		const all = await Promise.all(
			Array.from({ length: 10 }, (_, n) => outbound.deliver({ text: `mail ${n}`, account, target: { to: `c${n}` } })),
		);
		for (const { id } of all) expect(await outbound.settled(id)).toMatchObject({ state: "complete" });
		expect(outbound.accounts()[0]!.processes.send).toMatchObject({ restarts: 0 });
	});
});
