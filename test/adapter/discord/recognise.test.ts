import type { APIMessage } from "discord-api-types/v10";
import { expect, test } from "vitest";
import { NONCE_TRUSTED_MS, recognise } from "../../../packages/platforms/src/discord/recognise.ts";

const NOW = 1_800_000_000_000;
const idAt = (time: number): string => String(BigInt(time - 1_420_070_400_000) << 22n);

const message = (content: string, ageMs: number, extra: object = {}): APIMessage =>
	({ id: idAt(NOW - ageMs), content, author: { id: "me" }, attachments: [], ...extra }) as unknown as APIMessage;

const OLD = NONCE_TRUSTED_MS + 1000;
const find = (history: APIMessage[], text: string, since?: string) =>
	recognise(history, { me: "me", nonce: "n", text, since }, NOW)?.message.content;

test("an old message of ours that shows the beginning of the text is found", () => {
	expect(find([message("Hello wo", OLD)], "Hello world")).toBe("Hello wo");
	expect(find([message("```ts\nlet a\n```", OLD)], "```ts\nlet a = 1\n```")).toBe("```ts\nlet a\n```");
});

test("a young one has to be confirmed, unless Discord says its nonce", () => {
	const certain = (found: APIMessage) =>
		recognise([found], { me: "me", nonce: "n", text: "Hello world" }, NOW)?.certain;
	expect(certain(message("Hello wo", 1000))).toBe(false);
	expect(certain(message("Hello wo", OLD))).toBe(true);
	expect(certain(message("Hello wo", 1000, { nonce: "n" }))).toBe(true);
});

test.each([
	["another person's", message("Hello", OLD, { author: { id: "you" } })],
	["another text", message("Good day", OLD)],
	["an empty one", message("", OLD)],
])("%s is not", (_, candidate) => {
	expect(find([candidate], "Hello world")).toBeUndefined();
});

test("one from before the question is not", () => {
	const earlier = message("Hello", OLD + 5000);
	const question = idAt(NOW - OLD - 2000);
	expect(find([earlier], "Hello world", question)).toBeUndefined();
	expect(find([message("Hello w", OLD), earlier], "Hello world", question)).toBe("Hello w");
});

test("a file is recognised by its name", () => {
	const sent = message("", OLD, { attachments: [{ filename: "a.txt" }] });
	expect(find([sent], "a.txt")).toBe("");
	expect(find([sent], "b.txt")).toBeUndefined();
});
