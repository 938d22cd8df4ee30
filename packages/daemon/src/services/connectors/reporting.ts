/** A provider whose calls report its health, so that callers need not. */

import type { CallOutcome, Provider } from "./port.ts";

export function reporting(provider: Provider, report: (outcome: CallOutcome) => void): Provider {
	const failed = (error: Error): never => {
		report({ ok: false, error });
		throw error;
	};
	/** No generator: each token would pass through it. */
	const streamed = <T>(items: AsyncIterable<T>): AsyncIterable<T> => {
		const inner = items[Symbol.asyncIterator]();
		const told = (result: IteratorResult<T>): IteratorResult<T> => {
			if (result.done) report({ ok: true });
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
			report({ ok: true });
			return answer;
		};
	return {
		demo: provider.demo,
		text: (request, signal) => streamed(provider.text(request, signal)),
		async speak(request, signal) {
			const { mimeType, audio } = await provider.speak(request, signal).catch(failed);
			return { mimeType, audio: streamed(audio) };
		},
		image: told((request, signal) => provider.image(request, signal)),
		embed: told((request, signal) => provider.embed(request, signal)),
		transcribe: told((request, signal) => provider.transcribe(request, signal)),
	};
}
