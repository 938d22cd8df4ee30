/** Inbound in the kit: each message is said once and confirmed when it is safe; what fails is not confirmed. */

import { expect, it } from "vitest";
import type { Session, WebhookAnswer } from "../../../packages/adapter/src/platform/session.ts";
import type { InboundMessage, MonitorLine } from "../../../packages/adapter/src/port.ts";
import { Monitor } from "../../../packages/adapter/src/serve/monitor.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { turn } from "./context.ts";

const chat = { id: "c", type: "direct" } as const;
const message = (eventId: string): InboundMessage => ({
	eventId,
	from: { id: "u" },
	chat,
	text: "hi",
	target: { to: "c" },
	ts: 0,
});

function world(webhook: () => Promise<WebhookAnswer>) {
	const said: MonitorLine[] = [];
	const session = { webhooks: { webhook } } as unknown as Session;
	const say = (line: MonitorLine) => void said.push(line);
	const monitor = new Monitor({ session, log: silentLog, ready: async () => {}, say });
	const call = (id: string) =>
		monitor.accept({ type: "webhook", id, method: "POST", query: "", headers: {}, body: "" });
	const answers = () => said.flatMap((line) => (line.type === "webhook_response" ? [[line.id, line.status]] : []));
	return { monitor, said, call, answers };
}

it("I10: a message that comes twice before it is safe is said once, and one ack confirms both", async () => {
	const { monitor, said, call, answers } = world(async () => ({ status: 200, messages: [message("e1")] }));
	call("1");
	call("2");
	await turn();
	expect(said.map(({ type }) => type)).toEqual(["message"]);
	monitor.accept({ type: "ack", eventId: "e1" });
	await turn();
	expect(answers()).toEqual([
		["1", 200],
		["2", 200],
	]);
	call("3");
	await turn();
	expect(said.at(-1)).toMatchObject({ type: "message", eventId: "e1" });
});

it("I10: a request that cannot be read is not confirmed; nor is one whose message is not safe when it stops", async () => {
	const odd = world(() => Promise.reject(new Error("odd")));
	odd.call("1");
	await turn();
	expect(odd.answers()).toEqual([["1", 500]]);
	const { monitor, call, answers } = world(async () => ({ status: 200, messages: [message("e1")] }));
	call("1");
	await turn();
	await monitor.stop();
	expect(answers()).toEqual([["1", 500]]);
});
