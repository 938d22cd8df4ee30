/** Handlers for chat platforms, and their JSON views. */

import {
	type AccountJson,
	type DeliveryJson,
	type LabStateJson,
	NexusError,
	newId,
	type PairingJson,
	type ProcessJson,
	toNexusError,
} from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import type { DeliveryCounts } from "../../ledger/deliveries/port.ts";
import type { Pairing } from "../../ledger/pairings/port.ts";
import type { AccountName, AccountStatus, DeliverOptions, DeliverRequest, DeliveryInfo } from "../../nex/nex.ts";
import { defined } from "../../std/defined.ts";
import type { Handlers } from "../http/handler.ts";
import { webhookHandlers } from "../http/webhook.ts";
import type { Channels, EdgeDeps, EdgeLimits, Lab, LabState } from "../port.ts";

const LIMIT_DEFAULT = 50;
/** How many of the lab's deliveries are counted by state; there are few, and not all of them are shown. */
const LAB_COUNTED_MAX = 200;
export function channelHandlers(deps: EdgeDeps, limits: EdgeLimits) {
	const { channels, log, clock = systemClock } = deps;
	const needed = (): Channels => {
		if (channels) return channels;
		throw new NexusError("not_found", "no channels are configured; see docs/configuration.md");
	};
	return {
		...accountHandlers(channels, needed, clock),
		...deliveryHandlers({ ...deps, clock }, needed, limits),
		...webhookHandlers(needed, limits, clock, log),
		...labHandlers(needed),
	};
}

const IN_LAB = { lab: true as const };

function accountHandlers(channels: Channels | undefined, needed: () => Channels, clock: Clock) {
	const inLab = async (lab: Lab) => {
		const views = lab.accounts().map(async (status) => {
			const { channel, account } = status;
			const states = { active: 0, complete: 0, failed: 0, unknown: 0, stale: 0, damaged: 0 };
			for (const { state } of await lab.deliveries({ channel, account, limit: LAB_COUNTED_MAX })) states[state]++;
			return { ...accountView(status, states), ...IN_LAB };
		});
		return Promise.all(views);
	};
	const own = async ({ outbound }: Channels) => {
		const views = outbound.accounts().map(async (status) => {
			return accountView(status, await outbound.counts(status.channel, status.account));
		});
		return Promise.all(views);
	};
	return {
		async listAccounts() {
			const now = clock.now();
			if (!channels) return { now, accounts: [] };
			const { lab } = channels;
			const idle = channels.idle?.() ?? [];
			return {
				now,
				accounts: [...(await own(channels)), ...(lab ? await inLab(lab) : [])],
				without_account: idle.length > 0 ? [...idle] : undefined,
			};
		},
		async reloadAccounts() {
			const { reload } = needed();
			if (!reload) throw new NexusError("not_found", "the accounts of this daemon are fixed");
			const { added, changed, removed } = await reload();
			const named = (names: readonly AccountName[]) => names.map(({ channel, id }) => ({ channel, account: id }));
			return { added: named(added), changed: named(changed), removed: named(removed) };
		},
		async checkAccount({ params: { channel, account } }) {
			const { outbound, lab } = needed();
			const is = (each: AccountStatus) => each.channel === channel && each.account === account;
			const ofLab = !outbound.accounts().some(is) && lab?.accounts().some(is) ? lab : undefined;
			const { ok, detail } = await (ofLab ? ofLab.health(channel) : outbound.health(channel, account));
			return { ok, detail };
		},
		async listPairings() {
			return { pairings: ((await channels?.pairing.list()) ?? []).map(pairingView) };
		},
		async approvePairing({ params }) {
			return pairingView(await needed().pairing.approve(params.code));
		},
		async removePairing({ params }) {
			await needed().pairing.revoke(params);
			return { removed: true };
		},
	} satisfies Partial<Handlers>;
}

