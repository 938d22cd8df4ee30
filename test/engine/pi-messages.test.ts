import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toPiContext } from "../../packages/daemon/src/engine/pi/messages.ts";
import type { Attachment, EngineMessage } from "../../packages/protocol/src/engine.ts";
import { ask } from "./pi-kit.ts";

const file = (name: string, contentType: string, data: string | Uint8Array): Attachment => ({
	name,
	contentType,
	data: Buffer.from(data).toString("base64"),
});

const promptOf = (...attachments: Attachment[]) => toPiContext(ask("look", { attachments }), 0).prompt.content;

describe("attachments", () => {
	test("an image is content the model can see, and is named", () => {
		const png = file("cat.png", "image/png", "pixels");
		expect(promptOf(png)).toEqual([
			{ type: "text", text: "look\n\n[attached image: cat.png]" },
			{ type: "image", data: png.data, mimeType: "image/png" },
		]);
	});

	test.each(["text/plain", "text/csv; charset=utf-8", "application/json", "image/svg+xml"])(
		"%s is read as text",
		(type) => {
			expect(promptOf(file("a.txt", type, "one\ntwo\n"))).toBe(
				`look\n\nAttached file a.txt (${type}):\n\`\`\`\none\ntwo\n\`\`\``,
			);
		},
	);

	test("I11: a file full of backticks, as long as one may be, is put into the message like any other", () => {
		const text = "`a".repeat(128 * 1024);
		expect(promptOf(file("ticks.md", "text/markdown", text))).toContain(`\n\`\`\`\n${text}\n\`\`\``);
	});

	test("a file cannot close its own fence", () => {
		fc.assert(
			fc.property(fc.array(fc.constantFrom("`", "``", "`````", "\n", "x")), (pieces) => {
				const text = promptOf(file("a.md", "text/markdown", pieces.join(""))) as string;
				const lines = text.split("\n");
				const fence = lines.at(-1)!;
				expect(fence).toMatch(/^`{3,}$/);
				expect(lines.filter((line) => line.includes(fence))).toHaveLength(2);
			}),
		);
	});

	test("a long text is cut at a whole character, and says so", () => {
		const text = promptOf(file("long.txt", "text/plain", `x${"ü".repeat(200_000)}`)) as string;
		expect(text).toContain("long.txt (text/plain, the first 262144 of 400001 bytes)");
		expect(text).not.toContain("\uFFFD");
		expect(text.match(/ü/g)).toHaveLength(131_071);
	});

	test.each([
		["song.mp3", "audio/mpeg", "abc"],
		["odd.txt", "text/plain", new Uint8Array([0xff, 0xfe, 0x00])],
	])("%s is named with its size", (name, type, data) => {
		expect(promptOf(file(name, type, data))).toBe(
			`look\n\n[attached file, not readable as text: ${name}, ${type}, 3 bytes]`,
		);
	});

	test("a message of attachments only is not empty", () => {
		const { prompt } = toPiContext(ask("", { attachments: [file("a.txt", "text/plain", "hi")] }), 0);
		expect(prompt.content).toMatch(/^Attached file a\.txt/);
		expect(toPiContext(ask(""), 0).prompt.content).toBe("(no text)");
	});

	test("the newest message's own attachments are not sent twice", () => {
		const attachments = [file("a.txt", "text/plain", "hi")];
		const { prompt } = toPiContext(
			ask("", { attachments, messages: [{ role: "user", text: "look", attachments }] }),
			0,
		);
		expect(JSON.stringify(prompt).match(/a\.txt/g)).toHaveLength(1);
	});
});

describe("history", () => {
	const history = (...messages: EngineMessage[]) =>
		toPiContext(ask("", { messages: [...messages, { role: "user", text: "next" }] }), 7).history;

	test("tool calls come with their results, under ids of our own", () => {
		const call = {
			callId: "same|fc_1",
			name: "time",
			args: { zone: "UTC" },
			status: "completed" as const,
			result: "noon",
		};
		const made = history(
			{ role: "user", text: "when?" },
			{ role: "assistant", text: "let me look", toolCalls: [call, { ...call, status: "failed", result: "", args: 5 }] },
			{ role: "assistant", text: "noon", toolCalls: [call] },
		);
		expect(made).toMatchObject([
			{ role: "user", content: "when?" },
			{
				role: "assistant",
				stopReason: "toolUse",
				content: [
					{ type: "text", text: "let me look" },
					{ type: "toolCall", id: "past_1", name: "time", arguments: { zone: "UTC" } },
					{ type: "toolCall", id: "past_2", name: "time", arguments: { value: 5 } },
				],
			},
			{ role: "toolResult", toolCallId: "past_1", isError: false, content: [{ type: "text", text: "noon" }] },
			{ role: "toolResult", toolCallId: "past_2", isError: true, content: [{ type: "text", text: "(no output)" }] },
			{
				role: "assistant",
				content: [
					{ type: "text", text: "noon" },
					{ type: "toolCall", id: "past_3" },
				],
			},
			{ role: "toolResult", toolCallId: "past_3" },
		]);
	});

	test("an interrupted answer stays in the context; an empty one is left out", () => {
		const made = history(
			{ role: "assistant", text: "half an\n[stopped by the user]", interrupted: "aborted" },
			{ role: "assistant", text: "", interrupted: "failed" },
		);
		expect(made).toMatchObject([
			{ role: "assistant", stopReason: "stop", content: [{ text: "half an\n[stopped by the user]" }] },
		]);
	});

	test("a request that does not end with the user is refused", () => {
		const invalid = expect.objectContaining({ code: "invalid" });
		expect(() => toPiContext(ask("", { messages: [] }), 0)).toThrow(invalid);
		expect(() => toPiContext(ask("", { messages: [{ role: "assistant", text: "x" }] }), 0)).toThrow(invalid);
	});
});
