/** Following the events of something that ends, where a page does it: in a browser a timer is a number. */

import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { followEvents } from "../../packages/client/src/events.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";

it("says when a connection is there, and sets no timer that only Node could let go of", async () => {
	const dues: (string | undefined)[] = [];
	const clock = {
		now: () => 0,
		after(_ms: number, _callback: () => void, due?: "due") {
			dues.push(due);
			return () => {};
		},
	};
	const told: string[] = [];
	const request = async () => new Response('id: 1\nevent: message\ndata: {"last":true}\n\n');
	const events = followEvents<{ last: boolean }>({ request }, "/v1/x", ({ last }) => last, {
		clock,
		onOpen: () => void told.push("open"),
	});
	for await (const { offset } of events) told.push(`event ${offset}`);
	expect(told).toEqual(["open", "event 1"]);
	expect(new Set(dues)).toEqual(new Set(["due"]));
});

it("leaves no listener on the signal, however often it connects again", async () => {
	const stop = new AbortController();
	const clock = {
		now: () => 0,
		after(_ms: number, callback: () => void) {
			queueMicrotask(callback);
			return () => {};
		},
	};
	let tries = 0;
	const most: number[] = [];
	const request = async () => {
		most.push(getEventListeners(stop.signal, "abort").length);
		if (++tries < 20) throw new NexusError("unavailable", "not yet");
		return new Response('id: 1\ndata: {"last":true}\n\n');
	};
	const events = followEvents<{ last: boolean }>({ request }, "/v1/x", ({ last }) => last, {
		clock,
		signal: stop.signal,
	});
	for await (const _ of events) expect(tries).toBe(20);
	expect(Math.max(...most)).toBe(1);
	expect(getEventListeners(stop.signal, "abort")).toEqual([]);
});
