/** All fake platforms as places that answers are delivered to, and what the proof has to know about each. */

import type { Target } from "../../packages/adapter/src/port.ts";
import { createDiscordFake } from "../../packages/lab/src/discord/discord.ts";
import type { Fake } from "../../packages/lab/src/fake.ts";
import { createGmailFake } from "../../packages/lab/src/gmail.ts";
import { BLUEBUBBLES_PASSWORD, createIMessageFake } from "../../packages/lab/src/imessage/imessage.ts";
import { createNostrFake, person } from "../../packages/lab/src/nostr.ts";
import { createSignalFake, SIGNAL_NUMBER } from "../../packages/lab/src/signal.ts";
import { createSlackFake } from "../../packages/lab/src/slack/slack.ts";
import { createSmsFake, TWILIO_NUMBER, TWILIO_SID, TWILIO_TOKEN } from "../../packages/lab/src/sms.ts";
import { createTelegramFake } from "../../packages/lab/src/telegram/telegram.ts";
import { createWhatsAppFake, type WebhookCall, type WhatsAppFake } from "../../packages/lab/src/whatsapp.ts";
import type { Clock } from "../../packages/protocol/src/clock.ts";
import { timedAdapter } from "../children.ts";
import { REAL_TIME, type TestTime } from "../time/time.ts";

export const CHANNELS = [
	"discord",
	"telegram",
	"slack",
	"whatsapp",
	"sms",
	"signal",
	"imessage",
	"gmail",
	"nostr",
] as const;
export type Channel = (typeof CHANNELS)[number];

export interface FakePlatform {
	channel: Channel;
	fake: Fake;
	/** When the fake started: its calls count from there. */
	begun: number;
	settings: Record<string, string>;
	/** A separate chat for every `n`; the person in it has written before. */
	target(n: number): Target;
	/** The call that makes a message, for `fault({call})`. */
	creates: readonly RegExp[];
	/** Other calls that a delivery makes. */
	others: readonly RegExp[];
	/**
	 * Whether the platform can always tell what became of a creation. Bots on Telegram and signal-cli cannot read what they sent; WhatsApp says it by
	 * webhook, and says nothing of messages that it never got.
	 */
	tells: boolean;
	/** About how long an answer of the proof is: platforms in blocks take one message a second. */
	sentences: number;
}

type Start = (clock: Clock) => Promise<Omit<FakePlatform, "channel" | "begun">>;

const number = (n: number): string => `+1555123${String(1000 + n)}`;

