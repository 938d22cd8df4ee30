import { expect, it } from "vitest";
import { sqliteDeliveries } from "../../../src/ledger/ledger.ts";
import { createJournal } from "../../../src/nex/journal.ts";
import { Tracked } from "../../../src/nex/tracked.ts";
import { manualClock } from "../../../src/std/clock.ts";
import { silentLog } from "../../../src/std/log.ts";
import { openSqlite } from "../../../src/std/sqlite.ts";

it("I7: a failure that is told before the message's own answer waits for it", async () => {
	const file = openSqlite(":memory:", "process");
	const deliveries = sqliteDeliveries(file);
	const clock = manualClock(1000);
	const target = { to: "chat" };
	deliveries.open({ id: "d1", runId: "r1", channel: "x", account: "a", target, options: {}, createdAt: 1000 });
	const tracked = new Tracked(deliveries.get("d1")!, createJournal(deliveries, clock, silentLog), clock);
	tracked.intend({ ordinal: 1, nonce: "n1", from: 0, to: 3, text: "one" });
	tracked.failed("n1", { messageId: "m1", error: "no phone" });
	expect(tracked.unfinished).toMatchObject({ nonce: "n1", state: "intended" });
	tracked.sent("n1", { messageId: "m1", to: 3 });
	await tracked.recorded();
	expect(tracked.unfinished).toBeUndefined();
	expect(deliveries.get("d1")).toEqual(tracked.row);
	expect(tracked.row.messages).toMatchObject([{ state: "failed", error: "no phone", messageId: "m1" }]);
	file.close();
});

it("I7: the range of a message that was announced complete is given back after a crash", async () => {
	const file = openSqlite(":memory:", "process");
	const deliveries = sqliteDeliveries(file);
	const clock = manualClock(1000);
	const target = { to: "chat" };
	deliveries.open({ id: "d1", runId: "r1", channel: "x", account: "a", target, options: {}, createdAt: 1000 });
	const journal = createJournal(deliveries, clock, silentLog);
	const tracked = new Tracked(deliveries.get("d1")!, journal, clock);
	tracked.intend({ ordinal: 1, nonce: "n1", from: 0, to: 42 });
	await tracked.recorded();
	const again = new Tracked(deliveries.get("d1")!, journal, clock);
	expect(again.resume()).toEqual({ position: 0, ordinal: 1, uncertain: { nonce: "n1", to: 42 } });
	file.close();
});
