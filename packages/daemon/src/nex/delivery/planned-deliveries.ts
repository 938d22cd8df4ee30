/** Creates delivery rows: one per run and chat. */

import { isSameChat } from "@nexus-stream/platforms";
import { NexusError, newId, Refused } from "@nexus-stream/protocol";
import type { KeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { Bus } from "../../bus/bus.ts";
import { type Deliveries, type Delivery, deliveryWrites, type NewDelivery } from "../../ledger/deliveries/port.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { DeliverRequest, PlannedDelivery, RunDelivery } from "../port.ts";
import type { DeliveryRunner } from "./delivery-runner.ts";
import { PATIENCE_MS, writeTextLog } from "./text-log.ts";

/** Deliveries of one run and account that are compared by chat. Equal addresses are unique in the store itself. */
const CHATS_MAX = 1000;

export interface PlanDeps {
	bus: Bus;
	write: Bus["write"];
	deliveries: Deliveries;
	accounts: Accounts;
	runner: DeliveryRunner;
	limits: { textCharsMax: number };
	stamp: () => number;
	byRun: KeyedQueue;
	signal: AbortSignal;
}

export function planDelivery(accounts: Accounts, request: RunDelivery, now: number): PlannedDelivery {
	const { target, options, runId } = request;
	const { channel, id: account } = request.account;
	accounts.check(channel, account);
	const delivery = { id: newId("dlv", now), runId, channel, account, target, options: { ...options }, createdAt: now };
	return { delivery, write: deliveryWrites.open(delivery) };
}

export interface RecordedDelivery {
	delivery: Delivery;
	/** The delivery is new or was reopened, and has to be launched. */
	due: boolean;
}

/** Returns the request's delivery once it is on record. */
export async function take(deps: PlanDeps, request: DeliverRequest): Promise<RecordedDelivery> {
	deps.accounts.check(request.account.channel, request.account.id);
	const wanted = { ...request, runId: await logOf(deps, request) };
	const record = async () => {
		const existing = await existingOf(deps, wanted);
		return existing ? reopen(deps, existing) : open(deps, wanted);
	};
	return deps.byRun.run(wanted.runId, record, deps.signal);
}

/** The oldest delivery to the same chat: the platform's adapter knows when two addresses name one chat. */
async function existingOf({ deliveries }: PlanDeps, { runId, account, target }: RunDelivery) {
	const { channel, id } = account;
	const rows = await deliveries.list({ runId, channel, account: id, limit: CHATS_MAX });
	return rows.findLast((row) => isSameChat(channel, row.target, target));
}

async function open(deps: PlanDeps, request: RunDelivery): Promise<RecordedDelivery> {
	const { delivery, write } = planDelivery(deps.accounts, request, deps.stamp());
	try {
		await deps.write([write], PATIENCE_MS);
	} catch (cause) {
		const isDuplicate = cause instanceof Refused && cause.refusal === "duplicate";
		const winner = isDuplicate ? await existingOf(deps, request) : undefined;
		if (!winner) throw cause;
		return { delivery: winner, due: false };
	}
	return { delivery: newRow(delivery), due: true };
}

/** The row of a delivery that was just recorded. */
export const newRow = (delivery: NewDelivery): Delivery => ({
	...delivery,
	state: "active",
	cursor: 0,
	updatedAt: delivery.createdAt,
	messages: [],
});

/** A failed or stale delivery resumes where it stopped, unless it is unknown whether one of its messages was created. */
async function reopen(deps: PlanDeps, existing: Delivery): Promise<RecordedDelivery> {
	const { error: _error, endedAt: _endedAt, ...row } = existing;
	const isOver = row.state === "failed" || row.state === "stale";
	const isDoubtful = row.messages.some(({ state }) => state !== "sent" && state !== "open");
	if (!isOver || isDoubtful || deps.runner.live(row.id)) return { delivery: existing, due: false };
	const now = deps.stamp();
	try {
		await deps.write([deliveryWrites.reopen(row.id, now)], PATIENCE_MS);
	} catch (cause) {
		// Another daemon reopened it first.
		if (!(cause instanceof Refused) || cause.refusal !== "conflict") throw cause;
		return { delivery: (await deps.deliveries.get(row.id)) ?? existing, due: false };
	}
	return { delivery: { ...row, state: "active", updatedAt: now }, due: true };
}

/** The log of the request's run, or a new log with its text. */
async function logOf({ bus, stamp, limits }: PlanDeps, request: DeliverRequest): Promise<string> {
	if ("runId" in request) {
		if (await bus.describe(request.runId)) return request.runId;
		throw new NexusError("not_found", `There is no run ${request.runId}, or its log is no longer kept.`);
	}
	const { text, log, with: writes } = request;
	if (text.trim() === "") throw new NexusError("invalid", "There is nothing to deliver: the text is empty.");
	if (text.length > limits.textCharsMax) {
		throw new NexusError("too_large", `A text has at most ${limits.textCharsMax} characters.`);
	}
	return writeTextLog(bus, text, stamp, log, writes);
}
