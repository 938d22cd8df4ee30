/** Cards, carousels, pictures and audio between the text; other modalities are shown as their raw payload. */

import { useRef } from "preact/hooks";
import { Icon } from "../../ui/icon.tsx";
import { memo } from "../../ui/memo.ts";
import { mediaUrl } from "../../ui/safe-url.ts";
import { Scrollable } from "../../ui/scrollable.tsx";
import { type CardData, readCard, readCarousel } from "../card.ts";

export interface PartProps {
	modality: string;
	contentType: string;
	payload: string;
	complete: boolean;
}

const RAW_CHARS_MAX = 2000;

export const Part = memo(({ modality, contentType, payload, complete }: PartProps) => {
	if (!complete) return <div class="note part-waiting">Receiving {modality}…</div>;
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
	return <Unknown modality={modality} contentType={contentType} payload={payload} />;
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
				<button type="button" class="round" onClick={() => move(-1)} aria-label="Previous cards">
					<Icon name="left" />
				</button>
				<button type="button" class="round" onClick={() => move(1)} aria-label="Next cards">
					<Icon name="chevron" />
				</button>
			</div>
		</section>
	);
}

const Unknown = ({ modality, contentType, payload }: Omit<PartProps, "complete">) => (
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
