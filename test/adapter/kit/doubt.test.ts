/** A platform that never tells what became of a creation: it is asked ever later, and in the end the adapter says that it does not know. */

import { describe, expect, it } from "vitest";
import { PlatformError } from "../../../packages/adapter/src/platform/platform-error.ts";
import type { AdapterContext } from "../../../packages/adapter/src/serve/context.ts";
import { createDeliveries } from "../../../packages/adapter/src/serve/deliver.ts";
import { createSends } from "../../../packages/adapter/src/serve/send.ts";
import { manualClock } from "../../clock.ts";
import { sessionOf } from "../session.ts";
import { kitContext, type Status } from "./context.ts";

/** `outcome` is what the n-th creation says, counted from 1; undefined = it is created. */
function world(outcome: (nth: number) => PlatformError | undefined, reconcile: "history" | "nonce") {
	const clock = manualClock(1_000_000);
	const said: Status[] = [];
	const creations: number[] = [];
	const session = sessionOf({
		async create() {
			creations.push(clock.now());
			const error = outcome(creations.length);
			if (error) throw error;
			return { messageId: "m1" };
		},
		find: reconcile === "history" ? async () => undefined : undefined,
	});
	const info = { supports: ["send", "stream"] as const, reconcile, fields: ["runId", "offset"] as const };
	const context = kitContext({ session, clock, info, say: (status) => said.push(status) });
	const isEnd = ({ type }: Status) => type === "delivery_error" || type === "message_sent";
	return {
		context,
		creations,
		/** Lets time pass until it is over; fails when it never is. */
		async end(): Promise<Status> {
			for (let ms = 0; ms < 600_000; ms += 50) {
				const end = said.find(isEnd);
				if (end) return end;
				clock.advance(50);
				for (let turn = 0; turn < 12; turn++) await Promise.resolve();
			}
			throw new Error(`it never ends: ${creations.length} creations`);
		},
	};
}

const lost = () => new PlatformError("unknown_outcome", "reset");
const paths = {
	send(context: AdapterContext) {
		const line = { delivery: "d", nonce: "n", target: { to: "c" }, text: "hello", from: 0, to: 5 };
		createSends(context).accept({ type: "send", ...line });
	},
	stream(context: AdapterContext) {
		const deliveries = createDeliveries(context);
		const named = { delivery: "d", runId: "r" };
		deliveries.accept({ type: "stream_start", sessionLabel: "s", target: { to: "c" }, ...named });
		deliveries.accept({ type: "token", text: "hello", ...named });
		deliveries.accept({ type: "stream_end", final: true, ...named });
	},
};

describe.each(Object.entries(paths))("%s: a creation without an answer", (_name, begin) => {
	it("I7: looked up and not there, again and again: the waits grow, and it ends as unknown_outcome", async () => {
		const { context, creations, end } = world(lost, "history");
		begin(context);
		expect(await end()).toMatchObject({ type: "delivery_error", code: "unknown_outcome" });
		expect(creations.length).toBeGreaterThan(4);
		expect(creations.length).toBeLessThan(12);
		const waits = creations.slice(1).map((at, n) => at - creations[n]!);
		for (const [n, wait] of waits.slice(1).entries()) expect(wait).toBeGreaterThanOrEqual(waits[n]!);
		expect(waits.at(-1)).toBeGreaterThan(10_000);
	});

	it("is said again when it is certainly not there, and then it is there", async () => {
		const { context, creations, end } = world((nth) => (nth < 4 ? lost() : undefined), "history");
		begin(context);
		expect(await end()).toMatchObject({ type: "message_sent", messageId: "m1" });
		expect(creations.length).toBe(4);
	});

	it("I7: said again by its nonce and refused: the first try is still in doubt", async () => {
		const denied = new PlatformError("denied", "no");
		const { context, end } = world((nth) => (nth === 1 ? lost() : denied), "nonce");
		begin(context);
		expect(await end()).toMatchObject({ type: "delivery_error", code: "unknown_outcome" });
	});

	it("is not said again by its nonce after the platform has forgotten it", async () => {
		const { context, creations, end } = world(lost, "nonce");
		begin(context);
		expect(await end()).toMatchObject({ type: "delivery_error", code: "unknown_outcome" });
		expect(creations.at(-1)! - creations[0]!).toBeLessThanOrEqual(60_000);
		expect(creations.length).toBeGreaterThan(3);
	});
});
