/** Messages between applications: one log for each recipient, whose reader keeps its own place. Nothing is sent again. */

import { NexusError, newId, Refused } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Bus } from "../../bus/bus.ts";
import { ADMIT_MS_MAX } from "../../bus/bus.ts";
import type { NoticeLogs } from "../audit/notices.ts";
import { noticeWrites } from "../audit/rows.ts";
import { appTopic } from "../audit/topics.ts";
import { once } from "../kit/once.ts";
import { appOf, checkedAppId, OWNER_APP } from "../kit/principal.ts";
import type { Quota } from "../kit/quota.ts";
import type { IdempotencyRows } from "../kit/rows.ts";
import { MESSAGE_LIMITS, type MessageLimits } from "./limits.ts";
import { createPace } from "./pace.ts";
import type { Applications, AppMessageRecord, AppMessages, NewAppMessage } from "./port.ts";
import type { ReceiptRows } from "./rows.ts";
import { type Receipt, receiptWrites } from "./rows.ts";

export interface AppMessageDeps {
	bus: Pick<Bus, "write">;
	rows: { receipts: ReceiptRows; idempotency: IdempotencyRows };
	apps: Pick<Applications, "has">;
	notices: NoticeLogs;
	clock: Clock;
	limits?: Partial<MessageLimits>;
	/** Left out: applications store what they like. */
	quota?: Pick<Quota, "check">;
}

/** As long as the messages themselves. */
const RECEIPTS_KEPT_MS = 7 * 24 * 60 * 60_000;
const SWEEP_MS = 60 * 60_000;
const TYPE_CHARS_MAX = 128;
const USER_CHARS_MAX = 256;
const REASON_CHARS_MAX = 1000;

export function createAppMessages(deps: AppMessageDeps): AppMessages {
	const { bus, rows, apps, notices, clock } = deps;
	const limits = withDefaults(MESSAGE_LIMITS, deps.limits);
	const pace = createPace(limits, elapsing(clock));
	let sweptAt = clock.now();
	/** The owner takes messages, too, under the name that it acts by. */
	const known = (id: string): string => {
		if (id === OWNER_APP || apps.has(id)) return id;
		throw new NexusError("not_found", `there is no application ${id}`);
	};
	/** From time to time a send also removes receipts that can no longer be settled. */
	const sweep = (now: number) => {
		if (now - sweptAt < SWEEP_MS) return [];
		sweptAt = now;
		return [receiptWrites.forget(now - RECEIPTS_KEPT_MS)];
	};
	return {
		async send(message, principal) {
			const from = known(appOf(principal, message.from));
			check(message, limits);
			const to = known(checkedAppId(message.to));
			const { idempotencyKey, ...body } = message;
			const messageId = newId("msg", clock.now());
			const request = {
				appId: from,
				key: idempotencyKey,
				body: { send: { ...body, from, payload: base64(body.payload) } },
				result: messageId,
			};
			const { id } = await once({ rows, clock }, request, async (claim) => {
				pace.take(from, to, message.payload.byteLength);
				const at = clock.now();
				const record = recordOf(messageId, from, message, at);
				await deps.quota?.check(from, message.payload.byteLength);
				await bus.write(
					[
						...claim,
						noticeWrites.post(appTopic(to), JSON.stringify(record), at, from),
						...(message.requireAck ? [receiptWrites.add(receiptOf(record))] : []),
						...sweep(at),
					],
					ADMIT_MS_MAX,
				);
			});
			return { messageId: id };
		},
		async acknowledge(acknowledgement, principal) {
			const { messageId, failed, reason } = acknowledgement;
			const receipt = await find(rows, messageId, appOf(principal, acknowledgement.app));
			if (receipt.settledAt !== undefined) return;
			const at = clock.now();
			const record: AppMessageRecord = {
				...wordsOf(receipt),
				event: failed ? "failed" : "acked",
				requireAck: true,
				at,
				reason: reason ? reason.slice(0, REASON_CHARS_MAX).toWellFormed() : undefined,
			};
			try {
				await bus.write(
					[
						receiptWrites.settle(messageId, at),
						noticeWrites.post(appTopic(receipt.from), JSON.stringify(record), at, receipt.to),
					],
					ADMIT_MS_MAX,
				);
			} catch (cause) {
				// Two acknowledgements came at once: the sender gets the first.
				if (cause instanceof Refused && cause.refusal === "conflict") return;
				throw cause;
			}
		},
		async open(app, after, principal) {
			return notices.cursor(appTopic(known(appOf(principal, app))), after);
		},
	};
}

function check({ payload, messageType, subjectUserId = "" }: NewAppMessage, { payloadBytesMax }: MessageLimits): void {
	if (payload.byteLength > payloadBytesMax)
		throw new NexusError("too_large", `a message has ${payloadBytesMax} bytes at most, not ${payload.byteLength}`, {
			reason: "APP_MESSAGE_PAYLOAD_TOO_LARGE",
		});
	if (messageType === "" || messageType.length > TYPE_CHARS_MAX)
		throw new NexusError("invalid", `message_type: say in 1 to ${TYPE_CHARS_MAX} characters what the message is`);
	if (subjectUserId.length > USER_CHARS_MAX)
		throw new NexusError("invalid", `subject_user_id has at most ${USER_CHARS_MAX} characters`);
}

/** Another application's is as if it were not there. */
async function find(rows: { receipts: ReceiptRows }, messageId: string, app: string): Promise<Receipt> {
	const receipt = await rows.receipts.get(messageId);
	if (receipt?.to === app) return receipt;
	throw new NexusError("not_found", `no message ${messageId} to ${app} waits to be acknowledged`);
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

const recordOf = (messageId: string, from: string, message: NewAppMessage, at: number): AppMessageRecord => ({
	event: "received",
	messageId,
	from,
	to: message.to,
	subjectUserId: message.subjectUserId || undefined,
	messageType: message.messageType,
	payload: base64(message.payload),
	requireAck: message.requireAck,
	sentAt: at,
	at,
});

const wordsOf = ({ messageId, from, to, subjectUserId, messageType, sentAt }: Omit<Receipt, "settledAt">) => ({
	messageId,
	from,
	to,
	messageType,
	sentAt,
	subjectUserId,
});

const receiptOf = (record: AppMessageRecord): Omit<Receipt, "settledAt"> => wordsOf(record);
