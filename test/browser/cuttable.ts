/** A network cable between browser and daemon that can be cut and mended. */

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

export interface Cable {
	readonly url: string;
	/** Ends every connection and takes no new one. */
	cut(): void;
	mend(): void;
	close(): Promise<void>;
}

export async function cuttable(port: number): Promise<Cable> {
	const sockets = new Set<Socket>();
	let isCut = false;
	const server = createServer((near) => {
		if (isCut) return near.destroy();
		const far = connect(port, "127.0.0.1");
		for (const [from, to] of [
			[near, far],
			[far, near],
		] as const) {
			sockets.add(from);
			from.pipe(to);
			// A cut connection errors on one side and closes on the other; both are the point.
			from.on("error", () => to.destroy());
			from.on("close", () => {
				sockets.delete(from);
				to.destroy();
			});
		}
		return undefined;
	});
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	const cut = () => {
		isCut = true;
		for (const socket of sockets) socket.destroy();
	};
	return {
		url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
		cut,
		mend: () => {
			isCut = false;
		},
		async close() {
			cut();
			server.close();
			await once(server, "close");
		},
	};
}
