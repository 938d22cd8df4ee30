import { afterEach, beforeEach, expect, test } from "vitest";
import { createIMessageFake, type IMessageFake } from "../../../packages/lab/src/imessage/imessage.ts";
import { deliverBlocks, diesAtEachMoment } from "../blocks.ts";
import { TIME } from "../process.ts";

const CHAT = "iMessage;-;+15551230001";
const BLOCKS = ["First part.", "ok", "ok", "Last part, with 🙂."];

let fake: IMessageFake;

beforeEach(async () => {
	fake = await createIMessageFake({ clock: TIME.clock });
	// A chat that is written to has begun.
	await fake.inject({ text: "hello" });
});
afterEach(() => fake.close());

const wish = (backend: string) => ({
	channel: "imessage",
	settings: { ...fake.settings, backend, imsg_command: fake.imsgCommand },
	target: { to: CHAT, chat_id: 7 },
	blocks: BLOCKS,
});

test.each(["bluebubbles", "imsg"])(
	"I7: %s: killed before, while and after a block is sent, every block arrives once and in order",
	async (backend) => {
		const dies = diesAtEachMoment(() => fake.visible(CHAT));
		const { deaths } = await deliverBlocks({ ...wish(backend), dies });
		expect(deaths).toBe(4);
		expect(fake.visible(CHAT)).toEqual(BLOCKS);
	},
);

test.each([
	["bluebubbles", ["reset_after_accept", "5xx"], "message/text"],
	["imsg", ["reset_after_accept", "reset_before"], "send"],
] as const)(
	"I7: %s: through broken connections every block arrives once and in order",
	async (backend, kinds, call) => {
		for (const kind of kinds) fake.fault({ kind, count: 1, call });
		await deliverBlocks(wish(backend));
		expect(fake.visible(CHAT)).toEqual(BLOCKS);
	},
);
