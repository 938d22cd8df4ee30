import { expect, test } from "vitest";
import { createActivity, paceOf } from "../../../packages/platforms/src/slack/pace.ts";

test("one chat is edited 50 times a minute, and grows 100 times a minute as a stream", () => {
	expect(60_000 / paceOf("edit", 1).targetIntervalMs).toBe(50);
	expect(60_000 / paceOf("append", 1).targetIntervalMs).toBe(100);
});

test("chats that are written to at the same time share the workspace's calls", () => {
	const activity = createActivity();
	for (const chat of ["a", "b", "c", "a"]) activity.touch(chat, 1000);
	expect(activity.count("a", 1000)).toBe(3);
	expect(activity.count("d", 1000)).toBe(4);
	expect(paceOf("edit", activity.count("a", 1000)).targetIntervalMs).toBe(3600);
});

test("a chat that rests does not count", () => {
	const activity = createActivity();
	activity.touch("a", 0);
	activity.touch("b", 8000);
	expect(activity.count("b", 9999)).toBe(2);
	expect(activity.count("b", 10_000)).toBe(1);
});
