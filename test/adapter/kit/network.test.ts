/** The files of one inbound message share one limit, and the text names each file that is missing. */

import { expect, it } from "vitest";
import { withFiles } from "../../../packages/adapter/src/platform/network.ts";

const chat = { id: "c", type: "direct" as const };
const message = { eventId: "e", from: { id: "u" }, chat, text: "hi", target: { to: "c" }, ts: 0 };
const file = (name: string, bytes?: number) => ({ name, contentType: "text/plain", bytes });

it("I11: together they are within the limit, whether or not the platform reports their sizes", async () => {
	const requested: [string, number][] = [];
	const fetched = await withFiles(
		{ message, files: [file("a", 60), file("b", 60), file("c"), file("d")] },
		async ({ name }, bytesMax) => {
			requested.push([name, bytesMax]);
			if (name === "d") throw new Error("gone");
			return Buffer.alloc(name === "c" ? 30 : 60);
		},
		100,
	);
	expect(requested).toEqual([
		["a", 100],
		["c", 40],
		["d", 10],
	]);
	expect(fetched.attachments?.map(({ name }) => name)).toEqual(["a", "c"]);
	expect(fetched.text.split("\n")).toEqual([
		"hi",
		"[attachment b is too large: 60 bytes]",
		"[attachment d could not be fetched: gone]",
	]);
});
