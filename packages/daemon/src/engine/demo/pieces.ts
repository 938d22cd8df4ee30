/** The demo's attachments: product cards, a carousel, a drawn picture and short tones. All made here, none fetched. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";

type DemoPart = Extract<EngineEvent, { type: "part" }>;

export interface Product {
	title: string;
	price: string;
	stock: number;
	description: string;
	/** Stands on its picture. */
	sign: string;
}

export const PRODUCTS: readonly Product[] = [
	{ title: "Harbour lamp", price: "€ 48.00", stock: 12, description: "Bright enough to read by.", sign: "💡" },
	{ title: "Field notebook", price: "€ 9.50", stock: 140, description: "No page missing, none twice.", sign: "📓" },
	{ title: "Walking mug", price: "€ 17.90", stock: 37, description: "Warm for one long answer.", sign: "☕" },
	{ title: "Pocket clock", price: "€ 64.00", stock: 5, description: "Shows the time it was given.", sign: "⏰" },
	{ title: "Paper kite", price: "€ 12.00", stock: 58, description: "Stays up with little wind.", sign: "🪁" },
	{ title: "Signal flag", price: "€ 21.00", stock: 23, description: "Says stop, and means it.", sign: "🚩" },
];

/** In base64. */
const svg = (width: number, height: number, body: string): string =>
	Buffer.from(
		`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="#fff"/>${body}</svg>`,
	).toString("base64");

function cardOf({ title, price, description, sign }: Product): object {
	const picture = svg(64, 64, `<text x="32" y="45" font-size="36" text-anchor="middle">${sign}</text>`);
	return { title, price, image: `data:image/svg+xml;base64,${picture}`, description };
}

const jsonPart = (modality: string, value: object): DemoPart => {
	return { type: "part", modality, contentType: "application/json", payload: JSON.stringify(value) };
};

export const cardPart = (product: Product): DemoPart => jsonPart("card", cardOf(product));

export const carouselPart = (products: readonly Product[]): DemoPart =>
	jsonPart("carousel", { items: products.map(cardOf) });

/** A bar chart of what is in stock. */
export function chartPart(products: readonly Product[]): DemoPart {
	const most = Math.max(...products.map(({ stock }) => stock));
	const bars = products.map(({ stock }, i) => {
		const height = Math.ceil((stock / most) * 90);
		return `<rect x="${16 + i * 36}" y="${104 - height}" width="24" height="${height}" fill="#2f6f9f"/>`;
	});
	const payload = svg(24 + products.length * 36, 120, bars.join(""));
	return { type: "part", modality: "image", contentType: "image/svg+xml", payload };
}

const SAMPLE_RATE_HZ = 8_000;
const TONE_MS = 180;

/** A short sine tone as a complete WAV file (mono, 8 bit), faded at both ends so that it does not click. */
export function tonePart(frequencyHz: number): DemoPart {
	const samples = (SAMPLE_RATE_HZ * TONE_MS) / 1000;
	const fade = samples / 6;
	const tone = Buffer.alloc(samples).map((_, i) => {
		const loudness = 60 * Math.min(1, i / fade, (samples - i) / fade);
		return 128 + Math.round(loudness * Math.sin((2 * Math.PI * frequencyHz * i) / SAMPLE_RATE_HZ));
	});
	// Two fields of two bytes are written as one of four: PCM and one channel; one byte a sample and eight bits.
	const format = fields(16, 0x1_0001, SAMPLE_RATE_HZ, SAMPLE_RATE_HZ, 0x8_0001);
	const head = [Buffer.from("RIFF"), fields(36 + samples), Buffer.from("WAVEfmt "), format];
	const wav = Buffer.concat([...head, Buffer.from("data"), fields(samples), tone]);
	return { type: "part", modality: "audio", contentType: "audio/wav", payload: wav.toString("base64") };
}

const fields = (...values: number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);