function deliveryHandlers(deps: EdgeDeps & { clock: Clock }, needed: () => Channels, limits: EdgeLimits) {
	const { channels, clock } = deps;
	/** The same key gives the first one's delivery, also when the daemon died before that was on record. */
	const deliverText = async (request: Omit<DeliverRequest, "runId">, text: string, key: string | undefined) => {
		const { outbound } = needed();
		const log = newId("txt", clock.now());
		let first: DeliveryInfo | undefined;
		const asked = { key, body: { ...request, text }, result: log };
		const { id: runId } = await deps
			.deliverOnce(asked, async (writes) => {
				first = await outbound.deliver({ ...request, text, ...(writes.length > 0 && { log, with: writes }) });
			})
			.catch((cause: unknown) => {
				const { reason, message } = toNexusError(cause);
				throw reason === "IDEMPOTENCY_CONFLICT" ? new NexusError("conflict", message) : cause;
			});
		return first ?? outbound.deliver({ ...request, runId });
	};
	return {
		async listDeliveries({ query: { run, limit, ...query } }) {
			const most = Math.min(limit ?? LIMIT_DEFAULT, limits.listItemsMax);
			const asked = defined({ ...query, runId: run, limit: most }) as Parameters<Channels["outbound"]["deliveries"]>[0];
			const own = ((await channels?.outbound.deliveries(asked)) ?? []).map(deliveryView);
			const inLab = (await channels?.lab?.deliveries(asked)) ?? [];
			const all = [...own, ...inLab.map((delivery) => ({ ...deliveryView(delivery), ...IN_LAB }))];
			// Both are lists by id, so a page of them together ends where the next one begins in each.
			const newestFirst = (one: DeliveryJson, other: DeliveryJson) => (one.delivery_id < other.delivery_id ? 1 : -1);
			return { deliveries: all.toSorted(newestFirst).slice(0, most) };
		},
		async postDelivery({ body }) {
			const { channel, account, target, disable_streaming: disableStreaming, tools, reasoning } = body;
			const options = defined({ disableStreaming, tools, reasoning }) as DeliverOptions;
			const place = {
				account: { channel, id: account },
				target,
				options: Object.keys(options).length > 0 ? options : undefined,
			};
			const { id, runId } = await ("run_id" in body
				? needed().outbound.deliver({ ...place, runId: body.run_id })
				: deliverText(place, body.text, body.idempotency_key));
			return { delivery_id: id, run_id: "run_id" in body ? runId : undefined };
		},
	} satisfies Partial<Handlers>;
}

function labHandlers(needed: () => Channels) {
	const lab = () => {
		const { lab } = needed();
		if (lab) return lab;
		throw new NexusError("unavailable", "this installation has no channel lab");
	};
	return {
		async postLab({ body }) {
			const { labId, runId, session, deliveries } = await lab().send(body.text, body.channels);
			const channels = deliveries.map(({ channel, deliveryId }) => ({ channel, delivery_id: deliveryId }));
			return { lab_id: labId, run_id: runId, session, channels };
		},
		getLabState: async () => labView(await lab().state()),
		async postLabFault({ body }) {
			await lab().fault(body);
			return { set: true };
		},
		postLabQuestion: async ({ body }) => ({ question_id: await lab().ask(body.text, body.channels) }),
		async postLabPress({ body }) {
			await lab().press(body.channel, body.message, body.label);
			return { pressed: true };
		},
	} satisfies Partial<Handlers>;
}

const labView = ({ now, runId, questionOpen, channels }: LabState): LabStateJson =>
	defined({
		now,
		run_id: runId,
		question_open: questionOpen,
		channels: channels.map(({ delivery, pausedUntil, ...shown }) =>
			defined({
				...shown,
				mode: delivery?.mode,
				state: delivery?.state,
				position: delivery?.cursor,
				delivery: delivery && { ...deliveryView(delivery), ...IN_LAB },
				rate_limited_until: pausedUntil,
			}),
		),
	});

function processView(process: AccountStatus["processes"]["stream"]): ProcessJson | undefined {
	if (!process) return undefined;
	const { state, pid, restarts, until, lastError } = process;
	return defined({ state, pid, restarts, until, last_error: lastError });
}

const accountView = (status: AccountStatus, states: DeliveryCounts): AccountJson =>
	defined({
		channel: status.channel,
		account: status.account,
		processes: defined({
			monitor: processView(status.processes.monitor),
			stream: processView(status.processes.stream),
			send: processView(status.processes.send),
		}),
		rate: defined({ blocked_until: status.pausedUntil }),
		garbage_lines: status.garbage,
		deliveries: states,
		last_error: status.lastError,
	});

export const deliveryView = (delivery: DeliveryInfo): DeliveryJson =>
	defined({
		delivery_id: delivery.id,
		run_id: delivery.runId,
		channel: delivery.channel,
		account: delivery.account,
		target: delivery.target,
		mode: delivery.mode,
		state: delivery.state,
		position: delivery.cursor,
		messages: delivery.messages.map(({ ordinal, messageId, from, to, shown, state, error }) =>
			defined({ ordinal, message_id: messageId, from, to, shown, state, error }),
		),
		error: delivery.error,
		created_at: delivery.createdAt,
		updated_at: delivery.updatedAt,
	});

const pairingView = (pairing: Pairing): PairingJson =>
	defined({
		code: pairing.code,
		channel: pairing.channel,
		account: pairing.account,
		sender: pairing.sender,
		sender_name: pairing.senderName,
		requested_at: pairing.createdAt,
		expires_at: pairing.expiresAt,
		approved_at: pairing.approvedAt,
	});
