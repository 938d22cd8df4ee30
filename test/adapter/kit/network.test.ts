/** The files of one inbound message share one limit, and what stays behind is named. */

import { expect, it } from "vitest";
import { fetchFiles } from "../../../packages/adapter/src/platform/network.ts";

const file = (name: string, bytes?: number) => ({ name, contentType: "text/plain", bytes });

it("I11: together they are within the limit, whether the platform tells their sizes or not", async () => {
	const asked: [string, number][] = [];
	const fetched = await fetchFiles(
		[file("a", 60), file("b", 60), file("c"), file("d")],
		async ({ name }, bytesMax) => {
			asked.push([name, bytesMax]);
			if (name === "d") throw new Error("gone");
			return Buffer.alloc(name === "c" ? 30 : 60);
		},
		100,
	);
	expect(asked).toEqual([
		["a", 100],
		["c", 40],
		["d", 10],
	]);
	expect(fetched.attachments.map(({ name }) => name)).toEqual(["a", "c"]);
	expect(fetched.notes).toEqual(["[attachment b is too large: 60 bytes]", "[attachment d could not be fetched: gone]"]);
});
