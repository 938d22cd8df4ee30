/** The adapters page as a value: accounts, deliveries, messages that came in, and who waits to be let in. */

import type { AccountJson, DeliveryJson, DeliveryState, EventJson, PairingJson } from "@nexus-stream/protocol";

export interface DeliveryFilter {
	readonly state?: DeliveryState;
	readonly channel?: string;
}

export interface Health {
	readonly isChecking: boolean;
	readonly ok?: boolean;
	readonly detail?: string;
}

export interface AdaptersView {
	readonly phase: "loading" | "ready" | "failed";
	/** Why what is shown may be old. */
	readonly failure?: string;
	/** The daemon's clock minus this one. */
	readonly skewMs: number;
	readonly accounts: readonly AccountJson[];
	readonly deliveries: readonly DeliveryJson[];
	readonly events: readonly EventJson[];
	readonly pairings: readonly PairingJson[];
	readonly filter: DeliveryFilter;
	/** By `channel/account`. */
	readonly health: Readonly<Record<string, Health>>;
	/** The code that is being approved. */
	readonly approving?: string;
	readonly notice?: { readonly tone: "quiet" | "bad"; readonly text: string };
}

export const NEW_ADAPTERS: AdaptersView = {
	phase: "loading",
	skewMs: 0,
	accounts: [],
	deliveries: [],
	events: [],
	pairings: [],
	filter: {},
	health: {},
};

export const accountKey = ({ channel, account }: Pick<AccountJson, "channel" | "account">): string =>
	`${channel}/${account}`;

/** Those who wait, newest first; what has run out needs a new message. */
export const waitingPairings = (pairings: readonly PairingJson[], now: number): PairingJson[] =>
	pairings.filter(({ approved_at, expires_at }) => approved_at === undefined && expires_at > now);

/** What people wrote: a batch only stands for messages that are listed themselves. */
export const inboundOf = (events: readonly EventJson[]): EventJson[] =>
	events.filter(({ batch }) => batch === undefined);

export const channelsOf = (accounts: readonly AccountJson[], deliveries: readonly DeliveryJson[]): string[] =>
	[...new Set([...accounts, ...deliveries].map(({ channel }) => channel))].toSorted();

/** What went wrong with an account, unless the line of one of its processes says it already. */
export const ownErrorOf = ({ processes, last_error: error }: AccountJson): string | undefined =>
	Object.values(processes).some((process) => process?.last_error === error) ? undefined : error;
