/** The outcome of model calls: the tokens of a run, and a refusal as one sentence that says what to do about it. */

import { NexusError } from "@nexus-stream/protocol";
import type { EngineEvent } from "@nexus-stream/protocol/engine";

type CallTokens = Record<"input" | "output" | "cacheRead" | "cacheWrite", number>;

/** Tokens of one run, added up over its model calls; what a provider did not say is -1, never 0. */
export function usageSum() {
	const sum = { input: 0, output: 0, cache_read: 0, cache_write: 0 };
	let counted = 0;
	let isReadUnknown = false;
	let isOutputUnknown = false;
	return {
		/** Adds one answered call; 0 also stands for an unreported number. */
		add({ input, output, cacheRead, cacheWrite }: CallTokens): void {
			counted += 1;
			// No call that was answered read no token at all, or wrote none.
			isReadUnknown ||= input + cacheRead + cacheWrite === 0;
			isOutputUnknown ||= output === 0;
			sum.input += input;
			sum.output += output;
			sum.cache_read += cacheRead;
			sum.cache_write += cacheWrite;
		},
		// One unknown part makes the total unknown: a number that is too low would look like the truth.
		event: (): Extract<EngineEvent, { type: "usage" }> => ({
			type: "usage",
			...sum,
			...((isReadUnknown || counted === 0) && { input: -1, cache_read: -1, cache_write: -1 }),
			...((isOutputUnknown || counted === 0) && { output: -1 }),
		}),
	};
}

export interface FailureContext {
	provider: string;
	model: string;
	/** Advice when the key is refused. */
	keySource: string;
	/** Where the configuration names the model. */
	section: string;
	/** Never repeated, even when a provider echoes it. */
	apiKey: string;
}

/** The provider's own words are kept to this length. */
const PROVIDER_WORDS_CHARS_MAX = 500;

const ADVICE: readonly (readonly [pattern: RegExp, advice: (context: FailureContext) => string])[] = [
	[
		/\b429\b|rate.?limit|too many requests|quota/i,
		({ provider }) =>
			`${provider} limits the rate or the quota is used up (429): wait and send again, or use another key or model`,
	],
	[
		/\b40[13]\b|invalid.*api.?key|unauthori[sz]ed|authentication/i,
		({ provider, keySource }) => `${provider} refuses the key: check ${keySource}`,
	],
	[
		/\b404\b|model.*not (?:found|exist)/i,
		({ provider, model, section }) =>
			`${provider} does not know the model "${model}": check \`${section}.model\` and \`${section}.baseUrl\``,
	],
	[
		/context.?(?:length|window)|too many tokens|prompt is too long|maximum context/i,
		() => "the session is longer than the model can read: start a new session or choose a model with a larger window",
	],
	[
		/without finish_reason|terminated|premature|other side closed|socket hang up|ECONNRESET|stream ended|connection closed/i,
		({ provider }) => `the answer was cut off: the connection to ${provider} broke before the end`,
	],
	[
		/ECONNREFUSED|ENOTFOUND|fetch failed|connection error|EAI_AGAIN|timed? ?out/i,
		({ provider, section }) => `${provider} cannot be reached: check the network and \`${section}.baseUrl\``,
	],
	[/\b5\d\d\b|overloaded/i, ({ provider }) => `${provider} has a problem: send again later`],
];

export function modelFailure(words: string | undefined, context: FailureContext): NexusError {
	const said = withoutKey(words ?? "no reason given", context.apiKey).slice(0, PROVIDER_WORDS_CHARS_MAX);
	const advice = ADVICE.find(([pattern]) => pattern.test(said))?.[1](context);
	const subject = advice ?? `${context.provider} failed`;
	return new NexusError("engine_failed", `${subject}. ${context.provider}/${context.model} said: ${said}`);
}

/** A short key is a local server's placeholder, and may be an ordinary word. */
const withoutKey = (text: string, apiKey: string): string =>
	apiKey.length < 8 ? text : text.replaceAll(apiKey, "[key]");
