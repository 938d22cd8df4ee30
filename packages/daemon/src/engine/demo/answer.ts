/** The demo's answer to an ordinary message: one of everything a stream can carry, in the order a person should see it. */

import type { EngineRequest } from "@nexus-stream/protocol/engine";
import { clipCharacters } from "../../std/clip.ts";
import { seededRandom, seedOf, shuffled } from "../../std/seed.ts";
import { cardPart, carouselPart, chartPart, PRODUCTS, type Product, tonePart } from "./pieces.ts";
import { type DemoStep, say, think, toolSteps, usageStep } from "./script.ts";

const ECHO_CHARS_MAX = 400;
const TOOL_MS = 700;

const LABEL = `**Demo engine: no model is configured, so a script writes this answer.** For a real one set \`OPENAI_API_KEY\`, \
\`ANTHROPIC_API_KEY\` or \`GEMINI_API_KEY\`, or write \`pi:\` in \`nexus.yaml\` (Ollama works too), and start again.

`;

/** Pure: the same request always gives the same steps. */
export function answerSteps(request: EngineRequest): DemoStep[] {
	const text = request.messages.at(-1)?.text ?? "";
	const products = shuffled(PRODUCTS, seededRandom(seedOf(text)));
	const [first, second, ...others] = products as [Product, Product, ...Product[]];
	const spoken: DemoStep[] = [
		...think(
			`There is no model to understand the message, so I show what can be streamed instead: I look up two products, ${first.title} and ${second.title}, and put a table, cards, a picture, code and a few tones around them.`,
		),
		...say(LABEL + aboutTheMessage(request, text)),
		...toolCalls(request, first),
		...say(`\n## What the tools found\n\n${table(products.slice(0, 4))}\n`),
		tonePart(440),
		...say(`\n## Two of them, and the rest\n\nFirst, the **${first.title}** for ${first.price}:\n`),
		cardPart(first),
		...say(`\nThen, the **${second.title}** for ${second.price}:\n`),
		cardPart(second),
		tonePart(550),
		...say("\nThe others are one swipe away:\n"),
		carouselPart(others),
		...say("\n## The stock as a picture\n\n"),
		chartPart(products),
		tonePart(660),
		...say(ENDING),
	];
	const output = spoken.filter((step) => step.type === "text" || step.type === "reasoning").length;
	return [...spoken, usageStep(request, output)];
}

const INTERRUPTIONS = {
	aborted: "My previous answer was interrupted: you stopped it.",
	failed: "My previous answer was interrupted: it failed before its end.",
};

function aboutTheMessage({ messages, attachments }: EngineRequest, text: string): string {
	const quoted = clipCharacters(text.replace(/\s+/gu, " ").trim(), ECHO_CHARS_MAX);
	const earlier = messages.slice(0, -1);
	const { interrupted } = earlier.findLast(({ role }) => role === "assistant") ?? {};
	const lines = [
		quoted === "" ? "You sent no text." : `You wrote:\n\n> ${quoted}\n`,
		`Earlier messages of this session: ${earlier.length}.`,
		...(interrupted ? [INTERRUPTIONS[interrupted]] : []),
		...attachments.map(({ name, contentType }) => `You attached \`${name.replaceAll("`", "'")}\` (${contentType}).`),
	];
	return `${lines.join("\n")}\n`;
}

function toolCalls(request: EngineRequest, { title, stock }: Product): DemoStep[] {
	const search = {
		name: "search_products",
		args: { query: title, limit: PRODUCTS.length },
		progress: "read all pages",
		summary: `found ${PRODUCTS.length} products`,
		result: { titles: PRODUCTS.map((product) => product.title) },
	};
	const check = {
		name: "check_stock",
		args: { title },
		progress: "asking the shop",
		summary: `${stock} in stock`,
		result: { title, stock },
	};
	return [...toolSteps(search, 1, TOOL_MS, request), ...toolSteps(check, 2, TOOL_MS, request)];
}

function table(products: readonly Product[]): string {
	const rows = products.map(({ title, price, stock }) => `| ${title} | ${price} | ${stock} |`);
	return ["| Product | Price | In stock |", "|:--|--:|--:|", ...rows, ""].join("\n");
}

const ENDING = `
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

## Things to try

1. Press **stop** while I write: the text so far is kept, and next time I know that you stopped me.
2. Reload the page while I write: nothing is lost, nothing comes twice.
3. Send \`/demo tokens=500 rate=50 reasoning=1 tools=2 cards=1\`, or \`/demo\` alone for every directive.
`;