/** Quick paces where the platform's own would make minutes of a proof: the number of calls is what matters here, not their speed. */
const STARTS: Record<Channel, Start> = {
	async discord(clock) {
		const fake = await createDiscordFake({ createRate: [50, 1000], editRate: [50, 1000], clock });
		return {
			fake,
			settings: { token: fake.token, api_url: fake.url },
			target: (n) => ({ to: String(7700 + n) }),
			creates: [/^POST messages/],
			others: [/^PATCH messages/, /^GET messages/],
			tells: true,
			sentences: 80,
		};
	},
	async telegram(clock) {
		const fake = await createTelegramFake({ privateRate: [100, 100], accountRate: [100, 10], clock });
		return {
			fake,
			settings: { token: fake.token, api_url: fake.url },
			target: (n) => ({ to: String(4200 + n), direct: true }),
			creates: [/^sendMessage$/],
			others: [/^editMessageText$/],
			tells: false,
			sentences: 120,
		};
	},
	async slack(clock) {
		const fake = await createSlackFake({ rate: "off", clock });
		return {
			fake,
			settings: fake.settings,
			// Every other chat is a thread, where the answer is a native stream.
			target: (n) =>
				n % 2 === 0
					? { to: `C${n}` }
					: { to: `C${n}`, thread_id: "1700000000.000100", user_id: "U1", team_id: "TTEAM" },
			creates: [/^chat\.(?:postMessage|startStream)$/],
			others: [/^chat\.(?:update|appendStream|stopStream)$/, /^conversations/],
			tells: true,
			sentences: 120,
		};
	},
	async whatsapp(clock) {
		const fake = await createWhatsAppFake({ pairRate: [1000, 100], accountRate: [1000, 1], clock });
		return {
			fake,
			settings: fake.settings,
			target: (n) => ({ to: String(15_550_001 + n), direct: true }),
			creates: [/^messages$/],
			others: [],
			tells: false,
			sentences: 60,
		};
	},
	async sms(clock) {
		const fake = await createSmsFake({ clock });
		return {
			fake,
			settings: { account_sid: TWILIO_SID, auth_token: TWILIO_TOKEN, from: TWILIO_NUMBER, api_url: fake.url },
			target: (n) => ({ to: number(n), direct: true }),
			creates: [/^messages\.create$/],
			others: [/^messages\.list$/],
			tells: true,
			sentences: 12,
		};
	},
	async signal(clock) {
		const fake = await createSignalFake({ rate: [1000, 10], clock });
		return {
			fake,
			settings: { number: SIGNAL_NUMBER, api_url: fake.url, drafts: "true" },
			target: (n) => ({ to: number(n), direct: true }),
			creates: [/^send$/],
			others: [/^send edit$/],
			tells: false,
			sentences: 80,
		};
	},
	async imessage(clock) {
		const fake = await createIMessageFake({ clock });
		const chat = (n: number) => `iMessage;-;${number(n)}`;
		return {
			fake,
			settings: { api_url: fake.url, password: BLUEBUBBLES_PASSWORD },
			target(n) {
				if (!fake.messages.some((message) => message.chat === chat(n)))
					void fake.inject({ text: "hi", from: number(n) });
				return { to: chat(n), direct: true };
			},
			creates: [/^message\/text$/],
			others: [/^message\/query$/],
			tells: true,
			sentences: 60,
		};
	},
	async gmail(clock) {
		const fake = await createGmailFake({ units: 100_000, clock });
		return {
			fake,
			settings: fake.settings,
			target: (n) => ({ to: `person${n}@example.com`, subject: "News" }),
			creates: [/^messages\.send$/],
			others: [/^messages\.list$/],
			tells: true,
			sentences: 40,
		};
	},
	async nostr(clock) {
		const fake = await createNostrFake({ clock });
		return {
			fake,
			settings: fake.settings,
			// Every other chat is private.
			target: (n) =>
				n % 2 === 0
					? { to: person(`person ${n}`).pubkey, direct: true }
					: { to: `thread:${n.toString(16).padStart(64, "0")}`, direct: false },
			creates: [/^EVENT (?:reply|wrap)$/],
			others: [/^EVENT (?:stream|typing|copy)$/],
			// A second try makes the same event.
			tells: true,
			sentences: 80,
		};
	},
};

/** `time`: of the adapters too, see `channelsConfig`. */
export async function startPlatforms(
	channels: readonly Channel[] = CHANNELS,
	{ clock }: TestTime = REAL_TIME,
): Promise<FakePlatform[]> {
	return await Promise.all(
		channels.map(async (channel) => {
			const started = await STARTS[channel](clock);
			return { channel, begun: started.fake.begun, ...started };
		}),
	);
}

/** How a bundled adapter is run on the time of a test. */
export const adapterOn = (channel: string, { env }: TestTime) => ({ command: timedAdapter(channel), env });

export const channelsConfig = (platforms: readonly FakePlatform[], time: TestTime = REAL_TIME) =>
	Object.fromEntries(
		platforms.map(({ channel, settings }) => {
			const config = { blocks: { humanDelayMs: null }, accounts: { main: { settings } } };
			return [channel, time === REAL_TIME ? config : { ...config, ...adapterOn(channel, time) }];
		}),
	);

/** WhatsApp tells by webhook what became of messages. */
export function listenForStatuses(platforms: readonly FakePlatform[], hook: (call: WebhookCall) => Promise<number>) {
	const found = platforms.find(({ channel }) => channel === "whatsapp");
	if (found) (found.fake as WhatsAppFake).subscribe(hook);
}

/** The messages that a webhook of WhatsApp tells of. */
export const noncesOf = (body: Buffer): string[] =>
	[...body.toString("utf8").matchAll(/"biz_opaque_callback_data":"([^"]+)"/g)].map(([, nonce]) => nonce!);

/** Numbered, so that any loss, repetition or change of order shows. Paragraphs of three. */
export const sentencesOf = (count: number, name: string): string[] =>
	Array.from({ length: count }, (_, n) => `Sentence ${n + 1} of ${name} is here. ${n % 3 === 2 ? "\n\n" : ""}`);

/** Platforms lay white space out as they like, and blocks end with it. */
export const letters = (text: string): string => text.replace(/\s+/g, "");
