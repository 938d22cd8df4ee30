import { afterEach, beforeEach, expect, test } from "vitest";
import { createSmsFake, type SmsFake } from "../../../packages/lab/src/sms.ts";
import { deliverBlocks, diesAtEachMoment } from "../blocks.ts";
import { TIME } from "../process.ts";

const TO = "+15551230001";
const BLOCKS = ["First part.", "ok", "ok", "Last part, with € and 🙂."];

let fake: SmsFake;

beforeEach(async () => {
	fake = await createSmsFake({ clock: TIME.clock });
});
afterEach(() => fake.close());

const wish = () => ({ channel: "sms", settings: fake.settings, target: { to: TO }, blocks: BLOCKS });

test("I7: killed before, while and after a block is sent, every block arrives once and in order", async () => {
	const dies = diesAtEachMoment(() => fake.visible(TO));
	const { deaths } = await deliverBlocks({ ...wish(), dies });
	expect(deaths).toBe(4);
	expect(fake.visible(TO)).toEqual(BLOCKS);
});

test("a long text is cut within the limit", async () => {
	const text = "A sentence of some length, and one more. ".repeat(100);
	await deliverBlocks({ ...wish(), blocks: [text] });
	expect(fake.visible(TO).length).toBeGreaterThan(1);
	expect(fake.visible(TO).every((each) => each.length <= 1600)).toBe(true);
	expect(fake.visible(TO).join("").replace(/\s/g, "")).toBe(text.replace(/\s/g, ""));
});
