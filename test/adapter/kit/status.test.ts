/** Platforms that stream by themselves show the running tool next to the message, never in it. */

import { expect, it } from "vitest";
import { SentLog } from "../../../packages/adapter/src/memory/sent.ts";
import type { Platform } from "../../../packages/adapter/src/platform/platform.ts";
import type { Session } from "../../../packages/adapter/src/platform/session.ts";
import type { StreamLine } from "../../../packages/adapter/src/port.ts";
import { createAdapterContext } from "../../../packages/adapter/src/serve/context.ts";
import { createDeliveries } from "../../../packages/adapter/src/serve/deliver.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { manualClock } from "../../clock.ts";
import { sessionOf } from "../session.ts";

const platform: Platform = {
	info: {
		channel: "memory",
		version: "1",
		protocol: 1,
		supports: ["stream"],
		limits: { textMax: 1000, unit: "utf16" },
		settings: [],
	},
	render: (markdown) => markdown,
	measure: (rendered) => rendered.length,
	pace: () => ({ targetIntervalMs: 0, accountIntervalMs: 0 }),
	open: () => {
		throw new Error("not opened here");
	},
};

async function play(lines: readonly object[], tools: boolean) {
	const clock = manualClock(1);
	const statuses: string[] = [];
	let text = "";
	const session: Session = sessionOf({
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
		health: async () => ({ ok: true, detail: "" }),
	});
	const context = createAdapterContext({
		platform,
		session,
		sent: new SentLog(undefined, clock),
		account: "a",
		clock,
		random: Math.random,
		log: silentLog,
		say() {},
		async ready() {},
	});
	const deliveries = createDeliveries(context);
	const start = { type: "stream_start", runId: "r", sessionLabel: "s", target: { to: "c" }, options: { tools } };
	for (const line of [start, ...lines]) {
		deliveries.accept(line as StreamLine);
		for (let turn = 0; turn < 10; turn++) {
			clock.advance(100);
			await new Promise((resolve) => setImmediate(resolve));
		}
	}
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
