/** The adapters page: its state, its load and its actions. */

import type { AccountJson, DeliveryJson, DeliveryState, EventJson, PairingJson } from "@nexus-stream/protocol/api";
import { api } from "../app/api.ts";
import type { ListView } from "../ui/list-page.tsx";
import { createPage, type PageContext, type PageState } from "../ui/page.ts";

export interface DeliveryFilter {
	readonly state?: DeliveryState;
	readonly channel?: string;
}

export interface Health {
	readonly isChecking: boolean;
	readonly ok?: boolean;
	readonly detail?: string;
}

export interface AdaptersView extends ListView {
	/** The daemon's clock minus the browser's. */
	readonly skewMs: number;
	readonly accounts: readonly AccountJson[];
	readonly deliveries: readonly DeliveryJson[];
	readonly events: readonly EventJson[];
	readonly pairings: readonly PairingJson[];
	readonly filter: DeliveryFilter;
	/** By `channel/account`. */
	readonly health: Readonly<Record<string, Health>>;
	/** The pairing code whose approval is in flight. */
	readonly approving?: string;
}

export const NEW_ADAPTERS: AdaptersView = {
	isLoaded: false,
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

/** Pairings that can still be approved, newest first. After a code has expired the sender gets another one with the next message. */
export const waitingPairings = (pairings: readonly PairingJson[], now: number): PairingJson[] =>
	pairings.filter(({ approved_at, expires_at }) => approved_at === undefined && expires_at > now);

/** Received messages without the batches, whose messages are listed themselves. */
export const inboundOf = (events: readonly EventJson[]): EventJson[] =>
	events.filter(({ batch }) => batch === undefined);

export const channelsOf = (accounts: readonly AccountJson[], deliveries: readonly DeliveryJson[]): string[] =>
	[...new Set([...accounts, ...deliveries].map(({ channel }) => channel))].toSorted();

/** The account's error, unless the line of one of its processes shows the same one. */
export const ownErrorOf = ({ processes, last_error: error }: AccountJson): string | undefined =>
	Object.values(processes).some((process) => process?.last_error === error) ? undefined : error;

const EVERY_MS = 2000;
const BUSY_EVERY_MS = 750;
const ROWS_MAX = 50;

export type AdaptersPage = ReturnType<typeof openAdapters>;

export const openAdapters = (context: PageContext) =>
	createPage({
		initial: NEW_ADAPTERS,
		context,
		connect: (page) => ({
			load: () => load(page),
			retryMs: () => EVERY_MS,
			actions: {
				filter(filter: DeliveryFilter) {
					page.change({ filter });
					page.reload();
				},
				check: (account: AccountJson) => void check(page, account),
				approve: (code: string) => void approve(page, code),
			},
		}),
	});

async function load(page: PageState<AdaptersView>): Promise<number> {
	const { filter } = page.newest;
	const [{ now, accounts }, { deliveries }, { events }, { pairings }] = await Promise.all([
		api.accounts(),
		api.deliveries({ ...filter, limit: ROWS_MAX }),
		api.events({ limit: ROWS_MAX }),
		api.pairings(),
	]);
	const skewMs = now - Date.now();
	page.change({ failure: undefined, isLoaded: true, skewMs, accounts, events, pairings });
	// Ignore the response to an outdated filter.
	if (filter === page.newest.filter) page.change({ deliveries });
	return deliveries.some(({ state }) => state === "active") ? BUSY_EVERY_MS : EVERY_MS;
}

async function check(page: PageState<AdaptersView>, account: AccountJson): Promise<void> {
	const key = accountKey(account);
	if (page.newest.health[key]?.isChecking) return;
	const set = (health: Health) => page.change({ health: { ...page.newest.health, [key]: health } });
	set({ isChecking: true });
	try {
		set({ isChecking: false, ...(await api.checkAccount(account.channel, account.account)) });
	} catch (cause) {
		set({ isChecking: false, ok: false, detail: page.messageOf(cause) });
	}
	page.reload();
}

async function approve(page: PageState<AdaptersView>, code: string): Promise<void> {
	page.change({ approving: code });
	await page.act(async () => {
		const { sender, sender_name: name } = await api.approve(code);
		return `${name ?? sender} was approved.`;
	});
	page.change({ approving: undefined });
}
