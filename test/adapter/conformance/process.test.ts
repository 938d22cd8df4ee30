/** How long the suite waits for what an adapter must say. */

import { afterEach, describe, expect, it } from "vitest";
import { AdapterProcess } from "../../../packages/adapter/src/conformance/process.ts";

let child: AdapterProcess | undefined;
afterEach(async () => {
	await child?.kill();
	child = undefined;
});

const start = (script: string): AdapterProcess => {
	child = new AdapterProcess([process.execPath, "-e", script], [], {});
	return child;
};

/** Says how it is doing every quarter of a second, and `answer` after so many. */
const busy = (beats: number) =>
	`let n = 0; setInterval(() => console.log(JSON.stringify({ type: n++ === ${beats} ? "answer" : "call" })), 250)`;

describe("conformance: waiting", () => {
	it("an adapter at its platform's pace is waited for as long as it says what it does", async () => {
		const talkative = start(busy(22));
		await talkative.hear("a sign of life", ({ type }) => type === "call", 60_000);
		const heard = await talkative.hear("the answer", ({ type }) => type === "answer", 4_500);
		expect(heard.type).toBe("answer");
	});

	it("one that only chatters is given up", async () => {
		const chatty = start(busy(100_000));
		await chatty.hear("a sign of life", ({ type }) => type === "call", 60_000);
		await expect(chatty.hear("the answer", ({ type }) => type === "answer", 300)).rejects.toThrow(
			/expected the answer/,
		);
	});
});
