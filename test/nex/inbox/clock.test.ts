/** The wall clock is set while messages wait: how long they wait, and the order of their runs, does not depend on it. */

import { describe, expect, test } from "vitest";
import type { Clock } from "../../../packages/protocol/src/clock.ts";
import { tempFile, ticks, until } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { echo, nexRig, queueOf } from "./rig.ts";

const HOUR_MS = 3_600_000;

/** Time passes by `advance` alone; what the clock says can be set. Without `monotonic`, only what it says is known. */
function settable(monotonic = true) {
	const clock = manualClock(10 * HOUR_MS);
	let ahead = 0;
	const shown: Clock = {
		now: () => clock.now() + ahead,
		monotonic: monotonic ? () => clock.now() : undefined,
		after: (ms, callback) => clock.after(ms, callback),
	};
	return {
		clock: shown,
		advance: (ms: number) => clock.advance(ms),
		set(ms: number) {
			ahead += ms;
		},
	};
}

const collect = queueOf("collect", { collectMs: 1500 });

describe("a clock that is set back by an hour", () => {
	test("I10: messages that are being collected are answered on time", async () => {
		const time = settable(false);
		const { submit, look } = nexRig(echo, { clock: time.clock });
		await submit({ session: "main", text: "one", queue: collect });
		await submit({ session: "main", text: "two", queue: collect });
		time.set(-HOUR_MS);
		// The time that had passed when the clock was set back may count again, once.
		for (let n = 0; n < 2; n++) {
			time.advance(collect.collectMs);
			await ticks(20);
		}
		await until(() => look.turns({ limit: 1 }).length === 1);
		expect(look.turns({ limit: 1 })[0]!.messages.map(({ text }) => text)).toEqual(["one", "two", "re two"]);
	});

	test("I10: over a restart too", async () => {
		const time = settable(false);
		const path = tempFile();
		const before = nexRig(async function* () {}, { clock: time.clock, path });
		await before.submit({ session: "main", text: "one", queue: collect });
		await before.bus.close();
		time.set(-HOUR_MS);
		const after = nexRig(echo, { clock: time.clock, path });
		await after.nex.recover();
		await ticks(4);
		time.advance(1500);
		await until(() => after.look.turns({ limit: 1 }).length === 1);
	});
});

describe("a clock that jumps forward by hours", () => {
	test("I10: messages that are being collected still wait for more", async () => {
		const time = settable();
		const { submit, look } = nexRig(echo, { clock: time.clock });
		await submit({ session: "main", text: "one", queue: collect });
		time.set(HOUR_MS);
		await submit({ session: "main", text: "two", queue: collect });
		time.advance(1400);
		await ticks(4);
		expect(look.turns({ limit: 9 })).toEqual([]);
		time.advance(100);
		await until(() => look.turns({ limit: 9 }).length === 1);
	});
});

test("a clock that is set back does not reorder runs", async () => {
	const time = settable();
	const { submit, look } = nexRig(echo, { clock: time.clock });
	const runIds: string[] = [];
	for (let n = 0; n < 4; n++) {
		const { runId } = await submit({ session: `s${n}`, text: "x" });
		runIds.push(runId!);
		await until(() => look.turn(runId!) !== undefined);
		time.set(-HOUR_MS);
		time.advance(10);
	}
	expect(runIds).toEqual(runIds.toSorted());
});
