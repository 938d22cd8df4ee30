/** Accounts on chat platforms, and the people who paired with them. */

import { z } from "zod";
import type { DeliveryCounts } from "../../ledger/deliveries/port.ts";
import type { Pairing } from "../../ledger/pairings/port.ts";
import type { AccountStatus, AccountChanges as NexAccountChanges } from "../../nex/nex.ts";
import { defined } from "../../std/defined.ts";
import type { EdgeDeps } from "../port.ts";
import { deliveryState, IN_LAB, lab } from "./deliveries.ts";
import { accountParams, component, count, get, type HandlersOf, name, post, remove, time, viewOf } from "./resource.ts";

const ProcessView = component("AdapterProcess", {
	state: z
		.enum(["starting", "running", "unreachable", "backing_off", "open_circuit", "stopped"])
		.describe("`unreachable`: it runs, and its platform does not answer."),
	pid: count.exactOptional(),
	restarts: count,
	until: time.exactOptional().describe("When it is tried again."),
	last_error: z.string().exactOptional().describe("Until it has gone well for a while."),
});

const AccountView = component("Account", {
	channel: z.string(),
	account: z.string(),
	lab,
	processes: z.object({
		monitor: ProcessView.exactOptional(),
		stream: ProcessView.exactOptional(),
		send: ProcessView.exactOptional(),
	}),
	rate: z
		.object({ blocked_until: time.exactOptional() })
		.describe("The platform's rate limit holds the whole account."),
	garbage_lines: count.describe("Lines of the adapter that were not understood."),
	deliveries: z.record(deliveryState, count).describe("How many deliveries are in which state."),
	last_error: z.string().exactOptional(),
});
const AccountList = component("AccountList", {
	now: time.describe("By the daemon's clock."),
	accounts: z.array(AccountView),
	without_account: z
		.array(z.string())
		.exactOptional()
		.describe("Channels whose adapter has a `command` and that have no account: nothing starts them."),
});
const accountNames = z.array(z.object({ channel: z.string(), account: z.string() }));
const AccountChanges = component("AccountChanges", {
	added: accountNames,
	changed: accountNames,
	removed: accountNames.describe("Not listened to any more; answers on their way are given a minute."),
});
const AccountHealth = component("AccountHealth", { ok: z.boolean(), detail: z.string() });

const PairingView = component("Pairing", {
	code: z.string(),
	channel: z.string(),
	account: z.string(),
	sender: z.string(),
	sender_name: z.string().exactOptional(),
	requested_at: time,
	expires_at: time,
	approved_at: time.exactOptional(),
});
const PairingList = component("PairingList", { pairings: z.array(PairingView) });
const PairingRemoved = component("PairingRemoved", { removed: z.literal(true) });

export const ACCOUNT_ROUTES = {
	listAccounts: get("/v1/accounts", "Accounts on chat platforms with their processes, rate limits and deliveries.", {
		answer: AccountList,
	}),
	reloadAccounts: post(
		"/v1/accounts/reload",
		"Takes up accounts that `nexus adapter add` and `remove` stored or removed since the start.",
		{ answer: AccountChanges, errors: ["not_found"] },
	),
	checkAccount: post("/v1/accounts/{channel}/{account}/health", "Asks the platform whether the account works.", {
		params: accountParams,
		answer: AccountHealth,
		errors: ["not_found"],
	}),
	listPairings: get("/v1/pairings", "Pairing requests of senders, pending and approved, newest first.", {
		answer: PairingList,
	}),
	approvePairing: post("/v1/pairings/{code}/approve", "Approves the pairing code and notifies its sender.", {
		params: z.object({ code: name }),
		answer: PairingView,
		errors: ["not_found", "expired"],
	}),
	removePairing: remove("/v1/pairings/{channel}/{account}/{sender}", "Lets a sender in no longer.", {
		params: accountParams.extend({ sender: z.string().min(1).max(512) }),
		answer: PairingRemoved,
		errors: ["not_found"],
	}),
};

/** How many of the lab's deliveries are counted by state; there are few, and not all of them are shown. */
const LAB_COUNTED_MAX = 200;

export function accountHandlers({ channels, clock }: EdgeDeps): HandlersOf<typeof ACCOUNT_ROUTES> {
	const { outbound, lab, pairing } = channels;
	const ofLab = async (status: AccountStatus) => {
		const { channel, account } = status;
		const states = { active: 0, complete: 0, failed: 0, unknown: 0, stale: 0, damaged: 0 };
		for (const { state } of await lab.deliveries({ channel, account, limit: LAB_COUNTED_MAX })) states[state]++;
		return { ...accountView(status, states), ...IN_LAB };
	};
	const own = async (status: AccountStatus) =>
		accountView(status, await outbound.counts(status.channel, status.account));
	return {
		async listAccounts() {
			const now = clock.now();
			const idle = channels.idle();
			return {
				now,
				accounts: await Promise.all([...outbound.accounts().map(own), ...lab.accounts().map(ofLab)]),
				without_account: idle.length > 0 ? [...idle] : undefined,
			};
		},
		async reloadAccounts() {
			const { added, changed, removed } = await channels.reload();
			const named = (names: NexAccountChanges["added"]) => names.map(({ channel, id }) => ({ channel, account: id }));
			return { added: named(added), changed: named(changed), removed: named(removed) };
		},
		async checkAccount({ params: { channel, account } }) {
			const is = (each: AccountStatus) => each.channel === channel && each.account === account;
			const isOfLab = !outbound.accounts().some(is) && lab.accounts().some(is);
			const { ok, detail } = await (isOfLab ? lab.health(channel) : outbound.health(channel, account));
			return { ok, detail };
		},
		listPairings: async () => ({ pairings: (await pairing.list()).map(pairingView) }),
		approvePairing: async ({ params }) => pairingView(await pairing.approve(params.code)),
		async removePairing({ params }) {
			await pairing.revoke(params);
			return { removed: true };
		},
	};
}

function accountView(status: AccountStatus, deliveries: DeliveryCounts) {
	const processes = Object.entries(status.processes).map(([verb, process]) => [verb, viewOf(ProcessView, process)]);
	return viewOf(AccountView, {
		...status,
		processes: Object.fromEntries(processes) as z.infer<typeof AccountView>["processes"],
		rate: defined({ blocked_until: status.pausedUntil }),
		garbageLines: status.garbage,
		deliveries,
	});
}

const pairingView = (pairing: Pairing) => viewOf(PairingView, { ...pairing, requestedAt: pairing.createdAt });
