/** When an adapter of the kit announces a message that has no text yet, and when it withdraws it. */

import { expect, it } from "vitest";
import type { DraftStyle } from "../../../packages/adapter/src/platform/session.ts";
import type { Resume } from "../../../packages/adapter/src/port.ts";
import { kitStream } from "./context.ts";

const names = { delivery: "d", runId: "r" };
const tool = { type: "tool_status", toolName: "Read", toolCallId: "1", status: "started", ...names };
const endOfMessage = { type: "stream_end", final: false, ...names };
const text = (words: string) => ({ type: "token", text: words, ...names });

function open(style: DraftStyle, { placeholder = "", resume }: { placeholder?: string; resume?: Resume } = {}) {
	const calls: string[] = [];
	const session = {
		style: () => style,
		create: async (_target: object, words: string) => {
			calls.push(`create ${words}`);
			return { messageId: "m" };
		},
		edit: async (_target: object, _id: string, words: string) => void calls.push(`edit ${words}`),
		remove: async () => void calls.push("remove"),
		start: async () => ({ messageId: "m" }),
		append: async () => {},
		stop: async () => {},
		find: async () => undefined,
	};
	const { said, ...stream } = kitStream(session, { fields: ["runId", "offset", "intent"] });
	const accept = async (line: object, ms?: number) => {
		await stream.accept(line, ms);
		return said.splice(0).filter(({ type }) => type !== "call") as { type: string; nonce?: string }[];
	};
	const options = { tools: true, placeholder };
	const line = { type: "stream_start", sessionLabel: "s", target: { to: "c" }, options, ...names, resume };
	return { accept, calls, start: () => accept(line) };
}

it("a platform that streams by itself announces nothing before there is text", async () => {
	const { accept, start } = open("append", { placeholder: "One moment…" });
	expect([...(await start()), ...(await accept(tool)), ...(await accept(text("\n")))]).toEqual([]);
	expect(await accept(text("Found."))).toMatchObject([{ type: "message_creating" }]);
});

it("what was announced and has to end without text is taken back, and its ack is not waited for", async () => {
	const { accept, calls, start } = open("edit", { placeholder: "One moment…" });
	expect(await start()).toMatchObject([{ type: "message_creating" }]);
	expect(await accept(endOfMessage)).toMatchObject([{ type: "message_removed", nonce: expect.any(String) }]);
	// Neither the placeholder nor an error comes, however long nothing follows.
	expect(await accept(text("\n"), 600_000)).toEqual([]);
	expect(await accept(text("Found."))).toMatchObject([{ type: "message_creating", from: 0 }]);
	expect(calls).toEqual([]);
});

it("a message that shows a tool and has to end without text is taken away", async () => {
	const { accept, calls, start } = open("edit");
	await start();
	const [creating] = await accept(tool);
	await accept({ type: "ack", nonce: creating!.nonce, ...names });
	await accept(text("\n\n"));
	expect(await accept(endOfMessage)).toMatchObject([{ type: "message_removed", messageId: "m" }]);
	expect(calls).toEqual(["create ⏳ `Read`", "remove"]);
	expect(await accept(text("Found."))).toMatchObject([{ type: "message_creating", from: 0 }]);
});

it.each([
	["and is known to", { shown: 6 }],
	["for all one knows", {}],
])(
	"a message that an earlier process left and that shows text (%s) is not shortened to a tool",
	async (_how, shown) => {
		const { accept, calls, start } = open("edit", { resume: { position: 0, ordinal: 1, messageId: "m", ...shown } });
		await start();
		await accept(tool);
		expect(calls).toEqual([]);
		await accept(text("Found."));
		await accept(tool);
		expect(calls.at(-1)).toBe("edit Found.\n\n⏳ `Read`");
	},
);
