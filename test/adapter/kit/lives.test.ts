/** How deliveries of a `stream` process begin and end apart from their text: acks that do not come, the last line, a second beginning, lines without a name. */

import { describe, expect, it } from "vitest";
import type { Session } from "../../../packages/adapter/src/platform/session.ts";
import type { SendStatus, StreamStatus } from "../../../packages/adapter/src/port.ts";
import { createDeliveries } from "../../../packages/adapter/src/serve/deliver.ts";
import { manualClock } from "../../clock.ts";
import { sessionOf } from "../session.ts";
import { kitContext } from "./context.ts";

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const named = { delivery: "d", runId: "r" };
const target = { to: "c" };
const start = { type: "stream_start", sessionLabel: "s", target } as const;

function world() {
	const clock = manualClock(1000);
	const said: (SendStatus | StreamStatus)[] = [];
	const shown = new Map<string, string>();
	const session: Session = sessionOf({
		async create(_target, text) {
			shown.set(`m${shown.size + 1}`, text);
			return { messageId: `m${shown.size}` };
		},
		async edit(_target, id, text) {
			shown.set(id, text);
		},
		health: async () => ({ ok: true, detail: "" }),
	});
	const info = { fields: ["runId", "offset", "intent"] as const, limits: { textMax: 100, unit: "utf16" as const } };
	const context = kitContext({ session, clock, info, say: (status) => void said.push(status) });
	const announced = () => said.flatMap((each) => (each.type === "message_creating" ? [each.nonce] : []));
	return { clock, said, announced, texts: () => [...shown.values()], deliveries: createDeliveries(context) };
}

describe("a delivery in the kit", () => {
	it("whose intent the daemon does not confirm in time ends with an error, and creates nothing", async () => {
		const { clock, said, texts, deliveries } = world();
		deliveries.accept({ ...start, ...named });
		deliveries.accept({ type: "token", text: "hello", ...named });
		clock.advance(59_999);
		expect(said.at(-1)).toMatchObject({ type: "message_creating" });
		clock.advance(1);
		expect(said.at(-1)).toMatchObject({ type: "delivery_error", code: "unavailable", delivery: "d" });
		await deliveries.idle();
		expect(texts()).toEqual([]);
	});

	it("is left to the next process when no more lines come and an ack is missing, now or later", async () => {
		const waits = world();
		waits.deliveries.accept({ ...start, ...named });
		waits.deliveries.accept({ type: "token", text: "hello", ...named });
		waits.deliveries.accept({ type: "stream_end", final: true, ...named });
		waits.deliveries.stop();
		await waits.deliveries.idle();
		expect(waits.texts()).toEqual([]);

		const two = world();
		two.deliveries.accept({ ...start, ...named });
		two.deliveries.accept({ type: "token", text: "one", ...named });
		two.deliveries.accept({ type: "stream_end", final: false, ...named });
		two.deliveries.accept({ type: "token", text: "two", ...named });
		two.deliveries.accept({ type: "stream_end", final: true, ...named });
		two.deliveries.accept({ type: "ack", nonce: two.announced()[0]!, ...named });
		two.deliveries.stop();
		await two.deliveries.idle();
		expect([two.texts(), two.announced().length]).toEqual([["one"], 2]);
	});

	it("that begins again takes the place of the first", async () => {
		const { announced, texts, deliveries, clock, said } = world();
		deliveries.accept({ ...start, ...named });
		deliveries.accept({ type: "token", text: "old", ...named });
		deliveries.accept({ ...start, ...named });
		deliveries.accept({ type: "token", text: "new", ...named });
		deliveries.accept({ type: "stream_end", final: true, ...named });
		deliveries.accept({ type: "ack", nonce: announced().at(-1)!, ...named });
		await deliveries.idle();
		expect(texts()).toEqual(["new"]);
		clock.advance(60_000);
		await tick();
		expect(texts()).toEqual(["new"]);
		expect(said.some(({ type }) => type === "delivery_error")).toBe(false);
	});

	it("gets the lines without a name when it began last", async () => {
		const { texts, deliveries } = world();
		deliveries.accept({ ...start, runId: "r1" });
		deliveries.accept({ type: "token", text: "hello" });
		deliveries.accept({ type: "stream_end", runId: "r1", final: true });
		await deliveries.idle();
		deliveries.accept({ ...start, runId: "r2" });
		deliveries.accept({ type: "token", text: "again" });
		deliveries.accept({ type: "stream_end", runId: "r2", final: true });
		await deliveries.idle();
		expect(texts()).toEqual(["hello", "again"]);
	});
});
