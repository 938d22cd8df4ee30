/** Webhook requests of anybody: what waits is counted, and what cannot be signed is not read. */

import { expect, it, onTestFinished, vi } from "vitest";
import type { Channels, EdgeLimits } from "../../src/edge/edge.ts";
import { NexusError } from "../../src/protocol/protocol.ts";
import { createRig, type Rig, rawClient, waitFor } from "./rig.ts";

type Webhook = Channels["outbound"]["webhook"];

async function rigWith(webhook: Webhook, limits: Partial<EdgeLimits>): Promise<Rig> {
	const outbound = {
		webhook,
		admitWebhook(_channel: string, _account: string, { headers }: { headers: Record<string, string> }) {
			if (!headers["x-signature"]) throw new NexusError("forbidden", "The request carries no signature.");
		},
	};
	const rig = await createRig({ deps: { channels: { outbound } as unknown as Channels }, limits });
	onTestFinished(() => rig.close());
	return rig;
}

const post = (rig: Rig, account: string, body: string) =>
	fetch(`${rig.url}/v1/webhooks/slack/${account}`, { method: "POST", headers: { "x-signature": "v0" }, body });

/** An adapter that answers when the test says so. */
function hanging() {
	const release = Promise.withResolvers<void>();
	const webhook = vi.fn<Webhook>(async () => {
		await release.promise;
		return { status: 200, headers: {}, body: "" };
	});
	return { webhook, release: () => release.resolve() };
}

const statuses = (answers: readonly Promise<Response>[]) =>
	Promise.all(answers.map(async (answer) => (await answer).status));

it("P6.15: further requests of an account are 429 at once while its adapter hangs, and taken when it has answered", async () => {
	const { webhook, release } = hanging();
	const rig = await rigWith(webhook, { webhookRequestsPerAccountMax: 3, webhookRequestsMax: 5 });
	const waiting = [1, 2, 3].map(() => post(rig, "a", "{}"));
	await waitFor(() => webhook.mock.calls.length === 3);
	const refused = await post(rig, "a", "{}");
	expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
	// Another account is not held up by it, until all together are too many.
	const others = [post(rig, "b", "{}"), post(rig, "c", "{}")];
	await waitFor(() => webhook.mock.calls.length === 5);
	expect((await post(rig, "d", "{}")).status).toBe(503);
	release();
	expect(await statuses([...waiting, ...others])).toEqual([200, 200, 200, 200, 200]);
	expect((await post(rig, "a", "{}")).status).toBe(200);
	expect(webhook).toHaveBeenCalledTimes(6);
});

it("P6.15: so are further bytes, also those of a body whose length is not declared", async () => {
	const { webhook, release } = hanging();
	const limits = { webhookBodyBytesMax: 1000, webhookBytesPerAccountMax: 2000, webhookBytesMax: 2500 };
	const rig = await rigWith(webhook, limits);
	const waiting = [post(rig, "a", "x".repeat(900)), post(rig, "a", "x".repeat(900))];
	await waitFor(() => webhook.mock.calls.length === 2);
	expect((await post(rig, "a", "x".repeat(201))).status).toBe(429);
	expect((await post(rig, "b", "x".repeat(701))).status).toBe(503);
	const head = "POST /v1/webhooks/slack/b HTTP/1.1\r\nHost: localhost\r\nX-Signature: v0\r\nConnection: close\r\n";
	const chunked = rawClient(rig.port, `${head}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`);
	await chunked.closed;
	expect(chunked.received()).toMatch(/^HTTP\/1\.1 503 /);
	release();
	expect(await statuses(waiting)).toEqual([200, 200]);
});

it("P6.15: a body over the limit is 413, one without a signature 403 before it has arrived", async () => {
	const { webhook, release } = hanging();
	release();
	const rig = await rigWith(webhook, { webhookBodyBytesMax: 1000 });
	expect((await post(rig, "a", "x".repeat(1001))).status).toBe(413);
	const head = "POST /v1/webhooks/slack/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n";
	const client = rawClient(rig.port, `${head}only the beginning`);
	onTestFinished(() => void client.socket.destroy());
	await waitFor(() => client.received().startsWith("HTTP/1.1 403 "));
	expect(webhook).not.toHaveBeenCalled();
});
