/**
 * The block pipeline: markdown in tokens becomes blocks, compared with cutting the same tokens at line feeds; and blocks become messages in a
 * platform's dialect, compared with only parsing their markdown.
 */

import { parseMarkdown } from "../../packages/adapter/src/markdown/markdown.ts";
import { splitAll } from "../../packages/adapter/src/markdown/split.ts";
import type { Platform } from "../../packages/adapter/src/platform/platform.ts";
import { createRenderer } from "../../packages/adapter/src/serve/context.ts";
import { blocksOf } from "../../packages/daemon/src/nex/delivery/blocks/block-machine.ts";
import {
	type BlockInput,
	type BlockRules,
	beginBlocks,
	type DeliveryBlock,
	stepBlocks,
} from "../../packages/daemon/src/nex/delivery/blocks/block-step.ts";
import type { Figure } from "../figure.ts";
import { median } from "../statistics.ts";

const ROUNDS = 5;
const ANSWER_CHARS = 200_000;

const CHANNELS = ["telegram", "discord", "whatsapp", "sms"] as const;

const platformOf = async (channel: string): Promise<Platform> => {
	const { platform } = (await import(`../../packages/platforms/src/${channel}/${channel}.ts`)) as {
		platform: Platform;
	};
	return platform;
};

/** The parts of answers: prose, lists, code, a table, a quote, links, emphasis, and letters beyond ASCII. */
const section = (n: number) => `## ${n}. How the reader keeps up

A cursor holds a **position** and nothing else, so a reader that is far behind costs no more than one that keeps up.
It *pulls*: the socket says when there is room, and then \`next()\` gives what became durable since — see
[the protocol](https://example.com/protocol#s${n}) for the rules. Nothing is dropped; nothing is sent twice.

- First it catches up from the store, segment by segment.
- Then it follows the tail:
  1. wait until something is visible,
  2. take it, in order,
  3. write it while the socket has room.
- A café in Zürich, 東京 and 🙂 count as what they are.

\`\`\`ts
for (let at = ${n}; at < records.length; at++) {
	const frame = JSON.parse(records[at] ?? "null");
	if (frame?.type === "stream.end" && frame.final) return frame.reason;
}
\`\`\`

| offset | what it is | bytes |
|--------|------------|-------|
| ${n} | begin | 212 |
| ${n + 1} | a chunk of text | 148 |

> A reader that resumes after offset ${n} sees the same bytes again.

`;

function answerOf(chars: number): string {
	let text = "";
	for (let n = 1; text.length < chars; n++) text += section(n);
	return text;
}

/** Five characters, as the tokens of models have on average. */
const tokensOf = (text: string): string[] => text.match(/.{1,5}/gsu) ?? [];

/** The daemon's part. */
function blocksFrom(tokens: readonly string[], rules: BlockRules): DeliveryBlock[] {
	const blocks: DeliveryBlock[] = [];
	let state = beginBlocks(0);
	const take = (input: BlockInput) => {
		const step = stepBlocks(state, input, 0, rules);
		state = step.state;
		blocks.push(...step.blocks);
	};
	for (const text of tokens) take({ type: "token", text });
	take({ type: "end" });
	return blocks;
}

/** The adapter's part: as many messages as a block needs, in the platform's dialect. */
function messagesFrom(blocks: readonly DeliveryBlock[], platform: Platform): string[] {
	return blocks.flatMap(({ text }) => {
		const { render, fits, guess } = createRenderer(platform);
		return splitAll(text, { fits, guess }).map((piece) => render(piece.text));
	});
}

/** The least that could be done: gather, and cut at the last line feed that fits. */
function cutAtLineFeeds(tokens: readonly string[], charsMax: number): string[] {
	const messages: string[] = [];
	let text = "";
	for (const token of tokens) {
		text += token;
		if (text.length <= charsMax) continue;
		const at = text.lastIndexOf("\n", charsMax - 1) + 1 || charsMax;
		messages.push(text.slice(0, at));
		text = text.slice(at);
	}
	return [...messages, text];
}

function megabytesPerSecond(bytes: number, work: () => { length: number }): number {
	const started = performance.now();
	if (work().length === 0) throw new Error("nothing was made");
	return bytes / 1e3 / (performance.now() - started);
}

async function measure(channel: string, tokens: readonly string[], bytes: number): Promise<Figure[]> {
	const platform = await platformOf(channel);
	const rules = blocksOf(platform.info);
	const ready = blocksFrom(tokens, rules);
	const work = {
		blocks: () => blocksFrom(tokens, rules),
		cut: () => cutAtLineFeeds(tokens, rules.maxChars),
		messages: () => messagesFrom(ready, platform),
		parsed: () => ready.map(({ text }) => parseMarkdown(text)),
	};
	const results: Record<keyof typeof work, number[]> = { blocks: [], cut: [], messages: [], parsed: [] };
	for (let round = 0; round <= ROUNDS; round++) {
		for (const [name, values] of Object.entries(results) as [keyof typeof work, number[]][]) {
			const speed = megabytesPerSecond(bytes, work[name]);
			// The first round warms up.
			if (round > 0) values.push(speed);
		}
	}
	const figure = (name: string, values: number[], bare: number[], against: string): Figure => ({
		name: `blocks, ${channel}, ${name}`,
		unit: "MB/s",
		value: median(values),
		bare: median(bare),
		against,
	});
	const sizes = `${rules.minChars} to ${rules.maxChars} characters`;
	return [
		figure(`gathered in the daemon (${sizes})`, results.blocks, results.cut, "cut at line feeds"),
		figure("split and rendered in the adapter", results.messages, results.parsed, "only parsed"),
	];
}

export async function blocks(): Promise<Figure[]> {
	const answer = answerOf(ANSWER_CHARS);
	const tokens = tokensOf(answer);
	const figures: Figure[] = [];
	for (const channel of CHANNELS) figures.push(...(await measure(channel, tokens, Buffer.byteLength(answer))));
	return figures;
}
