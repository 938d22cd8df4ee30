/** A person on each platform writes to the agent and reads its answer there: platform, adapter, daemon, engine and back, with nothing in between left out. */

import { existsSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createDiscordFake } from "../../packages/lab/src/discord/discord.ts";
import type { Fake } from "../../packages/lab/src/fake.ts";
import { createGmailFake } from "../../packages/lab/src/gmail.ts";
import { BLUEBUBBLES_PASSWORD, createIMessageFake } from "../../packages/lab/src/imessage/imessage.ts";
import { createNostrFake, person } from "../../packages/lab/src/nostr.ts";
import { createSignalFake, SIGNAL_NUMBER } from "../../packages/lab/src/signal.ts";
import { createSlackFake } from "../../packages/lab/src/slack/slack.ts";
import { createSmsFake, TWILIO_NUMBER, TWILIO_SID, TWILIO_TOKEN } from "../../packages/lab/src/sms.ts";
import { createTelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { createWhatsAppFake } from "../../packages/lab/src/whatsapp.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { call, type DaemonProcess, daemonIn } from "./daemon.ts";

/** Says what it was asked, in a way that every dialect has to render. */
const ENGINE = `export default {
	name: "parrot",
	async *run({ messages }) {
		const files = (messages.at(-1).attachments ?? []).map(({ name }) => name).join(", ");
		for (const piece of ["You asked: ", "**", messages.at(-1).text, "**", files && " with " + files, ".\\n\\n", "Is 1 < 2 & 3?"]) {
			if (piece) yield { type: "text", delta: piece };
		}
	},
};
`;

interface Platform {
	fake: Fake;
	settings: Record<string, string>;
	/** Where the person reads. */
	chat: string;
	/** Whether it is connected from now on. Absent: messages sent before wait there. */
	isHeard?(): boolean;
	file?: Record<string, unknown>;
}

const folder = mkdtempSync(join(tmpdir(), "nexus-platforms-"));
const platforms: Record<string, Platform> = {};
let daemon: DaemonProcess;

const webhook = (channel: string) => `${daemon.url}/v1/webhooks/${channel}/main`;
const note = { file: Buffer.from("a note"), fileName: "note.txt" };

/** An adapter notes where its listening began. */
function hasNoted(channel: string, key: string): boolean {
	const file = join(folder, "data", "adapters", channel, "main", "state.json");
	return existsSync(file) && readFileSync(file, "utf8").includes(key);
}

async function startFakes(): Promise<void> {
	const telegram = await createTelegramFake();
	const discord = await createDiscordFake();
	const slack = await createSlackFake();
	const whatsapp = await createWhatsAppFake();
	const sms = await createSmsFake({ webhookUrl: webhook("sms") });
	const gmail = await createGmailFake();
	const imessage = await createIMessageFake();
	const signal = await createSignalFake();
	const nostr = await createNostrFake();
	whatsapp.subscribe(webhook("whatsapp"));
	const twilio = { account_sid: TWILIO_SID, auth_token: TWILIO_TOKEN, from: TWILIO_NUMBER };
	Object.assign(platforms, {
		telegram: { fake: telegram, settings: { token: telegram.token, api_url: telegram.url }, chat: "42", file: note },
		discord: {
			fake: discord,
			settings: { token: discord.token, api_url: discord.url },
			chat: "4200",
			file: note,
			isHeard: () => discord.gateway.connections > 0,
		},
		slack: { fake: slack, settings: slack.settings, chat: "D1" },
		whatsapp: { fake: whatsapp, settings: whatsapp.settings, chat: "15550001" },
		sms: { fake: sms, settings: { ...twilio, webhook_url: webhook("sms"), api_url: sms.url }, chat: "+15551230001" },
		gmail: {
			fake: gmail,
			settings: gmail.settings,
			chat: "ann@example.com",
			isHeard: () => hasNoted("gmail", "history_id"),
		},
		imessage: {
			fake: imessage,
			settings: { api_url: imessage.url, password: BLUEBUBBLES_PASSWORD },
			chat: "iMessage;-;+15551230001",
			file: note,
			isHeard: () => hasNoted("imessage", "last_row"),
		},
		signal: {
			fake: signal,
			settings: { number: SIGNAL_NUMBER, api_url: signal.url },
			chat: "+15551230001",
			file: note,
			isHeard: () => signal.listeners > 0,
		},
		nostr: {
			fake: nostr,
			settings: nostr.settings,
			chat: person("ann").pubkey,
			isHeard: () => nostr.connections > 0,
		},
	} satisfies Record<string, Platform>);
}

beforeAll(async () => {
	writeFileSync(join(folder, "parrot.mjs"), ENGINE);
	daemon = await daemonIn(folder, "");
	await startFakes();
	const channels = Object.entries(platforms).map(([channel, { settings }]) => [
		channel,
		{ acl: { unknown: "allow" }, blocks: { humanDelayMs: null }, accounts: { main: { settings } } },
	]);
	const config = { engine: { module: "./parrot.mjs" }, channels: Object.fromEntries(channels), log: { level: "warn" } };
	// Every JSON text is YAML.
	writeFileSync(join(folder, "nexus.yaml"), JSON.stringify(config));
	await daemon.start();
	const listening = async () => {
		const { accounts } = await call<{ accounts: { processes: { monitor?: { state: string } } }[] }>(
			`${daemon.url}/v1/accounts`,
		);
		return accounts.length === 9 && accounts.every(({ processes }) => processes.monitor?.state === "running");
	};
	await until("all adapters run", listening);
	// They listen some time after they have started, and several platforms keep nothing for who comes late.
	const unheard = () => Object.values(platforms).filter(({ isHeard }) => isHeard?.() === false);
	await until("all adapters listen", () => unheard().length === 0);
});

afterAll(async () => {
	await daemon?.stop();
	await Promise.all(Object.values(platforms).map(({ fake }) => fake.close()));
	removeFolder(folder);
});

interface Event {
	event_id: string;
	channel: string;
	text: string;
	disposition: string;
	run_id?: string;
}

/** A webhook is refused while the adapter that checks its signature is still starting; a platform comes again. */
async function write(fake: Fake, message: Parameters<Fake["inject"]>[0]): Promise<void> {
	await until("the message is taken", async () => {
		try {
			await fake.inject(message);
			return true;
		} catch (cause) {
			if (/50[0-9]|200/.test(String(cause))) return false;
			throw cause;
		}
	});
}

const said = ({ fake, chat }: Platform): string => fake.visible(chat).join("\n").replaceAll(/\s+/g, " ");
/** Marks of a dialect, and how it writes what HTML would take as its own. */
const plain = (text: string): string =>
	text
		.replaceAll(/<\/?\w+>|[*_]/g, "")
		.replaceAll("&lt;", "<")
		.replaceAll("&amp;", "&");

describe.concurrent("proof: a person on each platform", () => {
	it.each(["telegram", "discord", "slack", "whatsapp", "sms", "gmail", "imessage", "signal", "nostr"])(
		"I7 I10: asks on %s, reads the answer there, once, and sends a file where there are files",
		async (channel) => {
			const platform = platforms[channel]!;
			const question = `what is a log on ${channel}`;
			await write(platform.fake, { text: question, from: channel === "whatsapp" ? platform.chat : undefined });
			await until(`the answer is on ${channel}`, () => plain(said(platform)).includes("Is 1 < 2 & 3?"));
			const answers = plain(said(platform)).split("You asked:");
			expect(answers).toHaveLength(2);
			// For a mail the agent also reads the subject.
			expect(answers[1]).toMatch(
				new RegExp(`^ ${channel === "gmail" ? "A question " : ""}${question}\\. ?Is 1 < 2 & 3\\?`),
			);

			const { events } = await call<{ events: Event[] }>(`${daemon.url}/v1/events`);
			const event = events.find((each) => each.channel === channel)!;
			expect(event).toMatchObject({ text: expect.stringContaining(question), disposition: "started" });
			const settled = async () => {
				const { deliveries } = await call<{ deliveries: { state: string }[] }>(
					`${daemon.url}/v1/deliveries?run=${event.run_id}`,
				);
				return deliveries.length === 1 && deliveries[0]!.state === "complete";
			};
			await until("the delivery is settled", settled);

			if (!platform.file) return;
			await write(platform.fake, { text: "look at this", ...platform.file });
			await until("the answer names it", () => plain(said(platform)).includes("look at this with note.txt"));
		},
	);
});
