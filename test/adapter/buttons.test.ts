/** Questions with buttons, the same on every platform that has them: asked once, pressed by the person that the platform names, settled for good. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Press } from "../../packages/adapter/src/kit.ts";
import { buttonData, readButton, rowsOf } from "../../packages/adapter/src/platform/buttons.ts";
import type { InboundChoice } from "../../packages/adapter/src/port.ts";
import { createDiscordFake } from "../../packages/lab/src/discord/discord.ts";
import type { Fake } from "../../packages/lab/src/fake.ts";
import { createSlackFake, PATIENT, type SlackFake } from "../../packages/lab/src/slack/slack.ts";
import { createTelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import type { Channel } from "../../packages/platforms/src/channels.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { until } from "../until.ts";
import { loadPlatform } from "./platform.ts";
import { type OpenSession, openSession, sendOptions } from "./session.ts";

const QUESTION = {
	id: "K7Q2",
	choices: [
		{ id: "approve", label: "Approve" },
		{ id: "deny", label: "Deny", danger: true },
	],
};

interface World {
	fake: Fake & Required<Pick<Fake, "buttons" | "press">>;
	settings: Record<string, string>;
	to: string;
	/** The presser and the chat, as the platform reports them. */
	from: string;
	chat: InboundChoice["chat"];
	/** The note that only the presser of the n-th press reads. */
	note(nth: number): Promise<string>;
}

const WORLDS: Record<string, () => Promise<World>> = {
	async telegram() {
		const fake = await createTelegramFake();
		const note = async (nth: number) => {
			const answers = () => fake.calls.filter(({ name }) => name === "answerCallbackQuery");
			await until("the press is answered", () => answers().length > nth);
			return String((answers()[nth]!.body as { text?: string }).text);
		};
		const settings = { token: fake.token, api_url: fake.url };
		return { fake, settings, to: "-100", from: "77", chat: { id: "-100", type: "group" }, note };
	},
	async slack() {
		const fake = await createSlackFake(PATIENT);
		const note = async () => {
			const told = () => fake.calls.filter(({ name }) => name === "chat.postEphemeral");
			await until("the presser has a note", () => told().length > 0);
			const { user, text } = told().at(-1)!.body as { user: string; text: string };
			return `${user === "U77" ? "" : "another user reads: "}${text}`;
		};
		return { fake, settings: fake.settings, to: "C1", from: "U77", chat: { id: "C1", type: "group" }, note };
	},
	async discord() {
		const fake = await createDiscordFake();
		const note = async (nth: number) => {
			await until("the presser has a note", () => fake.notes(nth).length > 0);
			return fake.notes(nth).join();
		};
		const settings = { token: fake.token, api_url: fake.url };
		return { fake, settings, to: "4200", from: "77", chat: { id: "4200", type: "direct" }, note };
	},
};

