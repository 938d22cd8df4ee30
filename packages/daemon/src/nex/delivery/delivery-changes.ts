/** Applies each change of a delivery to its row in memory, exactly as the store applies it to the stored row. */

import type { Delivery, DeliveryMessage, DeliveryOps } from "../../ledger/deliveries/port.ts";

/** The changes made by the daemon that runs the delivery. */
type Verb = Exclude<keyof DeliveryOps, "open" | "reopen" | "adopt">;

/** Each returns false when there is nothing to change. */
type DeliveryChanges = {
	readonly [V in Verb]: Parameters<DeliveryOps[V]> extends [string, ...infer Rest]
		? (row: Delivery, ...rest: Rest) => boolean
		: never;
};

export const CHANGES: DeliveryChanges = {
	setMode: (row, mode) => set(row, { mode }),
	intend({ messages }, message) {
		const at = messages.findIndex(({ nonce }) => nonce === message.nonce);
		messages.splice(at < 0 ? messages.length : at, 1, { ...message, state: "intended" });
		return true;
	},
	withdraw: (row, nonce) => drop(row, nonce, ["intended"]),
	remove: (row, nonce) => drop(row, nonce, ["intended", "open"]),
	created(row, nonce, messageId) {
		const message = find(row, nonce);
		return message?.state !== "sent" && set(message, { state: "open", messageId });
	},
	shown(row, nonce, to) {
		const message = find(row, nonce);
		return message?.state !== "sent" && set(message, { shown: to, edits: (message?.edits ?? 0) + 1 });
	},
	sent(row, nonce, { messageId, to, carry, abandoned }) {
		const message = find(row, nonce);
		if (!message) return false;
		if (abandoned) message.abandoned = true;
		if (message.state === "open") message.edits = (message.edits ?? 0) + 1;
		delete message.text;
		delete message.done;
		delete message.facts;
		row.cursor = Math.max(row.cursor, to);
		if (carry === undefined) delete row.carry;
		else row.carry = carry;
		return set(message, { state: message.error === undefined ? "sent" : "failed", messageId, to });
	},
	/** A message that is still being sent becomes `failed` when it is finished. */
	failed(row, nonce, outcome) {
		const message = find(row, nonce);
		return set(message, message?.state === "sent" ? { ...outcome, state: "failed" } : outcome);
	},
	doubt: (row, nonce) => set(find(row, nonce), { state: "unknown" }),
	finish: (row, state, error, now) =>
		set(row, error === undefined ? { state, endedAt: now } : { state, endedAt: now, error }),
};

const find = ({ messages }: Delivery, nonce: string): DeliveryMessage | undefined =>
	messages.find((message) => message.nonce === nonce);

function set<T extends object>(entry: T | undefined, values: Partial<T>): boolean {
	if (entry) Object.assign(entry, values);
	return entry !== undefined;
}

function drop({ messages }: Delivery, nonce: string, states: readonly DeliveryMessage["state"][]): boolean {
	const at = messages.findIndex((message) => message.nonce === nonce && states.includes(message.state));
	if (at >= 0) messages.splice(at, 1);
	return at >= 0;
}
