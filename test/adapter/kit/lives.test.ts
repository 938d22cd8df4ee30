/** How deliveries of a `stream` process begin and end apart from their text: acks that do not come, the last line, a second beginning, lines without a name. */

import { describe, expect, it } from "vitest";
import type { StreamLine } from "../../../packages/adapter/src/port.ts";
import { kitStream, turn } from "./context.ts";

const named = { delivery: "d", runId: "r" };
const start = { type: "stream_start", sessionLabel: "s", target: { to: "c" } } as const;
const token = (text: string) => ({ type: "token", text }) as const;
const end = (final = true) => ({ type: "stream_end", final }) as const;

function world() {
	const shown = new Map<string, string>();
	const create = async (_target: object, text: string) => {
		shown.set(`m${shown.size + 1}`, text);
		return { messageId: `m${shown.size}` };
	};
	const edit = async (_target: object, id: string, text: string) => void shown.set(id, text);
	const info = { fields: ["runId", "offset", "intent"] as const, limits: { textMax: 100, unit: "utf16" as const } };
	const stream = kitStream({ create, edit }, info);
	const { said, deliveries } = stream;
	const announced = () => said.flatMap((each) => (each.type === "message_creating" ? [each.nonce] : []));
	const accept = (...lines: readonly object[]) => {
		for (const line of lines) deliveries.accept({ ...line, ...named } as unknown as StreamLine);
	};
	return { ...stream, accept, announced, texts: () => [...shown.values()] };
}

describe("a delivery in the kit", () => {
	it("whose intent the daemon does not confirm in time ends with an error, and creates nothing", async () => {
		const { clock, said, texts, deliveries, accept } = world();
		accept(start, token("hello"));
		clock.advance(59_999);
		expect(said.at(-1)).toMatchObject({ type: "message_creating" });
		clock.advance(1);
		expect(said.at(-1)).toMatchObject({ type: "delivery_error", code: "unavailable", delivery: "d" });
		await deliveries.idle();
		expect(texts()).toEqual([]);
	});

	it("is left to the next process when no more lines come and an ack is missing, now or later", async () => {
		const waits = world();
		waits.accept(start, token("hello"), end());
		await waits.deliveries.stop();
		expect(waits.texts()).toEqual([]);

		const two = world();
		two.accept(start, token("one"), end(false), token("two"), end());
		two.accept({ type: "ack", nonce: two.announced()[0] });
		await two.deliveries.stop();
		expect([two.texts(), two.announced().length]).toEqual([["one"], 2]);
	});

	it("that begins again takes the place of the first", async () => {
		const { accept, announced, texts, deliveries, clock, said } = world();
		accept(start, token("old"), start, token("new"), end());
		accept({ type: "ack", nonce: announced().at(-1) });
		await deliveries.idle();
		expect(texts()).toEqual(["new"]);
		clock.advance(60_000);
		await turn();
		expect(texts()).toEqual(["new"]);
		expect(said.some(({ type }) => type === "delivery_error")).toBe(false);
	});

	it("gets the lines without a name when it began last", async () => {
		const { texts, deliveries } = world();
		for (const [runId, text] of [
			["r1", "hello"],
			["r2", "again"],
		] as const) {
			deliveries.accept({ ...start, runId });
			deliveries.accept(token(text));
			deliveries.accept({ ...end(), runId });
			await deliveries.idle();
		}
		expect(texts()).toEqual(["hello", "again"]);
	});
});
