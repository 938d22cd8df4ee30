/** Messages between applications over the wire. */

import { expect, it } from "vitest";
import {
	AppMessageEventType as Event,
	RuntimeAppService,
} from "../../../packages/client/src/gen/nexus/runtime/v1/app_pb.ts";
import type { Services } from "../../../packages/daemon/src/runtime/wiring/port.ts";
import { OWNER } from "../../services/parts.ts";
import { until } from "../../until.ts";
import { appMessagesOf } from "../audit-kit.ts";
import { type Ended, errorOf, kitForTest, readStream, statusOf } from "./kit.ts";

async function start() {
	const services: Partial<Services> = {};
	const kit = await kitForTest({ services });
	// Connect is loaded by the first call, which looks them up.
	Object.assign(services, { appMessages: appMessagesOf(kit.rig) });
	const clientOf = async (id: string) => {
		const { token } = await kit.rig.apps.add({ id }, OWNER);
		return kit.client(RuntimeAppService, "grpc", token);
	};
	return { kit, shop: await clientOf("shop"), mail: await clientOf("mail"), owner: kit.client(RuntimeAppService) };
}

async function firstOf<T>(stream: AsyncIterable<T>): Promise<T> {
	for await (const event of stream) return event;
	throw new Error("the stream ended without an event");
}

const hello = { toAppId: "mail", messageType: "hello", payload: Buffer.from("hi") };

it("Z22: a message reaches its recipient live; its sender hears of the ack; both resume by sequence", async () => {
	const { shop, mail } = await start();
	const abort = new AbortController();
	const seen: { sequence: bigint; text: string }[] = [];
	const reading = readStream(mail.subscribeAppMessages({}, { signal: abort.signal }), ({ sequence, message }) =>
		seen.push({ sequence, text: Buffer.from(message!.payload).toString() }),
	);
	const { messageId } = await shop.sendAppMessage({ ...hello, requireAck: true, subjectUserId: "u" });
	await until("the message", () => seen.length > 0 || shop.sendAppMessage(hello).then(() => false));
	await mail.ackAppMessage({ messageId });
	abort.abort();
	await reading;
	expect(await firstOf(mail.subscribeAppMessages({ after: 0n }))).toMatchObject({
		sequence: 1n,
		eventType: Event.RECEIVED,
		message: { messageId, fromAppId: "shop", toAppId: "mail", subjectUserId: "u", requireAck: true },
	});
	expect(await firstOf(shop.subscribeAppMessages({ after: 0n }))).toMatchObject({
		sequence: 1n,
		eventType: Event.ACKED,
		message: { messageId, payload: new Uint8Array() },
	});
	await shop.sendAppMessage({ ...hello, messageType: "last" });
	const { sequence } = seen.at(-1)!;
	expect((await firstOf(mail.subscribeAppMessages({ after: sequence }))).sequence).toBe(sequence + 1n);
});

it("Z25: another application's name is refused, and its log is not there", async () => {
	const { shop, mail, owner } = await start();
	const forbidden = { code: "PermissionDenied", reason: "REASON_CODE_FORBIDDEN" };
	expect(statusOf(await errorOf(shop.sendAppMessage({ ...hello, fromAppId: "mail" })))).toEqual(forbidden);
	expect(statusOf((await readStream(shop.subscribeAppMessages({ appId: "mail", after: 0n }))).error)).toEqual(
		forbidden,
	);
	const { messageId } = await shop.sendAppMessage({ ...hello, requireAck: true });
	expect(statusOf(await errorOf(shop.ackAppMessage({ appId: "mail", messageId })))).toEqual(forbidden);
	expect(statusOf(await errorOf(shop.ackAppMessage({ messageId })))).toMatchObject({ code: "NotFound" });
	expect(statusOf(await errorOf(shop.sendAppMessage({ ...hello, toAppId: "nobody" })))).toMatchObject({
		code: "NotFound",
	});
	// The owner may name any.
	const toMail = await firstOf(owner.subscribeAppMessages({ appId: "mail", after: 0n }));
	expect(toMail.message?.messageId).toBe(messageId);
	await mail.ackAppMessage({ messageId, failed: true, reason: "full" });
	const toShop = await firstOf(owner.subscribeAppMessages({ appId: "shop", after: 0n }));
	expect(toShop).toMatchObject({ eventType: Event.FAILED, reason: "full" });
});

it("Z25: the stream of an application that is removed is cut", async () => {
	const { kit, shop, mail } = await start();
	let seen = 0;
	const reading: Promise<Ended<unknown>> = readStream(mail.subscribeAppMessages({ after: 0n }), () => seen++);
	await shop.sendAppMessage(hello);
	await until("the message", () => seen > 0);
	await kit.rig.apps.remove("mail", OWNER);
	expect(statusOf((await reading).error)).toEqual({ code: "Canceled", reason: "REASON_CODE_UNAUTHENTICATED" });
});
