/** Bodies of requests (P6.1, I11): what is refused, and that the client gets to see it. */

import { connect } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import type { EdgeDeps } from "../../packages/daemon/src/edge/edge.ts";
import { NexusError } from "../../packages/protocol/src/protocol.ts";
import { BEARER, expectError, type Rig, rawClient, rigForTest, waitFor } from "./rig.ts";

const BODY_BYTES_MAX = 4096;
const HEAD = `POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: ${BEARER.authorization}\r\nContent-Type: application/json\r\n`;

describe("bodies", () => {
	let rig: Rig;
	const logged: string[] = [];
	beforeEach(async () => {
		logged.length = 0;
		const error = (_facts: object, message: string) => void logged.push(message);
		const log = { debug() {}, info() {}, warn() {}, error };
		rig = await rigForTest({ limits: { bodyBytesMax: BODY_BYTES_MAX }, deps: { log } });
	});
	it("P6.1: a body must be JSON, and say so unless a bearer is named", async () => {
		const send = (path: string, headers: Record<string, string>, body: string) =>
			fetch(`${rig.url}${path}`, { method: "POST", headers, body });
		const plain = { "content-type": "text/plain" };
		await expectError(await send("/v1/sign-in", plain, '{"code":"x"}'), 400, "invalid");
		await expectError(await send("/v1/sessions/s/messages", { ...BEARER }, '{"text":'), 400, "invalid");
		expect((await send("/v1/sessions/s/messages", { ...BEARER, ...plain }, '{"text":"x"}')).status).toBe(202);
	});

	it("I11: a body that declares too much is refused unread, one that does not declare is read up to the limit", async () => {
		await expectError(await rig.post("/v1/sessions/s/messages", { text: "x".repeat(5000) }), 413, "too_large");
		// Long enough for a slow machine to read what is refused, and what is never whole is hung up on in the end.
		const hasty = await rigForTest({ limits: { bodyBytesMax: BODY_BYTES_MAX, requestTimeoutMs: 5000 } });
		const declared = rawClient(hasty.port, `${HEAD}Content-Length: 1000000000\r\n\r\n`);
		const chunked = rawClient(hasty.port, `${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
		const feed = setInterval(() => chunked.socket.write(`400\r\n${"x".repeat(1024)}\r\n`), 1);
		await waitFor(() => declared.received().includes("too_large"));
		await waitFor(() => chunked.received().includes("too_large"));
		await Promise.all([declared.closed, chunked.closed]);
		clearInterval(feed);
		expect(chunked.received()).toMatch(/^HTTP\/1\.1 413 /);
	});

	it.each(["declared", "chunked"])(
		"P6.1: a client that writes a %s body to its end before it reads sees that it was refused",
		async (how) => {
			const body = "x".repeat(16 * 1024 * 1024);
			const text =
				how === "declared"
					? `${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`
					: `${HEAD}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
			const socket = connect(rig.port, "127.0.0.1").pause();
			await new Promise<void>((resolve, reject) => {
				socket.on("error", reject);
				socket.write(text, (cause) => (cause ? reject(cause) : resolve()));
			});
			socket.setEncoding("utf8").resume();
			let received = "";
			socket.on("data", (chunk: string) => {
				received += chunk;
			});
			await waitFor(() => received.includes('"code":"too_large"'));
			// And it may go on with the next request.
			socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
			await waitFor(() => received.includes('{"status":"ok"}'));
			socket.destroy();
		},
	);

	it("a body that breaks off is the client's fault, and no error of the daemon", async () => {
		const declared = rawClient(rig.port, `${HEAD}Content-Length: 100\r\n\r\n{"te`);
		const chunked = rawClient(rig.port, `${HEAD}Transfer-Encoding: chunked\r\n\r\n4\r\n{"te\r\n`);
		await waitFor(() => rig.edge.stats().requests === 2);
		declared.socket.destroy();
		chunked.socket.destroy();
		await waitFor(() => rig.edge.stats().connections === 0);
		await rig.get("/v1/runs");
		expect(logged).toEqual([]);
		expect(rig.broker.liveRuns()).toEqual([]);
	});

	it("P6.1: a text that is not UTF-8 is refused, not changed", async () => {
		const body = Buffer.concat([Buffer.from('{"text":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
		const send = () => fetch(`${rig.url}/v1/sessions/s/messages`, { method: "POST", headers: BEARER, body });
		await expectError(await send(), 400, "invalid");
	});

	it("how long an idempotency key may be is the Broker's to say, as it is configured", async () => {
		let length = 0;
		const submit: EdgeDeps["submit"] = async ({ idempotencyKey }) => {
			length = idempotencyKey!.length;
			throw new NexusError("busy", "enough was seen");
		};
		const other = await rigForTest({ deps: { submit } });
		const body = { text: "x", idempotency_key: "k".repeat(1000) };
		await expectError(await other.post("/v1/sessions/s/messages", body), 429, "busy");
		expect(length).toBe(1000);
	});
});
