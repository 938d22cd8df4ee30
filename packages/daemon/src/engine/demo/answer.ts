/** The demo's answer to an ordinary message: one of everything a stream can carry, in the order a person should see it. */

import type { EngineMessage, EngineRequest } from "@nexus-stream/protocol/engine";
import { clipCharacters } from "../../std/clip.ts";
import { seededRandom, seedOf, shuffled } from "../../std/seed.ts";
import { cardPart, carouselPart, chartPart, PRODUCTS, type Product, tonePart } from "./pieces.ts";
import { type DemoStep, inputTokens, tokensOf, toolSteps } from "./script.ts";

const ECHO_CHARS_MAX = 400;
const TOOL_MS = 700;
const CARDS = 2;

/** A rising chord: one tone for each section of the answer. */
const TONES_HZ = [440, 550, 660, 880] as const;

const LABEL = `**Demo engine: no model is configured, so a script writes this answer.** For a real one set \`OPENAI_API_KEY\`, \
\`ANTHROPIC_API_KEY\` or \`GEMINI_API_KEY\`, or write \`pi:\` in \`nexus.yaml\` (Ollama works too), and start again.

`;

const say = (text: string): DemoStep[] => tokensOf(text).map((delta) => ({ type: "text", delta }));
const think = (text: string): DemoStep[] => tokensOf(text).map((delta) => ({ type: "reasoning", delta }));

/** Pure: the same request always gives the same steps. */
export function answerSteps(request: EngineRequest): DemoStep[] {
	const text = request.messages.at(-1)?.text ?? "";
	const products = shuffled(PRODUCTS, seededRandom(seedOf(text)));
	const spoken: DemoStep[] = [
		...think(reasoning(text, products)),
		...say(LABEL),
		...say(aboutTheMessage(request, text)),
		...toolCalls(request, products),
		...say(`\n## What the tools found\n\n${table(products.slice(0, 4))}\n`),
		tonePart(TONES_HZ[0]),
		...shop(products),
		...say(`\n## The stock as a picture\n\n`),
		chartPart(products),
		tonePart(TONES_HZ[2]),
		...say(CODE),
		tonePart(TONES_HZ[3]),
		...say(ENDING),
	];
	const output = spoken.filter((step) => step.type === "text" || step.type === "reasoning").length;
	return [...spoken, { type: "usage", input: inputTokens(request), output }];
}

function reasoning(text: string, products: readonly Product[]): string {
	const words = text.split(/\s+/u).filter((word) => word !== "").length;
	return `The message has ${words} ${words === 1 ? "word" : "words"}. There is no model to understand it, so I show what can be streamed instead: I look up two products, ${products[0]!.title} and ${products[1]!.title}, and put a table, cards, a picture, code and a few tones around them.`;
}

function aboutTheMessage(request: EngineRequest, text: string): string {
	const quoted = clipCharacters(text.replace(/\s+/gu, " ").trim(), ECHO_CHARS_MAX);
	const earlier = Math.max(0, request.messages.length - 1);
	const lines = [
		quoted === "" ? "You sent no text." : `You wrote:\n\n> ${quoted}\n`,
		earlier === 0
			? "This is the first message of this session."
			: `I was given ${earlier} earlier ${earlier === 1 ? "message" : "messages"} of this session.`,
		...interruption(request.messages),
		...request.attachments.map(
			({ name, contentType }) => `You attached \`${name.replaceAll("`", "'")}\` (${contentType}).`,
		),
	];
	return `${lines.join("\n")}\n`;
}

function interruption(messages: readonly EngineMessage[]): string[] {
	const previous = messages.slice(0, -1).findLast((message) => message.role === "assistant");
	switch (previous?.interrupted) {
		case undefined:
			return [];
		case "aborted":
			return ["My previous answer was interrupted: you stopped it."];
		case "failed":
			return ["My previous answer was interrupted: it failed before its end."];
	}
}

function toolCalls(request: EngineRequest, products: readonly Product[]): DemoStep[] {
	const first = products[0]!;
	const search = {
		callId: `${request.runId}:tool-1`,
		name: "search_products",
		args: { query: first.title, limit: products.length },
		progress: `read ${products.length} of ${products.length} pages`,
		summary: `found ${products.length} products`,
		result: { titles: products.map((product) => product.title) },
	};
	const stock = {
		callId: `${request.runId}:tool-2`,
		name: "check_stock",
		args: { title: first.title },
		progress: "asking the shop",
		summary: `${first.stock} in stock`,
		result: { title: first.title, stock: first.stock },
	};
	return [...toolSteps(search, TOOL_MS, request.toolTimeoutMs), ...toolSteps(stock, TOOL_MS, request.toolTimeoutMs)];
}

function table(products: readonly Product[]): string {
	const rows = products.map(({ title, price, stock }) => `| ${title} | ${price} | ${stock} |`);
	return ["| Product | Price | In stock |", "|:--|--:|--:|", ...rows, ""].join("\n");
}

/** Each card stands right after the sentence that announces it. */
function shop(products: readonly Product[]): DemoStep[] {
	const cards = products
		.slice(0, CARDS)
		.flatMap((product, i) => [
			...say(`${i === 0 ? "First" : "\nThen"}, the **${product.title}** for ${product.price}:\n`),
			cardPart(product),
		]);
	return [
		...say("\n## Two of them, and the rest\n\n"),
		...cards,
		tonePart(TONES_HZ[1]),
		...say("\nThe others are one swipe away:\n"),
		carouselPart(products.slice(CARDS)),
	];
}

const CODE = `
## An agent is an async generator

Write your own, and name it in \`nexus.yaml\` as \`engine: { module: ./agent.ts }\`:

\`\`\`ts
export default {
	name: "hello",
	async *run({ messages }, { signal }) {
		for (const word of messages.at(-1).text.split(" ")) {
			if (signal.aborted) return;
			yield { type: "text", delta: word + " " };
		}
	},
};
\`\`\`
`;

const ENDING = `
## Things to try

1. Press **stop** while I write: the text so far is kept, and next time I know that you stopped me.
2. Reload the page while I write: nothing is lost, nothing comes twice.
3. Send \`/demo tokens=500 rate=50 reasoning=1 tools=2 cards=1\`, or \`/demo\` alone for every directive.
`;
