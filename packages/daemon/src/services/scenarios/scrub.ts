/** Keys that came with a request are in nothing that is written or answered, whatever a provider says. */

import { NexusError, toNexusError } from "@nexus-stream/protocol";
import type { InlineCredential, Provider, TextEvent } from "../connectors/port.ts";

const SCRUBBED = "[redacted]";

/** The error without the secret, and without its cause, which may have it anywhere. */
export function scrubbedError(cause: unknown, secret: string): NexusError {
	const { code, message, reason } = toNexusError(cause, "engine_failed");
	return new NexusError(code, scrubbedText(message, secret), reason && { reason });
}

/** Providers quote keys as they are, and as a part of an address. */
function scrubbedText(text: string, secret: string): string {
	const spellings = new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]);
	let clean = text;
	for (const spelling of spellings) clean = clean.replaceAll(spelling, SCRUBBED);
	return clean;
}

/** The same provider, whose errors do not have the key of its credential. */
export function scrubbedProvider(provider: Provider, { apiKey }: InlineCredential): Provider {
	const clean = (cause: unknown): never => {
		throw scrubbedError(cause, apiKey);
	};
	return {
		demo: provider.demo,
		text: (request, signal) => scrubbedStream<TextEvent>(() => provider.text(request, signal), clean),
		async speak(request, signal) {
			const { mimeType, audio } = await provider.speak(request, signal).catch(clean);
			return { mimeType, audio: scrubbedStream(() => audio, clean) };
		},
		image: (request, signal) => provider.image(request, signal).catch(clean),
		embed: (request, signal) => provider.embed(request, signal).catch(clean),
		transcribe: (request, signal) => provider.transcribe(request, signal).catch(clean),
	};
}

async function* scrubbedStream<T>(open: () => AsyncIterable<T>, clean: (cause: unknown) => never): AsyncIterable<T> {
	try {
		yield* open();
	} catch (cause) {
		clean(cause);
	}
}
