/** Platforms that stream by themselves show the running tool next to the message, never in it. */

import { expect, it } from "vitest";
import { kitStream } from "./context.ts";

async function play(lines: readonly object[], tools: boolean) {
	const statuses: string[] = [];
	let text = "";
	const { accept, deliveries } = kitStream({
		style: () => "append",
		create: async () => ({ messageId: "m" }),
		start: async (_target, markdown) => {
			text += markdown;
			return { messageId: "m" };
		},
		append: async (_target, _id, markdown) => {
			text += markdown;
		},
		stop: async () => {},
		status: async (_target, status) => void statuses.push(status),
	});
	const start = { type: "stream_start", runId: "r", sessionLabel: "s", target: { to: "c" }, options: { tools } };
	for (const line of [start, ...lines]) await accept(line);
	await deliveries.idle();
	return { statuses, text };
}

const tool = (status: string) => ({ type: "tool_status", toolName: "Read", toolCallId: "1", status });
const answer = [
	...[tool("started"), tool("completed"), { type: "token", text: "Found it. " }, tool("started")],
	...[
		{ type: "token", text: "Done." },
		{ type: "stream_end", runId: "r", final: true },
	],
];

it("a tool is shown while it runs, also before the first text, and is never in the text", async () => {
	expect(await play(answer, true)).toEqual({
		statuses: ["is using Read…", "", "is using Read…", ""],
		text: "Found it. Done.",
	});
});

it("nothing is shown where the channel does not want it", async () => {
	expect(await play(answer, false)).toEqual({ statuses: [], text: "Found it. Done." });
});
