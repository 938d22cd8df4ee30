/** The lab's platforms: a fake of each, an account on it, and the chat that the lab looks at. */

import type { Fake } from "./fake.ts";

/** How a text is to be read: as it stands, as markdown, with `*marks*`, or with the ranges that come with it. */
export type TextStyle = "plain" | "markdown" | "marks" | "ranges";

export interface Range {
	type: string;
	offset: number;
	length: number;
	url?: string;
}

export interface Bubble {
	text: string;
	style: TextStyle;
	ranges?: Range[];
	/** Names of what is attached. */
	files?: string[];
	buttons?: string[];
}

export interface Place {
	fake: Fake;
	settings: Fake["settings"];
	target: { to: string; [extra: string]: unknown };
	bubbles(): Bubble[];
	/** The preview that stands below the messages, on platforms that have one. */
	draft?(): string | undefined;
	/** How long the platform shows one sign of typing. */
	typingMs?: number;
}

/** Loaded one by one: a platform that cannot be started is left out. */
export const STARTS: Record<string, () => Promise<Place>> = {
	async telegram() {
		const { createTelegramFake } = await import("./telegram/telegram.ts");
		const fake = await createTelegramFake();
		const to = "42";
		return {
			fake,
			settings: fake.settings,
			target: { to, direct: true },
			typingMs: 5000,
			bubbles: () =>
				fake.raw(to).map(({ text, entities, file, buttons }) => ({
					text,
					style: "ranges",
					ranges: entities,
					...labelled(buttons.map((button) => button.text)),
					...named(file),
				})),
			draft: () => fake.draft(to),
		};
	},
	async discord() {
		const { createDiscordFake } = await import("./discord/discord.ts");
		const fake = await createDiscordFake();
		return {
			fake,
			settings: fake.settings,
			target: { to: "77" },
			typingMs: 10_000,
			bubbles: () =>
				fake.raw("77").map(({ content, attachments }, n) => ({
					text: content,
					style: "markdown",
					...labelled(fake.buttons("77")[n] ?? []),
					...named(...attachments.map(({ filename }) => ({ name: filename }))),
				})),
		};
	},
	async slack() {
		const { createSlackFake } = await import("./slack/slack.ts");
		const { BOT, readable } = await import("./slack/store.ts");
		const fake = await createSlackFake();
		const target = { to: "C1", thread_id: "1700000000.000100", user_id: "U1", team_id: BOT.team };
		return {
			fake,
			settings: fake.settings,
			target,
			typingMs: 120_000,
			bubbles: () =>
				fake
					.raw("C1")
					.filter(({ user }) => user === BOT.user)
					.map((message) => ({
						text: readable({ ...message, files: [] }),
						style: message.markdown ? "markdown" : "marks",
						...labelled(message.buttons.map(({ label }) => label)),
						...named(...message.files),
					})),
		};
	},
	async whatsapp() {
		const { createWhatsAppFake } = await import("./whatsapp.ts");
		const fake = await createWhatsAppFake();
		const to = "15550001";
		// Typing is shown as the answer to a message.
		const target = { to, direct: true, reply_to: "wamid.lab" };
		return {
			fake,
			settings: fake.settings,
			target,
			typingMs: 25_000,
			bubbles: () => fake.raw(to).map(({ text, media }) => ({ text, style: "marks", ...named(media) })),
		};
	},
	async imessage() {
		const { createIMessageFake } = await import("./imessage/imessage.ts");
		const fake = await createIMessageFake();
		const to = "iMessage;-;+15551230001";
		return {
			fake,
			settings: fake.settings,
			target: { to, direct: true },
			bubbles: () => fake.raw(to).map(({ text, file }) => ({ text, style: "plain", ...named(file) })),
		};
	},
	async signal() {
		const { createSignalFake } = await import("./signal.ts");
		const fake = await createSignalFake();
		const to = "+15551230001";
		return {
			fake,
			settings: fake.settings,
			target: { to, direct: true },
			typingMs: 15_000,
			bubbles: () => fake.raw(to).map(({ text, file }) => ({ text, style: "plain", ...named(file) })),
		};
	},
	async sms() {
		const { createSmsFake } = await import("./sms.ts");
		const fake = await createSmsFake();
		const to = "+15551230001";
		return { fake, settings: fake.settings, target: { to, direct: true }, bubbles: seen(fake, to, "plain") };
	},
	async gmail() {
		const { createGmailFake } = await import("./gmail.ts");
		const fake = await createGmailFake();
		const to = "ann@example.com";
		const target = { to, subject: "A question" };
		// The readable half of a mail is the markdown that its HTML was made of.
		return {
			fake,
			settings: fake.settings,
			target,
			bubbles: () =>
				fake.raw(to).map(({ mail }) => ({
					text: mail.text?.trimEnd() ?? "",
					style: "markdown",
					...named(...mail.attachments.map(({ filename }) => ({ name: filename ?? "attachment" }))),
				})),
		};
	},
	async nostr() {
		const { createNostrFake } = await import("./nostr.ts");
		const fake = await createNostrFake();
		const to = `thread:${"1".repeat(64)}`;
		return {
			fake,
			settings: fake.settings,
			target: { to, direct: false },
			typingMs: 15_000,
			bubbles: seen(fake, to, "plain"),
			draft: () => fake.draft(to),
		};
	},
};

function named(...files: readonly ({ name: string } | undefined)[]): Pick<Bubble, "files"> {
	const names = files.flatMap((file) => (file ? [file.name] : []));
	return names.length > 0 ? { files: names } : {};
}

const labelled = (buttons: string[]): Pick<Bubble, "buttons"> => (buttons.length > 0 ? { buttons } : {});

const seen = (fake: Fake, to: string, style: TextStyle) => (): Bubble[] =>
	fake.visible(to).map((text) => ({ text, style }));
