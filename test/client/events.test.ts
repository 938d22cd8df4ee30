/** Following the events of something that ends, where a page does it: in a browser a timer is a number. */

import { expect, it } from "vitest";
import { followEvents } from "../../src/client/events.ts";

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
