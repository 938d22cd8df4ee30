/** The place in a run's log where messages that came during the run were handed to its engine: data that names their events. */

const HEAD = '{"injected":[';

export const encodeInjected = (eventIds: readonly string[]): string => JSON.stringify({ injected: eventIds });

/** Undefined when the data is something else. */
export function injectedIn(payload: string): string[] | undefined {
	if (!payload.startsWith(HEAD)) return undefined;
	try {
		const { injected } = JSON.parse(payload) as { injected: unknown[] };
		return injected.every((eventId) => typeof eventId === "string") ? injected : undefined;
	} catch {
		// An engine's own data may begin like this.
		return undefined;
	}
}
