/** Messages that could not be sent, stored for this tab so that leaving the session or reloading the page loses none. */

import type { OutgoingMessage } from "./chat.ts";

type Unsent = Pick<OutgoingMessage, "key" | "text" | "error">;

const nameOf = (session: string) => `nexus.unsent.${session}`;

export function unsentOf(session: string): OutgoingMessage[] {
	const stored = sessionStorage.getItem(nameOf(session)) ?? "[]";
	return (JSON.parse(stored) as Unsent[]).map((message) => ({ ...message, state: "failed" }));
}

export function keepUnsent(session: string, outgoing: readonly OutgoingMessage[]): void {
	const unsent = outgoing
		.filter(({ state }) => state === "failed")
		.map(({ key, text, error }): Unsent => ({ key, text, error }));
	try {
		if (unsent.length === 0) sessionStorage.removeItem(nameOf(session));
		else sessionStorage.setItem(nameOf(session), JSON.stringify(unsent));
	} catch (cause) {
		console.warn("nexus: an unsent message is too long for the storage of this tab:", cause);
	}
}
