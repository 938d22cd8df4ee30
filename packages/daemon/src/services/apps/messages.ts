/** Messages between applications: one log for each recipient, whose reader keeps its own place. Nothing is sent again. */

import { NexusError, newId, Refused } from "@nexus-stream/protocol";
import { type Clock, elapsing } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { ADMIT_MS_MAX, type Bus, type Cursor } from "../../bus/bus.ts";
import type { Write } from "../../std/write.ts";
import type { NoticeLogs } from "../audit/notices.ts";
import { noticeWrites } from "../audit/rows.ts";
import { appTopic } from "../audit/topics.ts";
import { once } from "../kit/once.ts";
import { appOf, checkedAppId, OWNER_APP, type Principal } from "../kit/principal.ts";
import type { Quota } from "../kit/quota.ts";
import type { IdempotencyRows } from "../kit/rows.ts";
import { MESSAGE_LIMITS, type MessageLimits, MessagePace } from "./limits.ts";
import type { Acknowledgement, Applications, AppMessageRecord, AppMessages, NewAppMessage } from "./port.ts";
import { type Receipt, type ReceiptRows, receiptWrites } from "./rows.ts";

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

export class AppMessageLogs implements AppMessages {
	readonly #deps: AppMessageDeps;
	readonly #limits: MessageLimits;
	readonly #pace: MessagePace;
	#sweptAt: number;

	constructor(deps: AppMessageDeps) {
		this.#deps = deps;
		this.#limits = withDefaults(MESSAGE_LIMITS, deps.limits);
		this.#pace = new MessagePace(this.#limits, elapsing(deps.clock));
		this.#sweptAt = deps.clock.now();
	}

	async send(message: NewAppMessage, principal: Principal): Promise<{ messageId: string }> {
		const { bus, clock, quota } = this.#deps;
		const from = this.#known(appOf(principal, message.from));
		check(message, this.#limits);
		const to = this.#known(checkedAppId(message.to));
		const { idempotencyKey: key, ...body } = message;
		const messageId = newId("msg", clock.now());
		const send = { ...body, from, payload: base64(body.payload) };
		const request = { appId: from, key, body: { send }, result: messageId };
		const { id } = await once(this.#deps, request, async (claim) => {
			this.#pace.take(from, to, message.payload.byteLength);
			const at = clock.now();
			const record = recordOf(messageId, from, message, at);
			await quota?.check(from, message.payload.byteLength);
			const receipt = message.requireAck ? [receiptWrites.add(record)] : [];
			await bus.write([...claim, post(to, record, from), ...receipt, ...this.#sweep(at)], ADMIT_MS_MAX);
		});
		return { messageId: id };
	}

	async acknowledge(acknowledgement: Acknowledgement, principal: Principal): Promise<void> {
		const { bus, rows, clock } = this.#deps;
		const { messageId, failed, reason } = acknowledgement;
		const { settledAt, ...receipt } = await find(rows, messageId, appOf(principal, acknowledgement.app));
		if (settledAt !== undefined) return;
		const at = clock.now();
		const record: AppMessageRecord = {
			...receipt,
			event: failed ? "failed" : "acked",
			requireAck: true,
			at,
			reason: reason ? reason.slice(0, REASON_CHARS_MAX).toWellFormed() : undefined,
		};
		try {
			await bus.write([receiptWrites.settle(messageId, at), post(record.from, record, record.to)], ADMIT_MS_MAX);
		} catch (cause) {
			// Two acknowledgements came at once: the sender gets the first.
			if (!(cause instanceof Refused && cause.refusal === "conflict")) throw cause;
		}
	}

	async open(app: string, after: number | undefined, principal: Principal): Promise<Cursor> {
		return this.#deps.notices.cursor(appTopic(this.#known(appOf(principal, app))), after);
	}

	/** The owner takes messages, too, under the name that it acts by. */
	#known(id: string): string {
		if (id === OWNER_APP || this.#deps.apps.has(id)) return id;
		throw new NexusError("not_found", `there is no application ${id}`);
	}

	/** From time to time a send also removes receipts that can no longer be settled. */
	#sweep(now: number): Write[] {
		if (now - this.#sweptAt < SWEEP_MS) return [];
		this.#sweptAt = now;
		return [receiptWrites.forget(now - RECEIPTS_KEPT_MS)];
	}
}

const post = (to: string, record: AppMessageRecord, countedFor: string): Write =>
	noticeWrites.post(appTopic(to), JSON.stringify(record), record.at, countedFor);

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
