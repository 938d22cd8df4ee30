/** An agent with five tools that leave a trace when they act, one of them with a person's approval, for a daemon that is killed while they do. */

import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Engine } from "@nexus-stream/protocol/engine";
import { type ModelScript, scriptedModel } from "../../packages/daemon/src/engine/reason-act/model/scripted.ts";
import { reasonActEngine } from "../../packages/daemon/src/engine/reason-act/reason-act.ts";
import { type Tool, textResult } from "../../packages/daemon/src/engine/tool.ts";
import { systemClock } from "../../packages/protocol/src/clock.ts";
import { setupOf } from "../engine/reason-act/kit.ts";

export const TOOLS = ["look", "count", "compare", "note", "check"];
/** Waits for a person. */
export const APPROVED = "compare";

/** About as long as a few records take. */
const TOOL_MS = 15;
const TOKENS_PER_SECOND = 500;

const WORDS = "and so the work continues, word by word, until the next tool has its turn; ";

export const TEXTS = [...TOOLS.map((name, n) => `Step ${n + 1}, ${name}: ${WORDS}`), `That is all. ${WORDS}`];

const SCRIPT: ModelScript = {
	steps: TEXTS.map((text, n) => ({
		text,
		tokensPerSecond: TOKENS_PER_SECOND,
		calls: n < TOOLS.length ? [{ name: TOOLS[n]! }] : undefined,
	})),
};

/** Each line of `acts` is `begin <tool>` or `end <tool>`. */
export async function agentThatNotes(acts: string): Promise<Engine> {
	const tools = TOOLS.map(
		(name): Tool => ({
			name,
			description: name,
			parameters: { type: "object", properties: {} },
			approval: name === APPROVED ? "always" : undefined,
			async execute() {
				appendFileSync(acts, `begin ${name}\n`);
				await sleep(TOOL_MS);
				appendFileSync(acts, `end ${name}\n`);
				return textResult(`${name} is done`);
			},
		}),
	);
	return reasonActEngine(await setupOf({ phase: "chat" }, scriptedModel(SCRIPT, systemClock), tools));
}
