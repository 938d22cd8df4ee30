/** Ports for daemons that are started again on the one they had. */

import { once } from "node:events";
import { createServer, type Server } from "node:net";

/**
 * A port that stays reserved for this process while its daemon is down, because the process holds the port above it: every search with
 * this function takes both. It is below the range of ephemeral ports: a client that connects to a port in that range while no server
 * listens there may be connected to itself.
 */
export async function ownPort(): Promise<number> {
	for (let tries = 0; tries < 1000; tries++) {
		const port = 20_000 + 2 * Math.floor(Math.random() * 5000);
		const guard = await listen(port + 1);
		if (!guard) continue;
		const server = await listen(port);
		if (!server) {
			guard.close();
			continue;
		}
		guard.unref();
		server.close();
		await once(server, "close");
		return port;
	}
	throw new Error("no free port between 20000 and 30000");
}

/** Undefined: another process has the port. */
function listen(port: number): Promise<Server | undefined> {
	const server = createServer();
	return new Promise((resolve) => {
		server.once("error", () => resolve(undefined));
		server.listen(port, "127.0.0.1", () => resolve(server));
	});
}
