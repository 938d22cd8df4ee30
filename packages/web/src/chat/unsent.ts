/** Messages that could not be sent, kept for this tab: whoever leaves the session or reloads the page loses none of them. */

import type { OutgoingMessage } from "./chat.ts";

type Unsent = Pick<OutgoingMessage, "key" | "text" | "error">;

const nameOf = (session: string) => `nexus.unsent.${session}`;

export function unsentOf(session: string): OutgoingMessage[] {
	const kept = sessionStorage.getItem(nameOf(session));
	return kept === null ? [] : (JSON.parse(kept) as Unsent[]).map((message) => ({ ...message, state: "failed" }));
}

export function keepUnsent(session: string, outgoing: readonly OutgoingMessage[]): void {
	const unsent = outgoing.filter(({ state }) => state === "failed");
	const kept = unsent.map(({ key, text, error }): Unsent => ({ key, text, ...(error !== undefined && { error }) }));
	try {
		if (kept.length === 0) sessionStorage.removeItem(nameOf(session));
		else sessionStorage.setItem(nameOf(session), JSON.stringify(kept));
	} catch (cause) {
		console.warn("nexus: a message that was not sent is too long to be kept:", cause);
	}
}
