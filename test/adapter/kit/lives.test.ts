/** How deliveries of a `stream` process begin and end apart from their text: acks that do not come, the last line, a second beginning, lines without a name. */

import { describe, expect, it } from "vitest";
import { SentLog } from "../../../packages/adapter/src/memory/sent.ts";
import type { Platform } from "../../../packages/adapter/src/platform/platform.ts";
import type { Session } from "../../../packages/adapter/src/platform/session.ts";
import type { AdapterInfo, SendStatus, StreamStatus } from "../../../packages/adapter/src/port.ts";
import { createAdapterContext } from "../../../packages/adapter/src/serve/context.ts";
import { createDeliveries } from "../../../packages/adapter/src/serve/deliver.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { sessionOf } from "../session.ts";

const tick = () => new Promise<void>((resolve) => setImmediate(resolve));
const named = { delivery: "d", runId: "r" };
const target = { to: "c" };
const start = { type: "stream_start", sessionLabel: "s", target } as const;

function world() {
	const clock = manualClock(1000);
	const said: (SendStatus | StreamStatus)[] = [];
	const shown = new Map<string, string>();
	const info: AdapterInfo = {
		channel: "x",
		version: "1",
		protocol: 1,
		supports: ["stream"],
		settings: [],
		fields: ["runId", "offset", "intent"],
		limits: { textMax: 100, unit: "utf16" },
	};
	const platform: Platform = {
		info,
		render: (markdown) => markdown,
		measure: (rendered) => rendered.length,
		pace: () => ({ targetIntervalMs: 0 }),
		open: () => Promise.reject(new Error("unused")),
	};
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
	const context = createAdapterContext({
		platform,
		session,
		sent: new SentLog(undefined, clock),
		account: "a",
		clock,
		random: () => 0.5,
		log: silentLog,
		say: (status) => void said.push(status),
		ready: () => Promise.resolve(),
	});
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
