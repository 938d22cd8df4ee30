import { describe, expect, it } from "vitest";
import { DurableWork } from "../../packages/daemon/src/services/kit/durable-work.ts";
import { NexusError, newId, Refused, timeOfId } from "../../packages/protocol/src/protocol.ts";
import { manualClock } from "../clock.ts";
import { storeForTest } from "../store.ts";
import { until } from "../until.ts";
import { appPrincipal, durableParts, OWNER, rejectsWith } from "./parts.ts";

const SHOP = appPrincipal("shop");

/** Work of the application `shop`, with one record. */
async function started(id = "job_1") {
	const clock = manualClock(Date.now());
	const parts = durableParts(storeForTest(), clock);
	const appOf = (one: string) => (one === id ? "shop" : undefined);
	const work = new DurableWork({ kind: "job", noun: "job", domain: "jobs", appOf }, parts);
	const request = { appId: "shop", key: "k", body: {}, result: id };
	const { log } = await work.create(request, (commit) => commit({ record: "1", writes: [] }));
	return { clock, work, log: log!, bus: parts.bus };
}

const full = new NexusError("unavailable", "the disk is full");
const refused = new Refused("conflict", "it has ended");

describe("durable work", () => {
	it.each([true, false])(
		"I3: a commit that fails is tried again until the store takes it (last: %s)",
		async (isLast) => {
			const { log, clock, bus } = await started();
			bus.reopen = () => Promise.reject(full);
			let failures = 2;
			const { seal, appendWith } = log.writer;
			const late = (commit: (...args: never[]) => Promise<unknown>) => ({
				[isLast ? "seal" : "appendWith"]: (...args: never[]) =>
					failures-- > 0 ? Promise.reject(full) : commit(...args),
			});
			Object.assign(log.writer, late(isLast ? seal : appendWith));
			const saved = log.save(["2"], [], isLast).then(() => "saved");
			await until("it is saved", async () => {
				clock.advance(5000);
				return (await bus.describe("job_1"))!.head === 2;
			});
			expect([await saved, failures]).toEqual(["saved", -1]);
		},
	);

	it("a commit that the store refuses is not tried again, and no commit is once the daemon stops", async () => {
		const { log, work } = await started();
		let tries = 0;
		const failing = (cause: Error) => () => {
			tries++;
			return Promise.reject(cause);
		};
		log.writer.seal = failing(refused);
		await expect(log.save([], [], true)).rejects.toBe(refused);
		log.writer.seal = failing(full);
		const waiting = log.save([], [], true);
		await until("it waits", () => tries === 2);
		work.close();
		await expect(waiting).rejects.toBe(full);
		await expect(log.save([], [], true)).rejects.toBe(full);
		expect(tries).toBe(3);
	});

	it("Z5: a reader begins with the newest record, and of work that has ended gets the last one again", async () => {
		const { log, work } = await started();
		await log.change(["2"], []);
		const first = async (after?: number) => (await (await work.cursor("job_1", after, SHOP)).next())?.first;
		expect([await first(), await first(0), await first(2)]).toEqual([2, 1, undefined]);
		await rejectsWith(work.cursor("job_1", 3, SHOP), "invalid");
		await log.save(["3"], [], true);
		expect([await first(), await first(1), await first(3), await first(99)]).toEqual([3, 2, 3, 3]);
	});

	it("Z3: what is not stored was never there or has expired; another application's is not there", async () => {
		const id = newId("job", Date.now());
		const { work, log, clock, bus } = await started(id);
		const code = (one: string, principal = OWNER) =>
			work.cursor(one, 0, principal).then(
				() => "read",
				(cause: NexusError) => cause.code,
			);
		expect([await code(id, SHOP), await code(id, appPrincipal("desk"))]).toEqual(["read", "not_found"]);
		await log.save([], [], true);
		await bus.removeOf("shop");
		// Its row is there.
		expect(await code(id)).toBe("expired");
		const unknown = newId("job", clock.now());
		expect(await code(unknown)).toBe("not_found");
		// Ids never go back in time, so this one may be later than the clock.
		clock.advance(timeOfId(unknown)! - clock.now() + 7 * 24 * 60 * 60_000);
		expect(await code(unknown)).toBe("expired");
	});
});
