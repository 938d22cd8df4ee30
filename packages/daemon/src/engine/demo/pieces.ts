/** The demo's attachments: product cards, a carousel, a drawn picture and short tones. All made here, none fetched. */

import type { EngineEvent } from "@nexus-stream/protocol/engine";

type DemoPart = Extract<EngineEvent, { type: "part" }>;

export interface Product {
	title: string;
	price: string;
	stock: number;
	description: string;
	colour: string;
	/** The outline drawn on its picture: an SVG path in a 64 × 64 box. */
	outline: string;
}

export const PRODUCTS: readonly Product[] = [
	{
		title: "Harbour lamp",
		price: "€ 48.00",
		stock: 12,
		description: "A small brass lamp that is bright enough to read by.",
		colour: "#c98a1b",
		outline: "M24 54h16M32 54V38M18 38h28L40 14H24z",
	},
	{
		title: "Field notebook",
		price: "€ 9.50",
		stock: 140,
		description: "96 numbered pages, none missing, none twice.",
		colour: "#2f6f9f",
		outline: "M18 10h28v44H18zM26 10v44M32 22h8M32 30h8",
	},
	{
		title: "Walking mug",
		price: "€ 17.90",
		stock: 37,
		description: "Keeps tea warm for the length of a long answer.",
		colour: "#8a4f7d",
		outline: "M16 16h26v34H16zM42 24h8v16h-8M22 8v4M30 8v4",
	},
	{
		title: "Pocket clock",
		price: "€ 64.00",
		stock: 5,
		description: "Shows the time it was given as an argument.",
		colour: "#3d7a4e",
		outline: "M32 14a20 20 0 1 0 .1 0zM32 22v12l8 6M28 8h8",
	},
	{
		title: "Paper kite",
		price: "€ 12.00",
		stock: 58,
		description: "Stays up with the lightest wind.",
		colour: "#b5473c",
		outline: "M32 6l18 22-18 18-18-18zM32 46q8 6 0 12",
	},
	{
		title: "Signal flag",
		price: "€ 21.00",
		stock: 23,
		description: "Says stop, and means it.",
		colour: "#5a5fb0",
		outline: "M18 8v48M18 10h30l-8 10 8 10H18",
	},
];

const svg = (width: number, height: number, body: string): string =>
	`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${body}</svg>`;

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

function cardOf(product: Product): { title: string; price: string; image: string; description: string } {
	const picture = svg(
		64,
		64,
		`<rect width="64" height="64" fill="${product.colour}"/><path d="${product.outline}" fill="none" stroke="#fff" stroke-width="3" stroke-linejoin="round"/>`,
	);
	const { title, price, description } = product;
	return { title, price, image: `data:image/svg+xml;base64,${base64(picture)}`, description };
}

export function cardPart(product: Product): DemoPart {
	return { type: "part", modality: "card", contentType: "application/json", payload: JSON.stringify(cardOf(product)) };
}

export function carouselPart(products: readonly Product[]): DemoPart {
	const payload = JSON.stringify({ items: products.map(cardOf) });
	return { type: "part", modality: "carousel", contentType: "application/json", payload };
}

/** A bar chart of what is in stock. */
export function chartPart(products: readonly Product[]): DemoPart {
	const most = Math.max(1, ...products.map((product) => product.stock));
	const bars = products.map((product, i) => {
		const height = Math.max(2, Math.round((product.stock / most) * 90));
		return `<rect x="${16 + i * 36}" y="${104 - height}" width="24" height="${height}" fill="${product.colour}"/>`;
	});
	const width = 24 + products.length * 36;
	const axis = `<path d="M8 104H${width - 8}" stroke="#888" stroke-width="2"/>`;
	const payload = base64(svg(width, 120, `<rect width="${width}" height="120" fill="#fff"/>${bars.join("")}${axis}`));
	return { type: "part", modality: "image", contentType: "image/svg+xml", payload };
}

const SAMPLE_RATE_HZ = 8_000;
const TONE_MS = 180;

/** A short sine tone as a complete WAV file (mono, 8 bit), faded at both ends so that it does not click. */
export function tonePart(frequencyHz: number): DemoPart {
	const samples = (SAMPLE_RATE_HZ * TONE_MS) / 1000;
	const wav = Buffer.alloc(44 + samples);
	wav.write("RIFF", 0, "latin1");
	wav.writeUInt32LE(36 + samples, 4);
	wav.write("WAVEfmt ", 8, "latin1");
	wav.writeUInt32LE(16, 16);
	wav.writeUInt16LE(1, 20);
	wav.writeUInt16LE(1, 22);
	wav.writeUInt32LE(SAMPLE_RATE_HZ, 24);
	wav.writeUInt32LE(SAMPLE_RATE_HZ, 28);
	wav.writeUInt16LE(1, 32);
	wav.writeUInt16LE(8, 34);
	wav.write("data", 36, "latin1");
	wav.writeUInt32LE(samples, 40);
	const fade = samples / 6;
	for (let i = 0; i < samples; i++) {
		const loudness = 60 * Math.min(1, i / fade, (samples - i) / fade);
		wav[44 + i] = 128 + Math.round(loudness * Math.sin((2 * Math.PI * frequencyHz * i) / SAMPLE_RATE_HZ));
	}
	return { type: "part", modality: "audio", contentType: "audio/wav", payload: wav.toString("base64") };
}
