/** An answer with reasoning, a picture, a card and a sound on every platform's fake, through the bundled adapters. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Delivery } from "../../../packages/daemon/src/ledger/deliveries/port.ts";
import { seeded } from "../../../packages/lab/src/fake.ts";
import {
	CHANNELS,
	type Channel,
	channelsConfig,
	type FakePlatform,
	startPlatforms,
} from "../../proof/fake-platforms.ts";
import { seed } from "../../seed.ts";
import { fastTime } from "../../time/time.ts";
import { until } from "../../until.ts";
import { beginRun, createRigWith, type Rig, strike } from "./rig.ts";

const TIME = fastTime(10);

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const CARD = JSON.stringify({ title: "Kettle", price: "34.00", url: "https://a.example/1" });

let rig: Rig;
let platforms: FakePlatform[];
let rows: Map<Channel, Delivery>;
const underFire = new Map<Channel, Delivery>();
const strikes = new Map<Channel, number>();
const random = seeded(seed);

async function answer(): Promise<string> {
	const run = await beginRun(rig.bus, `s${Math.random()}`);
	run.say({ type: "tool_status", toolName: "Draw", toolCallId: "t1", status: "started" });
	run.say({ type: "reasoning", text: "Let me see." });
	run.text("Here is a picture:");
	run.part("image", "image/png", PNG);
	run.text("And a card.");
	run.part("card", "application/json", CARD);
	run.say({ type: "tool_status", toolName: "Speak", toolCallId: "t2", status: "started" });
	run.part("audio", "audio/mpeg", PNG);
	run.text("That is all.");
	await run.end();
	return run.runId;
}

async function deliverTo(of: readonly FakePlatform[], chat: number): Promise<Map<Channel, Delivery>> {
	const done = of.map(async ({ channel, target }): Promise<[Channel, Delivery]> => {
		const account = { channel, id: "main" };
		const { id } = await rig.outbound.deliver({ runId: await answer(), account, target: target(chat) });
		return [channel, await rig.outbound.settled(id)];
	});
	return new Map(await Promise.all(done));
}

/** Kills what delivers to a platform when it has made so many calls, twice; resolves with how often it was there to be killed. */
async function strikeAtCalls({ channel, fake }: FakePlatform, isOver: () => boolean): Promise<number> {
	const before = fake.calls.length;
	let strikes = 0;
	for (const least of [1, 4]) {
		const count = least + Math.floor(random() * 3);
		await until(`call ${count} on ${channel}`, () => isOver() || fake.calls.length >= before + count);
		if (isOver()) break;
		const account = rig.outbound.accounts().find((each) => each.channel === channel);
		for (const each of [account?.processes.send, account?.processes.stream]) {
			if (each?.pid === undefined) continue;
			strike(each.pid);
			strikes++;
		}
	}
	return strikes;
}

async function deliverUnderFire(of: readonly FakePlatform[], chat: number): Promise<void> {
	const over = new Set<Channel>();
	const context = of.map(async (platform) => {
		const [delivered] = await deliverTo([platform], chat);
		over.add(platform.channel);
		if (delivered) underFire.set(...delivered);
	});
	const striking = of.map(async (platform) => {
		strikes.set(platform.channel, await strikeAtCalls(platform, () => over.has(platform.channel)));
	});
	await Promise.all([...context, ...striking]);
}

beforeAll(async () => {
	platforms = await startPlatforms(CHANNELS, TIME);
	const config = Object.entries(channelsConfig(platforms, TIME)).map(([channel, each]) => [
		channel,
		{ ...each, streaming: { reasoning: true } },
	]);
	rig = createRigWith(() => Object.fromEntries(config));
	rows = await deliverTo(platforms, 1);
});

beforeAll(async () => {
	// The others cannot tell what became of a call that was under way.
	await deliverUnderFire(
		platforms.filter(({ tells }) => tells),
		2,
	);
});

afterAll(async () => {
	await rig?.close();
	await Promise.all((platforms ?? []).map(({ fake }) => fake.close()));
});

/** Files by their names, as the fakes keep them in one way or another. */
const FILE = /(?:image|audio)-\d+\.(?:png|mp3)/;

