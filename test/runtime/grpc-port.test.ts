/** The gRPC port: which one it is, what is refused at the start, and TLS. */

import { writeFileSync } from "node:fs";
import { type AddressInfo, createServer as createNetServer } from "node:net";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { describe, expect, it, onTestFinished } from "vitest";
import { Health } from "../../packages/client/src/gen/grpc/health/v1/health_pb.ts";
import { loadConfig } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { CERT, KEY } from "./certificate.ts";
import { daemonForTest as start } from "./daemon.ts";
import { freshFolder } from "./folder.ts";

/** A port that something else listens on, with a free one before it. */
async function takenPort(): Promise<number> {
	for (;;) {
		const server = createNetServer();
		await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
		const { port } = server.address() as AddressInfo;
		const before = createNetServer();
		const isFree = await new Promise<boolean>((resolve) => {
			before.once("error", () => resolve(false));
			before.listen(port - 1, "127.0.0.1", () => before.close(() => resolve(true)));
		});
		if (isFree) {
			onTestFinished(() => void server.close());
			return port;
		}
		server.close();
	}
}

describe("Z11: the port", () => {
	it("is any free one when the main port is, and is off when it is switched off", async () => {
		const daemon = await start({ port: 0 });
		const probe = createClient(Health, createGrpcTransport({ baseUrl: daemon.grpc! }));
		expect((await probe.check({})).status).toBe(1);
		expect(new URL(daemon.grpc!).port).not.toBe(new URL(daemon.url).port);
		const off = await start({ port: 0, grpc: { port: "off" } });
		expect(off.grpc).toBeUndefined();
		const web = createClient(Health, createConnectTransport({ baseUrl: off.url, httpVersion: "1.1" }));
		expect((await web.check({})).status).toBe(1);
	});

	it("refuses the start when the configured port is in use", async () => {
		const port = await takenPort();
		await expect(start({ port: 0, grpc: { port } })).rejects.toThrow(
			`the gRPC port ${port} on 127.0.0.1 is in use; stop what uses it, choose another with --grpc-port`,
		);
	});

	it("is the one after the main port, and gives way to a free one when that is in use", async () => {
		const port = await takenPort();
		const warned: object[] = [];
		const logger = { ...silentLog, warn: (facts: object) => void warned.push(facts) };
		const daemon = await start({ port: port - 1, logger });
		expect(daemon.grpc).not.toBe(`http://127.0.0.1:${port}`);
		expect(warned).toContainEqual({ wanted: port, grpc: daemon.grpc });
	});

	it("comes from a flag before the environment before the file", async () => {
		const folder = freshFolder();
		writeFileSync(join(folder, "nexus.yaml"), "grpc: { port: 5001, cert: c.pem, key: k.pem }\n");
		const place = { cwd: folder, env: {} };
		expect((await loadConfig({}, place)).grpc).toEqual({ port: 5001, cert: "c.pem", key: "k.pem" });
		const env = { NEXUS_GRPC_PORT: "5002" };
		expect((await loadConfig({}, { ...place, env })).grpc?.port).toBe(5002);
		expect((await loadConfig({ grpcPort: "off" }, { ...place, env })).grpc?.port).toBe("off");
		await expect(loadConfig({ grpcPort: "x" }, place)).rejects.toThrow('--grpc-port: "x" is not a port');
		await expect(loadConfig({ grpcPort: "" }, place)).rejects.toThrow("--grpc-port is empty");
	});
});

describe("TLS", () => {
	const files = () => {
		const base = freshFolder();
		writeFileSync(join(base, "cert.pem"), CERT);
		writeFileSync(join(base, "key.pem"), KEY);
		return base;
	};

	it("serves gRPC and, over HTTP/1.1, Connect and gRPC-web", async () => {
		const daemon = await start({ port: 0, base: files(), grpc: { cert: "cert.pem", key: "key.pem" } });
		expect(daemon.grpc).toMatch(/^https:/);
		const nodeOptions = { ca: CERT };
		const grpc = createClient(Health, createGrpcTransport({ baseUrl: daemon.grpc!, nodeOptions }));
		expect((await grpc.check({})).status).toBe(1);
		const web = createConnectTransport({ baseUrl: daemon.grpc!, httpVersion: "1.1", nodeOptions });
		expect((await createClient(Health, web).check({})).status).toBe(1);
	});

	it.each([
		[{ cert: "cert.pem" }, "grpc.cert and grpc.key belong together"],
		[{ cert: "cert.pem", key: "none.pem" }, "grpc.key: none.pem cannot be read"],
		[{ cert: "cert.pem", key: "cert.pem" }, "grpc.cert and grpc.key cannot be used together"],
	])("%j refuses the start", async (grpc, message) => {
		await expect(start({ port: 0, base: files(), grpc })).rejects.toThrow(message);
	});
});
