/** Stands between a client and the daemon, and breaks its first connection once it has carried so many bytes to the client. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { onTestFinished } from "vitest";

export async function cuttingProxy(to: string, afterBytes: number): Promise<{ url: string; cuts(): number }> {
	const { hostname, port, protocol } = new URL(to);
	let cuts = 0;
	const server = createServer((client) => {
		const daemon = connect(Number(port), hostname);
		let carried = 0;
		daemon.on("data", (bytes) => {
			carried += bytes.length;
			if (cuts === 0 && carried > afterBytes) {
				cuts++;
				daemon.destroy();
				client.write(bytes.subarray(0, bytes.length - (carried - afterBytes)), () => client.destroy());
			} else client.write(bytes);
		});
		client.on("data", (bytes) => daemon.write(bytes));
		for (const [one, other] of [
			[client, daemon],
			[daemon, client],
		] as const) {
			one.on("error", () => {});
			one.on("close", () => other.destroySoon());
		}
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => void server.close());
	return { url: `${protocol}//127.0.0.1:${(server.address() as AddressInfo).port}`, cuts: () => cuts };
}