describe.each(Object.keys(WORLDS))("%s", (channel) => {
	let world: World;
	let session: OpenSession;
	let stop: AbortController;
	let monitoring: Promise<void> | undefined;
	const heard: InboundChoice[] = [];

	beforeEach(async () => {
		heard.length = 0;
		stop = new AbortController();
		world = await WORLDS[channel]!();
		session = await openSession(await loadPlatform(channel as Channel), world.settings, { clock: systemClock });
	});
	afterEach(async () => {
		stop.abort();
		await monitoring;
		monitoring = undefined;
		await world.fake.close();
	});

	const listen = (note?: string) => {
		monitoring = session.monitor?.(
			async () => {},
			stop.signal,
			async ({ choice, answer }: Press) => {
				heard.push(choice);
				await answer?.(note);
			},
		);
	};
	const ask = (nonce = "n1") =>
		session.create({ to: world.to }, "Run it?", { ...sendOptions(nonce), question: QUESTION });

	it("A9: a question has its buttons, and a second try is the same message", async () => {
		const { messageId } = await ask();
		expect(world.fake.buttons(world.to)).toEqual([["Approve", "Deny"]]);
		expect(world.fake.visible(world.to)).toEqual(["Run it?"]);
		expect(await session.find?.({ to: world.to }, "n1", "Run it?")).toEqual({ messageId });
	});

	it("A13: a press is reported with the presser that the platform names, and the buttons' data names no person", async () => {
		const { messageId } = await ask();
		listen();
		await world.fake.press(world.to, 0, "Deny", world.from);
		await until("the press is received", () => heard.length === 1);
		expect(heard[0]).toMatchObject({ id: "K7Q2", choice: "deny", messageId, chat: world.chat });
		expect(heard[0]?.from.id).toBe(world.from);
		expect(JSON.stringify(world.fake.calls[0]?.body)).toContain(buttonData("K7Q2", "deny"));
	});

	it("A9: each of two presses is reported, and only its presser reads the reply to it", async () => {
		await ask();
		listen("Ada has approved it already.");
		for (const count of [0, 1]) {
			await world.fake.press(world.to, 0, "Approve", world.from);
			expect(await world.note(count)).toBe("Ada has approved it already.");
		}
		expect(new Set(heard.map(({ eventId }) => eventId)).size).toBe(2);
		expect(world.fake.visible(world.to)).toEqual(["Run it?"]);
	});

	it("A14: settling takes the buttons away and says what was decided, once and again", async () => {
		const { messageId } = await ask();
		for (const nonce of ["s1", "s1"])
			await session.settle?.({ to: world.to }, messageId, "Approved by Ada.", sendOptions(nonce));
		expect(world.fake.visible(world.to)).toEqual(["Approved by Ada."]);
		expect(world.fake.buttons(world.to)).toEqual([[]]);
		await expect(world.fake.press(world.to, 0, "Approve")).rejects.toThrow("there is no button");
	});

	it("takes as many buttons as it declares, with labels and ids as long as may be", async () => {
		const { info } = await loadPlatform(channel as Channel);
		const { choicesMax = 0, labelCharsMax = 0 } = info.limits;
		const choices = Array.from({ length: choicesMax }, (_, n) => ({
			id: `${n}`.padStart(24, "c"),
			label: `${n}`.padStart(labelCharsMax, "ö"),
		}));
		await session.create({ to: world.to }, "Which?", { ...sendOptions(), question: { id: "q".repeat(32), choices } });
		expect(world.fake.buttons(world.to)[0]).toHaveLength(choicesMax);
	});
});

describe("Slack's webhook", () => {
	const opened = async (fake: SlackFake) => {
		const session = await openSession(await loadPlatform("slack"), { ...fake.settings, app_token: "" });
		await session.create({ to: "C1" }, "Run it?", { ...sendOptions(), question: QUESTION });
		return session;
	};

	it("A9: a signed form tells of a press; a forged one is refused", async () => {
		const fake = await createSlackFake(PATIENT);
		const session = await opened(fake);
		const post = (options: { secret?: string }) => {
			const request = fake.signed(fake.pressed("C1", 0, "Approve", "U77"), { form: true, ...options });
			return session.webhook?.({ method: "POST", query: new URLSearchParams(), ...request });
		};
		const answer = await post({});
		expect(answer).toMatchObject({ status: 200, messages: [] });
		expect(answer?.presses?.[0]?.choice).toMatchObject({ id: "K7Q2", choice: "approve", from: { id: "U77" } });
		expect(await post({ secret: "forged" })).toMatchObject({ status: 401, messages: [] });
		await fake.close();
	});
});

describe("what a button carries", () => {
	it("fits Telegram's 64 bytes, and only what we made is read", () => {
		expect(Buffer.byteLength(buttonData("q".repeat(32), "c".repeat(24)))).toBeLessThanOrEqual(64);
		expect(readButton(buttonData("K7Q2", "approve"))).toEqual({ id: "K7Q2", choice: "approve" });
		const forged = ["", "nx1:", "nx1:a", "nx1:a:b:c", "nx2:a:b", "nx1:a b:c", `nx1:${"q".repeat(33)}:c`, undefined, 7];
		expect(forged.map(readButton)).toEqual(forged.map(() => undefined));
	});

	it("rows lose no button", () => {
		expect(rowsOf([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
		expect(rowsOf([], 2)).toEqual([]);
	});
});
