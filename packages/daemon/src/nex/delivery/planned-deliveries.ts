/** Creates what a delivery needs: its row, one per run and chat, and the log of a text that is not from a run. */

import { isSameChat } from "@nexus-stream/platforms";
import {
	CHUNK_BYTES,
	checksumOf,
	crc32,
	encodeFrame,
	type Frame,
	messageIdOf,
	NexusError,
	newId,
	Refused,
	traceIdOf,
} from "@nexus-stream/protocol";
import type { KeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { Bus } from "../../bus/bus.ts";
import { type Deliveries, type Delivery, deliveryWrites, type NewDelivery } from "../../ledger/deliveries/port.ts";
import type { Write } from "../../std/write.ts";
import type { Accounts } from "../accounts/accounts.ts";
import type { DeliverRequest, PlannedDelivery, RunDelivery } from "../port.ts";
import type { DeliveryRunner, DeliveryRunnerDeps } from "./delivery-runner.ts";

/** Deliveries of one run and account that are compared by chat. Equal addresses are unique in the store itself. */
const CHATS_MAX = 1000;

export interface PlanDeps extends Pick<DeliveryRunnerDeps, "bus" | "accounts" | "limits" | "stamp" | "signal"> {
	write: Bus["write"];
	deliveries: Deliveries;
	runner: DeliveryRunner;
	byRun: KeyedQueue;
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

/** A third of a chunk's bytes: no UTF-16 unit takes more than three. */
const CHUNK_CHARS = Math.floor(CHUNK_BYTES.text / 3);

/** How long a caller waits for a store that refuses commits before it gets an error. */
export const PATIENCE_MS = 1000;

/**
 * Writes a text outside a run as a finished log with the frames of a run, so that it is delivered the same way. Resolves with the log's name
 * once it is durable.
 */
export async function writeTextLog(
	bus: Bus,
	text: string,
	stamp: () => number,
	log = newId("txt", stamp()),
	writes: readonly Write[] = [],
): Promise<string> {
	const records = framesOf(log, text, stamp()).map(encodeFrame);
	const writer = await bus.create({ log, kind: "text" }, records, { with: writes, patienceMs: PATIENCE_MS });
	await writer.seal([], [], PATIENCE_MS);
	return log;
}

/** The text has no session, and its length is known from the start (P1.11, P1.14). */
function framesOf(log: string, text: string, ts: number): Frame[] {
	const pieces = piecesOf(text);
	const message_id = messageIdOf(log, 1);
	const names = { message_id, run_id: log, trace_id: traceIdOf(log), correlation_group: log };
	const type = { modality: "text", content_type: "text/markdown" } as const;
	const length = { total_chunks: pieces.length, checksum: checksumOf(crc32(text)) };
	const usage = { input: -1, output: -1 };
	const is_partial = pieces.length > 1;
	return [
		{ type: "stream.begin", ...names, ...type, expected_chunks: pieces.length, ts },
		...pieces.map(
			(payload, n): Frame => ({ type: "stream.chunk", message_id, seq_no: n + 1, payload, is_partial, ts }),
		),
		{ type: "stream.end", message_id, ...length, final: true, reason: "completed", usage, ts },
	];
}

/** Never cuts between the halves of a surrogate pair. */
function piecesOf(text: string): string[] {
	const pieces: string[] = [];
	for (let at = 0; at < text.length; ) {
		let end = Math.min(at + CHUNK_CHARS, text.length);
		const last = text.charCodeAt(end - 1);
		if (end < text.length && last >= 0xd800 && last <= 0xdbff) end++;
		pieces.push(text.slice(at, end));
		at = end;
	}
	return pieces;
}

/** Logs that a process left unsealed because it died between the two writes; their text is complete. */
export const orphanedTexts = async (bus: Bus): Promise<string[]> =>
	(await bus.list({ kind: "text", orphaned: true })).map(({ log }) => log);

export async function sealOrphan(bus: Bus, log: string): Promise<void> {
	try {
		await (await bus.reopen(log)).seal([], [], PATIENCE_MS);
	} catch (cause) {
		// Another daemon seals it, or has sealed it.
		if (!(cause instanceof NexusError) || (cause.code !== "conflict" && cause.code !== "not_found")) throw cause;
	}
}
