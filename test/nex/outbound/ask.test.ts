/** Questions to a chat: a delivery whose message has buttons, or says what to reply; settled where it was asked. */

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { InboundChoice } from "../../../packages/adapter/src/port.ts";
import type { AskRequest } from "../../../packages/daemon/src/nex/port.ts";
import type { FakePlatform } from "../../proof/fake-platforms.ts";
import { channelsConfig, startPlatforms } from "../../proof/fake-platforms.ts";
import { fastTime } from "../../time/time.ts";
import { until } from "../../until.ts";
import { createRigWith, onlyMessages, type Rig } from "./rig.ts";

const TIME = fastTime(10);
const CHOICES = [
	{ id: "approve", label: "Approve", reply: "approve K7Q2" },
	{ id: "deny", label: "Deny", reply: "deny K7Q2", danger: true },
];

let telegram: FakePlatform;
let sms: FakePlatform;
let rig: Rig;

beforeEach(async () => {
	const platforms = await startPlatforms(["telegram", "sms"], TIME);
	[telegram, sms] = platforms as [FakePlatform, FakePlatform];
	rig = createRigWith(() => channelsConfig(platforms, TIME));
});
afterEach(async () => {
	await rig.close();
	await Promise.all([telegram, sms].map(({ fake }) => fake.close()));
});

const request = ({ channel, target }: FakePlatform, more: Partial<AskRequest> = {}): AskRequest => ({
	account: { channel, id: "main" },
	target: target(1),
	id: "K7Q2",
	text: "Run `make`?",
	choices: CHOICES,
	...more,
});
const ask = async (platform: FakePlatform, more: Partial<AskRequest> = {}) =>
	rig.outbound.settled((await rig.outbound.ask(request(platform, more))).id);
const shown = ({ fake, target }: FakePlatform) => fake.visible(target(1).to);
const buttons = ({ fake, target }: FakePlatform) => fake.buttons?.(target(1).to);

describe("asking", () => {
	it("A9: with buttons where the platform has them, and what was decided in their place", async () => {
		const row = await ask(telegram);
		expect(row).toMatchObject({ state: "complete", messages: [{ state: "sent" }] });
		expect(buttons(telegram)).toEqual([["Approve", "Deny"]]);
		await Promise.all([1, 2].map(() => rig.outbound.settleQuestion("K7Q2", "Approved by Ada.")));
		expect([shown(telegram), buttons(telegram)]).toEqual([["Approved by Ada."], [[]]]);
	});

	it("A12: in words where it has none, and what was decided as a message, once", async () => {
		await ask(sms);
		expect(shown(sms)).toEqual(["Run make?\n\nReply approve K7Q2 or deny K7Q2."]);
		for (const _count of [1, 2]) await rig.outbound.settleQuestion("K7Q2", "Denied by Ada.");
		await until("the decision is shown", () => shown(sms).length === 2);
		await until("nothing is under way", () => rig.outbound.live === 0);
		expect(shown(sms)[1]).toBe("Denied by Ada.");
	});

	it("A12: more choices than the platform has buttons for are asked in words", async () => {
		const choices = Array.from({ length: 21 }, (_, n) => ({ id: `c${n}`, label: `${n}`, reply: `answer K7Q2 ${n}` }));
		await ask(telegram, { choices });
		expect(buttons(telegram)).toEqual([[]]);
		expect(shown(telegram)[0]).toContain("Reply answer K7Q2 0, answer K7Q2 1");
	});

	it("I7: asked again, also by another process, it is the same message", async () => {
		const first = await ask(telegram);
		const again = await rig.outbound.ask(request(telegram, { text: "Another text" }));
		expect(again.id).toBe(first.id);
		await rig.restart();
		await rig.outbound.start();
		expect((await rig.outbound.ask(request(telegram))).id).toBe(first.id);
		expect(shown(telegram)).toEqual(["Run make?"]);
	});

	it("A14: put to several chats at once, each has it, and each shows the decision", async () => {
		const places = [1, 2, 3].map((n) => request(telegram, { target: telegram.target(n) }));
		const rows = await Promise.all(places.map((each) => rig.outbound.ask(each)));
		await Promise.all(rows.map(({ id }) => rig.outbound.settled(id)));
		await rig.outbound.settleQuestion("K7Q2", "Approved by Ada.");
		for (const n of [1, 2, 3]) expect(telegram.fake.visible(telegram.target(n).to)).toEqual(["Approved by Ada."]);
	});

	it("A13: a text that is longer than a message is shown whole, and its end has the buttons", async () => {
		const text = "All of it is to be read. ".repeat(300);
		await ask(telegram, { text });
		expect(shown(telegram).join(" ").replace(/\s+/g, " ").trim()).toBe(text.trim());
		expect(shown(telegram).length).toBeGreaterThan(1);
		expect(buttons(telegram)?.map(({ length }) => length)).toEqual([
			...shown(telegram)
				.slice(1)
				.map(() => 0),
			2,
		]);
	});

	it("an invalid question is refused before anything is on record", async () => {
		for (const wrong of [{ id: "not an id" }, { choices: [] }, { text: " " }, { id: "x".repeat(33) }])
			await expect(rig.outbound.ask(request(telegram, wrong))).rejects.toMatchObject({ code: "invalid" });
		expect(await rig.outbound.deliveries({ limit: 10 })).toEqual([]);
	});

	it("A14: the outcome of a question that was not asked is not sent", async () => {
		await rig.outbound.settleQuestion("never", "Approved by Ada.");
		expect([...shown(telegram), ...shown(sms)]).toEqual([]);
	});

	it("I7: a question whose call broke is there once", async () => {
		telegram.fake.fault({ kind: "reset_before", call: "sendMessage", count: 1 });
		telegram.fake.fault({ kind: "429", call: "sendMessage", count: 1, ms: 1000 });
		const { state } = await ask(telegram);
		// Bots cannot read a chat: a call that broke is in doubt, and is not repeated.
		expect(state === "complete" ? shown(telegram).length : shown(telegram).length + 1).toBe(1);
	});
});

describe("pressing", () => {
	const press = (label: string) => telegram.fake.press?.(telegram.target(1).to, 0, label, "77");

	it("A9: the daemon learns who pressed which button, and answers only them", async () => {
		const heard: InboundChoice[] = [];
		await ask(telegram);
		const onChoice = async (choice: InboundChoice) => {
			heard.push(choice);
			return "Noted.";
		};
		rig.outbound.monitor("telegram", "main", { ...onlyMessages(), onChoice });
		expect(await press("Approve")).toBe("Noted.");
		expect(heard).toMatchObject([{ id: "K7Q2", choice: "approve", from: { id: "77" } }]);
	});

	it("a press that cannot be taken in is answered all the same", async () => {
		await ask(telegram);
		const onChoice = () => Promise.reject(new Error("the store is full"));
		rig.outbound.monitor("telegram", "main", { ...onlyMessages(), onChoice });
		expect(await press("Deny")).toContain("Press it again");
	});
});
