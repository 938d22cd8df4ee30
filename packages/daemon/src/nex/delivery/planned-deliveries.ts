/** What is owed to whom: takes deliveries on record, once for each run and chat. */

import { isSameChat } from "@nexus-stream/platforms";
import { NexusError, newId, Refused } from "@nexus-stream/protocol";
import type { Bus } from "../../bus/bus.ts";
import { type Deliveries, type Delivery, deliveryWrites, type NewDelivery } from "../../ledger/ledger.ts";
import type { KeyedLock } from "../../std/lock.ts";
import type { Write } from "../../std/write.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { DeliverRequest, RunDelivery } from "../port.ts";
import type { DeliveryRunner } from "./delivery-runner.ts";
import { PATIENCE_MS, writeTextLog } from "./text-log.ts";

/** Chats of one account that one run goes to, which are compared; the store itself knows those with equal addresses. */
const CHATS_MAX = 1000;

export interface PlanDeps {
	bus: Bus;
	write: Bus["write"];
	deliveries: Deliveries;
	accounts: Accounts;
	runner: DeliveryRunner;
	limits: { textCharsMax: number };
	stamp: () => number;
	/** By run. */
	inOrder: KeyedLock;
	signal: AbortSignal;
}

export function planDelivery(
	accounts: Accounts,
	request: RunDelivery,
	now: number,
): { delivery: NewDelivery; write: Write } {
	const { target, options, runId } = request;
	const { channel, id: account } = request.account;
	accounts.check(channel, account);
	const delivery = { id: newId("dlv", now), runId, channel, account, target, options: { ...options }, createdAt: now };
	return { delivery, write: deliveryWrites.open(delivery) };
}

/** The request's delivery as it is on record, and whether there is something to do for it. */
export async function take(deps: PlanDeps, request: DeliverRequest): Promise<{ delivery: Delivery; due: boolean }> {
	deps.accounts.check(request.account.channel, request.account.id);
	const wanted = { ...request, runId: await logOf(deps, request) };
	return deps.inOrder(wanted.runId, deps.signal, async () => {
		const known = await knownOf(deps, wanted);
		return known ? takeAgain(deps, known) : takeFirst(deps, wanted);
	});
}

/** The oldest of the same chat: two addresses may name one, as the platform's adapter knows. */
async function knownOf({ deliveries }: PlanDeps, { runId, account, target }: RunDelivery) {
	const { channel, id } = account;
	const rows = await deliveries.list({ runId, channel, account: id, limit: CHATS_MAX });
	return rows.findLast((row) => isSameChat(channel, row.target, target));
}

async function takeFirst(deps: PlanDeps, request: RunDelivery): Promise<{ delivery: Delivery; due: boolean }> {
	const { delivery, write } = planDelivery(deps.accounts, request, deps.stamp());
	try {
		await deps.write([write], PATIENCE_MS);
	} catch (cause) {
		const isDuplicate = cause instanceof Refused && cause.refusal === "duplicate";
		const winner = isDuplicate ? await knownOf(deps, request) : undefined;
		if (!winner) throw cause;
		return { delivery: winner, due: false };
	}
	return { delivery: begun(delivery), due: true };
}

/** The row of a delivery that has just been put on record. */
export const begun = (delivery: NewDelivery): Delivery => ({
	...delivery,
	state: "active",
	cursor: 0,
	updatedAt: delivery.createdAt,
	messages: [],
});

/** One that failed or became stale is taken up where it stopped, unless something of it may be out already without our knowing. */
async function takeAgain(deps: PlanDeps, known: Delivery): Promise<{ delivery: Delivery; due: boolean }> {
	const { error: _error, endedAt: _endedAt, ...row } = known;
	const isOver = row.state === "failed" || row.state === "stale";
	const isDoubtful = row.messages.some(({ state }) => state !== "sent" && state !== "open");
	if (!isOver || isDoubtful || deps.runner.live(row.id)) return { delivery: known, due: false };
	const now = deps.stamp();
	try {
		await deps.write([deliveryWrites.reopen(row.id, now)], PATIENCE_MS);
	} catch (cause) {
		// Another daemon was asked too, and was faster.
		if (!(cause instanceof Refused) || cause.refusal !== "conflict") throw cause;
		return { delivery: (await deps.deliveries.get(row.id)) ?? known, due: false };
	}
	return { delivery: { ...row, state: "active", updatedAt: now }, due: true };
}

/** The log that a request is about. */
async function logOf({ bus, stamp, limits }: PlanDeps, request: DeliverRequest): Promise<string> {
	if ("runId" in request) {
		if (await bus.describe(request.runId)) return request.runId;
		throw new NexusError("not_found", `There is no run ${request.runId}, or its log is no longer kept.`);
	}
	const { text, log, beside } = request;
	if (text.trim() === "") throw new NexusError("invalid", "There is nothing to deliver: the text is empty.");
	if (text.length > limits.textCharsMax) {
		throw new NexusError("too_large", `A text has at most ${limits.textCharsMax} characters.`);
	}
	return writeTextLog(bus, text, stamp, log, beside);
}