function shown(channel: Channel, chat: number): string[] {
	const { fake, target } = platforms.find((each) => each.channel === channel)!;
	const texts = fake.visible(target(chat).to);
	const raw = fake.raw(target(chat).to).filter((each) => JSON.stringify(each).includes('fromMe":false') === false);
	return texts.map((text, n) =>
		FILE.test(text) || text !== "" ? text : (FILE.exec(JSON.stringify(raw[n]))?.[0] ?? ""),
	);
}

const FILES = [/^\[?image-\d+\.png\]?$/, /^\[?audio-\d+\.mp3\]?$/];
const [IMAGE, AUDIO] = FILES;
const ORDER: Record<Exclude<Channel, "gmail">, RegExp[]> = {
	discord: [/^> \*Thinking\* *\n> Let me see\.$/, /^Here/, IMAGE!, /^And/, /Kettle.*34\.00/, AUDIO!, /^That is all\.$/],
	telegram: [/^Thinking\nLet me see\.$/, /^Here/, IMAGE!, /^And/, /^Kettle - 34\.00$/, AUDIO!, /^That is all\.$/],
	slack: [/^> _Thinking_\n> Let me see\.$/, /^Here/, IMAGE!, /^And/, /Kettle.*34\.00/, AUDIO!, /^That is all\.$/],
	whatsapp: [/^> _Thinking_\n> Let/, /^Here/, IMAGE!, /^And/, /Kettle \(https:.*34\.00/, AUDIO!, /^That is all\.$/],
	sms: [
		/^> Thinking\n> Let/,
		/^Here/,
		/^\[image: image-\d+\.png\]$/,
		/^And/,
		/Kettle.*34/,
		/^\[audio: .*mp3\]$/,
		/^That/,
	],
	signal: [/^> Thinking\n> Let/, /^Here/, IMAGE!, /^And/, /Kettle.*34\.00/, AUDIO!, /^That is all\.$/],
	imessage: [/^> Thinking\n> Let/, /^Here/, IMAGE!, /^And/, /Kettle.*34\.00/, AUDIO!, /^That is all\.$/],
	nostr: [
		/^> Thinking\n> Let/,
		/^Here/,
		/^\[image: image-\d+\.png\]$/,
		/^And/,
		/Kettle.*34/,
		/^\[audio: .*mp3\]$/,
		/^That/,
	],
};

describe("attachments on every platform", () => {
	const expectOrder = (channel: Exclude<Channel, "gmail">, texts: readonly string[]) => {
		expect(texts, JSON.stringify(texts)).toHaveLength(7);
		for (const [n, text] of texts.entries()) expect(text).toMatch(ORDER[channel][n]!);
	};

	it.each(CHANNELS.filter((channel) => channel !== "gmail"))("%s: each in its place, in its dialect", (channel) => {
		expect(rows.get(channel)).toMatchObject({ state: "complete", cursor: 41 });
		expectOrder(channel, shown(channel, 1));
	});

	it.each(["discord", "slack", "sms", "imessage", "nostr"] as const)(
		"I7: %s, adapters killed: each once",
		(channel) => {
			expect(strikes.get(channel)).toBeGreaterThan(0);
			expect(underFire.get(channel)).toMatchObject({ state: "complete", cursor: 41 });
			expectOrder(channel, shown(channel, 2));
		},
	);

	it.each([1, 2])("gmail: one mail with everything (chat %i)", (chat) => {
		expect((chat === 1 ? rows : underFire).get("gmail")).toMatchObject({ state: "complete", cursor: 41 });
		const { fake, target } = platforms.find(({ channel }) => channel === "gmail")!;
		const [mail, ...more] = fake.raw(target(chat).to) as { raw: Buffer }[];
		expect(more).toEqual([]);
		const text = mail!.raw.toString();
		expect(text).toMatch(/Thinking[\s\S]*Let me see\.[\s\S]*Kettle[\s\S]*That is all\./);
		expect(text).toMatch(/filename="?image-\d+\.png/);
		expect(text).toMatch(/filename="?audio-\d+\.mp3/);
		expect(text.replace(/\s/g, "")).toContain(PNG);
	});
});
