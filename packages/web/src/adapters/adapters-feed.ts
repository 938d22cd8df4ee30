/** Keeps the adapters page up to date and passes on what a person wants. */

import { type AccountJson, toNexusError } from "@nexus-stream/protocol";
import { api } from "../app/api.ts";
import type { ScheduleFrame } from "../chat/frame-clock.ts";
import { startPolling } from "../ui/poll.ts";
import { type AdaptersView, accountKey, type DeliveryFilter, type Health, NEW_ADAPTERS } from "./adapters.ts";

const EVERY_MS = 2000;
const BUSY_EVERY_MS = 750;
const ROWS_MAX = 50;

export interface AdaptersFeed {
	filter(filter: DeliveryFilter): void;
	check(account: AccountJson): void;
	approve(code: string): void;
	close(): void;
}

export interface AdaptersFeedOptions {
	onChange(adapters: AdaptersView): void;
	onSignedOut(): void;
	schedule: ScheduleFrame;
}

export function openAdapters({ onChange, onSignedOut, schedule }: AdaptersFeedOptions): AdaptersFeed {
	let view = NEW_ADAPTERS;
	let due = false;
	let closed = false;

	function change(part: Partial<AdaptersView>): void {
		view = { ...view, ...part };
		if (due || closed) return;
		due = true;
		schedule(() => {
			due = false;
			if (!closed) onChange(view);
		});
	}

	function wordsOf(cause: unknown): string {
		const error = toNexusError(cause);
		if (error.code === "unauthenticated") onSignedOut();
		return error.message;
	}

	async function look(): Promise<number> {
		const { filter } = view;
		try {
			const [{ now, accounts }, { deliveries }, { events }, { pairings }] = await Promise.all([
				api.accounts(),
				api.deliveries({ ...filter, limit: ROWS_MAX }),
				api.events({ limit: ROWS_MAX }),
				api.pairings(),
			]);
			const { failure: _, ...rest } = view;
			view = rest;
			// An answer to an older wish is not shown under a newer one.
			const rows = filter === view.filter ? { deliveries } : {};
			change({ phase: "ready", skewMs: now - Date.now(), accounts, events, pairings, ...rows });
			return deliveries.some(({ state }) => state === "active") ? BUSY_EVERY_MS : EVERY_MS;
		} catch (cause) {
			change({ failure: wordsOf(cause), ...(view.phase === "loading" && { phase: "failed" }) });
			return EVERY_MS;
		}
	}

	async function check(account: AccountJson): Promise<void> {
		const key = accountKey(account);
		if (view.health[key]?.isChecking) return;
		const set = (health: Health) => change({ health: { ...view.health, [key]: health } });
		set({ isChecking: true });
		try {
			set({ isChecking: false, ...(await api.checkAccount(account.channel, account.account)) });
		} catch (cause) {
			set({ isChecking: false, ok: false, detail: wordsOf(cause) });
		}
		poller.now();
	}

	async function approve(code: string): Promise<void> {
		change({ approving: code });
		let notice: AdaptersView["notice"];
		try {
			const { sender, sender_name: name } = await api.approve(code);
			notice = { tone: "quiet", text: `${name ?? sender} was let in.` };
		} catch (cause) {
			notice = { tone: "bad", text: wordsOf(cause) };
		}
		const { approving: _, ...rest } = view;
		view = rest;
		change({ notice });
		poller.now();
	}

	const poller = startPolling(look);
	return {
		filter(filter) {
			change({ filter });
			poller.now();
		},
		check: (account) => void check(account),
		approve: (code) => void approve(code),
		close() {
			closed = true;
			poller.stop();
		},
	};
}
