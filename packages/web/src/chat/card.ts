/** Reads the JSON of cards and carousels: every field is checked, nothing unknown is trusted. */

import { imageUrl, linkUrl } from "../ui/safe-url.ts";

export interface CardData {
	readonly title: string;
	readonly subtitle?: string;
	readonly price?: string;
	readonly description?: string;
	/** An address that is safe to show. */
	readonly image?: string;
	readonly url?: string;
}

const CARDS_MAX = 50;

export function readCard(payload: string): CardData | undefined {
	return cardOf(readJson(payload));
}

/** `{items: […]}`, `{cards: […]}` or a plain list. */
export function readCarousel(payload: string): CardData[] | undefined {
	const value = readJson(payload);
	const list = Array.isArray(value) ? value : isRecord(value) ? (value.items ?? value.cards) : undefined;
	if (!Array.isArray(list)) return undefined;
	const cards = list.slice(0, CARDS_MAX).flatMap((item) => cardOf(item) ?? []);
	return cards.length === 0 ? undefined : cards;
}

function cardOf(value: unknown): CardData | undefined {
	if (!isRecord(value)) return undefined;
	const title = text(value.title) ?? text(value.name);
	if (title === undefined) return undefined;
	const fields = {
		subtitle: text(value.subtitle),
		price: text(value.price),
		description: text(value.description) ?? text(value.text),
		image: typeof value.image === "string" ? imageUrl(value.image) : undefined,
		url: typeof value.url === "string" ? linkUrl(value.url) : undefined,
	};
	const known = Object.entries(fields).filter(([, field]) => field !== undefined);
	return { title, ...Object.fromEntries(known) };
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

function text(value: unknown): string | undefined {
	if (typeof value === "number") return String(value);
	return typeof value === "string" && value !== "" ? value : undefined;
}

function readJson(payload: string): unknown {
	try {
		return JSON.parse(payload);
	} catch {
		// Not JSON: the caller shows the payload as it is.
		return undefined;
	}
}
