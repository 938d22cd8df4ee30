/** A provider whose calls tell how they went, so that callers need not. */

import type { CallOutcome, Provider } from "./port.ts";

/** `tell` may throw another error in place of the call's. */
export function observed(provider: Provider, tell: (outcome: CallOutcome) => void): Provider {
	const failed = (error: Error): never => {
		tell({ ok: false, error });
		throw error;
	};
	/** No generator: each token would pass through it. */
	const streamed = <T>(items: AsyncIterable<T>): AsyncIterable<T> => {
		const inner = items[Symbol.asyncIterator]();
		const told = (result: IteratorResult<T>): IteratorResult<T> => {
			if (result.done) tell({ ok: true });
			return result;
		};
		const iterator: AsyncIterator<T> = {
			next: () => inner.next().then(told, failed),
			return: async () => (await inner.return?.()) ?? { done: true, value: undefined },
		};
		return { [Symbol.asyncIterator]: () => iterator };
	};
	const told =
		<Request, Answer>(call: (request: Request, signal: AbortSignal) => Promise<Answer>) =>
		async (request: Request, signal: AbortSignal): Promise<Answer> => {
			const answer = await call(request, signal).catch(failed);
			tell({ ok: true });
			return answer;
		};
	return {
		demo: provider.demo,
		text(request, signal) {
			try {
				return streamed(provider.text(request, signal));
			} catch (cause) {
				return failed(cause as Error);
			}
		},
		async speak(request, signal) {
			const { mimeType, audio } = await provider.speak(request, signal).catch(failed);
			return { mimeType, audio: streamed(audio) };
		},
		image: told((request, signal) => provider.image(request, signal)),
		embed: told((request, signal) => provider.embed(request, signal)),
		transcribe: told((request, signal) => provider.transcribe(request, signal)),
	};
}
