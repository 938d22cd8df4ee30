/** Cards, carousels, pictures and audio between the text; other modalities are shown as their raw payload. */

import type { PartView } from "@nexus-stream/protocol";
import { useRef } from "preact/hooks";
import { Icon, memo, RoundButton, Scrollable } from "../../ui/element.tsx";
import { imageUrl, linkUrl, mediaUrl } from "../../ui/safe-url.ts";

const RAW_CHARS_MAX = 2000;

export const Part = memo(({ part }: { part: PartView }) => {
	const { modality, contentType, payload } = part;
	if (!part.complete) return <div class="note part-waiting">Receiving {modality}…</div>;
	if (modality === "card") {
		const card = readCard(payload);
		if (card) return <Card card={card} />;
	}
	if (modality === "carousel") {
		const cards = readCarousel(payload);
		if (cards) return <Carousel cards={cards} />;
		const card = readCard(payload);
		if (card) return <Card card={card} />;
	}
	if (modality === "image") {
		const src = mediaUrl(contentType, payload, "image");
		if (src) return <img class="part-image" src={src} alt="Sent by the agent" />;
	}
	if (modality === "audio") {
		const src = mediaUrl(contentType, payload, "audio");
		if (src) return <Sound src={src} />;
	}
	return <Unknown part={part} />;
});

const Sound = ({ src }: { src: string }) => (
	// biome-ignore lint/a11y/useMediaCaption: audio of an agent has no caption track
	<audio class="part-audio" controls preload="metadata" src={src} aria-label="Audio from the agent" />
);

function Card({ card }: { card: CardData }) {
	return (
		<article class="box card">
			{card.image && <img src={card.image} alt="" />}
			<div class="card-body" dir="auto">
				<h4>{card.url ? <CardLink url={card.url} title={card.title} /> : card.title}</h4>
				{card.subtitle && <p class="card-subtitle">{card.subtitle}</p>}
				{card.description && <p>{card.description}</p>}
				{card.price && <p class="card-price">{card.price}</p>}
			</div>
		</article>
	);
}

const CardLink = ({ url, title }: { url: string; title: string }) => (
	<a href={url} target="_blank" rel="noopener noreferrer nofollow">
		{title}
	</a>
);

function Carousel({ cards }: { cards: readonly CardData[] }) {
	const list = useRef<HTMLUListElement>(null);
	const move = (direction: 1 | -1) => {
		const width = list.current?.firstElementChild?.clientWidth ?? 240;
		list.current?.scrollBy({ left: direction * (width + 12) });
	};
	const onKeyDown = (event: KeyboardEvent) => {
		if (event.key !== "ArrowRight" && event.key !== "ArrowLeft") return;
		event.preventDefault();
		move(event.key === "ArrowRight" ? 1 : -1);
	};
	return (
		<section class="carousel" aria-roledescription="carousel" aria-label={`${cards.length} cards`}>
			{/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling box must be reachable by keyboard */}
			<ul ref={list} tabIndex={0} onKeyDown={onKeyDown} aria-label="Cards, scroll with the arrow keys">
				{cards.map((card, index) => (
					<li key={index}>
						<Card card={card} />
					</li>
				))}
			</ul>
			<div class="carousel-buttons">
				<RoundButton label="Previous cards" icon="left" onClick={() => move(-1)} />
				<RoundButton label="Next cards" icon="chevron" onClick={() => move(1)} />
			</div>
		</section>
	);
}

const Unknown = ({ part: { modality, contentType, payload } }: { part: PartView }) => (
	<details class="aside">
		<summary>
			<Icon name="chevron" />
			<code>{modality}</code>
			<span class="cut summary">{contentType}</span>
		</summary>
		<Scrollable as="pre" class="aside-body">
			{payload.length > RAW_CHARS_MAX ? `${payload.slice(0, RAW_CHARS_MAX)}…` : payload}
		</Scrollable>
	</details>
);

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
	return {
		title,
		subtitle: text(value.subtitle),
		price: text(value.price),
		description: text(value.description) ?? text(value.text),
		image: typeof value.image === "string" ? imageUrl(value.image) : undefined,
		url: typeof value.url === "string" ? linkUrl(value.url) : undefined,
	};
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
