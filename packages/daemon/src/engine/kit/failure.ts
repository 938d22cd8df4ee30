/** A provider's refusal as one sentence that says what to do about it. */

import { NexusError } from "@nexus-stream/protocol";

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
