/** Webhook requests of anybody: what waits is counted, and what cannot be signed is not read. */

import { expect, it, onTestFinished, vi } from "vitest";
import type { Channels, EdgeDeps, EdgeLimits } from "../../packages/daemon/src/edge/edge.ts";
import { PROCESS_LIMITS } from "../../packages/daemon/src/nex/limits.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { type Rig, rawClient, rigForTest, waitFor } from "./rig.ts";

type Webhook = Channels["outbound"]["webhook"];

async function rigWith(webhook: Webhook, limits: Partial<EdgeLimits>, deps: Partial<EdgeDeps> = {}): Promise<Rig> {
	const outbound = {
		webhook,
		admitWebhook(_channel: string, _account: string, { headers }: { headers: Record<string, string> }) {
			if (!headers["x-signature"]) throw new NexusError("forbidden", "The request carries no signature.");
		},
	};
	const rig = await rigForTest({ deps: { channels: { outbound } as unknown as Channels, ...deps }, limits });
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

it("P6.15: so are further bytes, once they arrive, declared or not", async () => {
	const { webhook, release } = hanging();
	const limits = { webhookBodyBytesMax: 1000, webhookBytesPerAccountMax: 2000, webhookBytesMax: 2500 };
	const rig = await rigWith(webhook, limits);
	const waiting = [post(rig, "a", "x".repeat(900)), post(rig, "a", "x".repeat(900))];
	await waitFor(() => webhook.mock.calls.length === 2);
	expect((await post(rig, "a", "x".repeat(201))).status).toBe(429);
	expect((await post(rig, "b", "x".repeat(701))).status).toBe(503);
	const head = "POST /v1/webhooks/slack/b HTTP/1.1\r\nHost: localhost\r\nX-Signature: v0\r\nConnection: close\r\n";
	const chunked = rawClient(
		rig.port,
		`${head}Transfer-Encoding: chunked\r\n\r\n2bd\r\n${"x".repeat(701)}\r\n0\r\n\r\n`,
	);
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

const HEAD = "POST /v1/webhooks/slack/a HTTP/1.1\r\nHost: localhost\r\nX-Signature: v0\r\n";

it("P6.15: a declared length that does not arrive takes no room, and its request ends after the body's time limit", async () => {
	const { webhook, release } = hanging();
	release();
	const limits = { webhookBodyBytesMax: 1000, webhookBytesPerAccountMax: 1000, webhookBodyTimeoutMs: 300 };
	const rig = await rigWith(webhook, limits);
	const silent = [1, 2, 3].map(() => rawClient(rig.port, `${HEAD}Content-Length: 1000\r\n\r\n`));
	onTestFinished(() => silent.forEach(({ socket }) => void socket.destroy()));
	await waitFor(() => rig.edge.stats().requests === 3);
	expect((await post(rig, "a", "x".repeat(900))).status).toBe(200);
	for (const client of silent) {
		await waitFor(() => /^HTTP\/1\.1 400 .*did not arrive within 300 ms/s.test(client.received()));
	}
	expect(webhook).toHaveBeenCalledTimes(1);
});

it("P6.15: one address cannot take all requests and bytes of an account", async () => {
	const { webhook, release } = hanging();
	release();
	const limits = { webhookRequestsPerClientMax: 2, webhookRequestsPerAccountMax: 3, webhookBytesPerClientMax: 500 };
	const rig = await rigWith(webhook, limits, { trustedProxies: ["127.0.0.1"] });
	const from = (address: string, body: string) =>
		fetch(`${rig.url}/v1/webhooks/slack/a`, {
			method: "POST",
			headers: { "x-signature": "v0", "x-forwarded-for": address },
			body,
		});
	const flood = `${HEAD}X-Forwarded-For: 192.0.2.1\r\nContent-Length: 1000\r\n\r\n`;
	const silent = [1, 2].map(() => rawClient(rig.port, flood));
	onTestFinished(() => silent.forEach(({ socket }) => void socket.destroy()));
	await waitFor(() => rig.edge.stats().requests === 2);
	expect((await from("192.0.2.1", "{}")).status).toBe(429);
	expect((await from("192.0.2.2", "{}")).status).toBe(200);
	expect((await from("192.0.2.2", "x".repeat(501))).status).toBe(429);
	// Requests that were refused or hung up no longer count.
	for (const { socket } of silent) socket.destroy();
	await waitFor(async () => (await from("192.0.2.1", "x".repeat(500))).status === 200);
});

it("P6.15: by default several bodies of 3 MB fit, and each fits a line to the adapter", async () => {
	const { webhook, release } = hanging();
	const rig = await rigWith(webhook, {});
	const waiting = [1, 2, 3].map(() => post(rig, "a", "x".repeat(3_000_000)));
	await waitFor(() => webhook.mock.calls.length === 3);
	release();
	expect(await statuses(waiting)).toEqual([200, 200, 200]);
	const [, , request] = webhook.mock.calls[0]!;
	expect(JSON.stringify({ type: "webhook", id: "1", ...request }).length).toBeLessThan(
		PROCESS_LIMITS.lineBytesMax - 16 * 1024,
	);
});
