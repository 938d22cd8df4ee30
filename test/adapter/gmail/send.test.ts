import { afterEach, beforeEach, expect, test } from "vitest";
import { createGmailFake, type GmailFake } from "../../../packages/lab/src/gmail.ts";
import { deliverBlocks, diesAtEachMoment } from "../blocks.ts";
import { TIME } from "../process.ts";

const TO = "ann@example.com";
const ANSWERS = ["# First answer\n\nIt is **long**. ", "ok", "ok"];

let fake: GmailFake;

beforeEach(async () => {
	fake = await createGmailFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

test("I7: killed before, while and after a mail is sent, every mail arrives once and in order", async () => {
	const dies = diesAtEachMoment(() => fake.visible(TO));
	const target = { to: TO, subject: "News" };
	const { deaths } = await deliverBlocks({ channel: "gmail", settings: fake.settings, target, blocks: ANSWERS, dies });
	expect(deaths).toBe(4);
	expect(fake.visible(TO)).toEqual(ANSWERS.map((text) => text.trimEnd()));
});
