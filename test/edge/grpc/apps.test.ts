/** Messages between applications over the wire. */

import { expect, it } from "vitest";
import {
	AppMessageEventType as Event,
	RuntimeAppService,
} from "../../../packages/client/src/gen/nexus/runtime/v1/app_pb.ts";
import type { Services } from "../../../packages/daemon/src/runtime/wiring/port.ts";
import { AppMessageLogs } from "../../../packages/daemon/src/services/apps/messages.ts";
import { noticeLogs } from "../../../packages/daemon/src/services/audit/notices.ts";
import { systemClock } from "../../../packages/protocol/src/clock.ts";
import { until } from "../../until.ts";
import { type Ended, errorOf, kitForTest, readStream, statusOf } from "./kit.ts";

const OWNER = { owner: true, address: "", isPrivate: true };

async function start() {
	const services: Partial<Services> = {};
	const kit = await kitForTest({ services });
	const { bus, rows, apps } = kit.rig;
	// Connect is loaded by the first call, which looks them up.
	const appMessages = new AppMessageLogs({
		bus,
		rows,
		apps,
		notices: noticeLogs({ bus, rows }),
		clock: systemClock,
	});
	Object.assign(services, { appMessages });
	const clientOf = async (id: string) => {
		const { token } = await apps.add({ id }, OWNER);
		return kit.client(RuntimeAppService, "grpc", token);
	};
	return { kit, shop: await clientOf("shop"), mail: await clientOf("mail"), owner: kit.client(RuntimeAppService) };
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
	for await (const event of mail.subscribeAppMessages({ after: 0n })) {
		expect(event).toMatchObject({ sequence: 1n, eventType: Event.RECEIVED });
		expect(event.message).toMatchObject({
			messageId,
			fromAppId: "shop",
			toAppId: "mail",
			subjectUserId: "u",
			requireAck: true,
		});
		break;
	}
	for await (const event of shop.subscribeAppMessages({ after: 0n })) {
		expect(event).toMatchObject({
			sequence: 1n,
			eventType: Event.ACKED,
			message: { messageId, payload: new Uint8Array() },
		});
		break;
	}
	await shop.sendAppMessage({ ...hello, messageType: "last" });
	const last = seen.at(-1)!;
	for await (const event of mail.subscribeAppMessages({ after: last.sequence })) {
		expect(event.sequence).toBe(last.sequence + 1n);
		break;
	}
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
	for await (const { message } of owner.subscribeAppMessages({ appId: "mail", after: 0n })) {
		expect(message?.messageId).toBe(messageId);
		break;
	}
	await mail.ackAppMessage({ messageId, failed: true, reason: "full" });
	for await (const event of owner.subscribeAppMessages({ appId: "shop", after: 0n })) {
		expect(event).toMatchObject({ eventType: Event.FAILED, reason: "full" });
		break;
	}
});

it("Z22: what is refused says why", async () => {
	const { shop } = await start();
	const large = await errorOf(shop.sendAppMessage({ ...hello, payload: Buffer.alloc(65_537) }));
	expect(statusOf(large)).toEqual({ code: "ResourceExhausted", reason: "REASON_CODE_APP_MESSAGE_PAYLOAD_TOO_LARGE" });
	const beyond = (await readStream(shop.subscribeAppMessages({ after: 7n }))).error;
	expect(statusOf(beyond)).toMatchObject({ code: "InvalidArgument" });
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
