/** Adapters that send finished messages, as processes: killed at every moment of a send, each message arrives once and in order. */

import { afterEach, expect, test } from "vitest";
import type { Target } from "../../packages/adapter/src/port.ts";
import type { Fake } from "../../packages/lab/src/fake.ts";
import { createGmailFake } from "../../packages/lab/src/gmail.ts";
import { createIMessageFake, type IMessageFake } from "../../packages/lab/src/imessage/imessage.ts";
import { createSmsFake } from "../../packages/lab/src/sms.ts";
import { deliverBlocks, diesAtEachMoment } from "./blocks.ts";
import { letters, type Settings, TIME } from "./process.ts";

const { clock } = TIME;
const BLOCKS = ["First part.", "ok", "ok", "Last part, with € and 🙂."];
const NUMBER = "+15551230001";

interface Place {
	channel: string;
	fake: Fake;
	settings: Settings;
	target: Target;
	blocks?: readonly string[];
}

let fake: Fake;
afterEach(() => fake.close());

async function imessage(backend: string): Promise<Place & { fake: IMessageFake }> {
	const mac = await createIMessageFake({ clock });
	fake = mac;
	// A chat that is written to has begun.
	await mac.inject({ text: "hello" });
	const settings = { ...mac.settings, backend, imsg_command: mac.imsgCommand };
	return { channel: "imessage", fake: mac, settings, target: { to: `iMessage;-;${NUMBER}`, chat_id: 7 } };
}

const PLACES: Record<string, () => Promise<Place>> = {
	async gmail() {
		fake = await createGmailFake({ clock });
		const target = { to: "ann@example.com", subject: "News" };
		const blocks = ["# First answer\n\nIt is **long**. ", "ok", "ok"];
		return { channel: "gmail", fake, settings: fake.settings, target, blocks };
	},
	async sms() {
		fake = await createSmsFake({ clock });
		return { channel: "sms", fake, settings: fake.settings, target: { to: NUMBER } };
	},
	bluebubbles: () => imessage("bluebubbles"),
	imsg: () => imessage("imsg"),
};

test.each(Object.keys(PLACES))("I7: %s: killed before, while and after a message is sent", async (name) => {
	const { blocks = BLOCKS, ...place } = await PLACES[name]!();
	const visible = () => fake.visible(place.target.to);
	const { deaths } = await deliverBlocks({ ...place, blocks, dies: diesAtEachMoment(visible) });
	expect(deaths).toBe(4);
	expect(visible()).toEqual(blocks.map((text) => text.trimEnd()));
});

test.each([
	["bluebubbles", ["reset_after_accept", "5xx"], "message/text"],
	["imsg", ["reset_after_accept", "reset_before"], "send"],
] as const)("I7: %s: through broken connections", async (backend, kinds, call) => {
	const place = await imessage(backend);
	for (const kind of kinds) fake.fault({ kind, count: 1, call });
	await deliverBlocks({ ...place, blocks: BLOCKS });
	expect(fake.visible(place.target.to)).toEqual(BLOCKS);
});

test("sms: a long text is cut within the limit", async () => {
	const place = await PLACES.sms!();
	const text = "A sentence of some length, and one more. ".repeat(100);
	await deliverBlocks({ ...place, blocks: [text] });
	const shown = fake.visible(NUMBER);
	expect(shown.length).toBeGreaterThan(1);
	expect(shown.every((each) => each.length <= 1600)).toBe(true);
	expect(letters(shown.join(""))).toBe(letters(text));
});
