/** The lab's process: all fake platforms behind one small HTTP address that tells what a person would see. Ends with its stdin. */

import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { FakeFault } from "./fake.ts";
import { type Place, STARTS } from "./lab-places.ts";
import { AWAITED, type Watch, watch } from "./lab-watch.ts";

const SAMPLE_MS = 50;
/** Long enough to be watched. */
const REFUSED_MS = 4000;

const places: Record<string, Place> = {};
const watched: Record<string, Watch> = {};
for (const [channel, start] of Object.entries(STARTS)) {
	try {
		const place = await start();
		places[channel] = place;
		watched[channel] = watch(place, Date.now);
	} catch (cause) {
		process.stderr.write(`the lab goes without ${channel}: ${String(cause)}\n`);
	}
}
setInterval(() => {
	for (const { sample } of Object.values(watched)) sample();
}, SAMPLE_MS);

/** Whether there is such a button. What comes of it is seen in the chat. */
function press(place: Place | undefined, nth: number, label: string): boolean {
	const { fake, target } = place ?? {};
	if (!fake?.press || !target || !place?.bubbles()[nth]?.buttons?.includes(label)) return false;
	fake.press(target.to, nth, label).catch((cause: unknown) => process.stderr.write(`${String(cause)}\n`));
	return true;
}

async function answer(request: IncomingMessage): Promise<object | undefined> {
	switch (`${request.method} ${request.url}`) {
		case "GET /state":
			return {
				channels: Object.fromEntries(Object.entries(watched).map(([channel, { state }]) => [channel, state()])),
			};
		case "POST /reset":
			for (const { reset } of Object.values(watched)) reset();
			return {};
		case "POST /fault": {
			const { channel, ...fault } = JSON.parse(await text(request)) as FakeFault & { channel: string };
			places[channel]?.fake.fault({ ms: REFUSED_MS, call: AWAITED, ...fault });
			return {};
		}
		case "POST /press": {
			const { channel, message, label } = JSON.parse(await text(request)) as Record<string, string>;
			return { pressed: press(places[channel ?? ""], Number(message) - 1, label ?? "") };
		}
		default:
			return undefined;
	}
}

const server = createServer((request, response) => {
	answer(request).then(
		(body) =>
			response.writeHead(body ? 200 : 404, { "content-type": "application/json" }).end(JSON.stringify(body ?? {})),
		(cause: unknown) => response.writeHead(500).end(String(cause)),
	);
});
server.listen(0, "127.0.0.1", () => {
	const channels = Object.entries(places).map(([channel, { settings, target }]) => [channel, { settings, target }]);
	const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
	process.stdout.write(`${JSON.stringify({ channels: Object.fromEntries(channels), url })}\n`);
});
// The parent process is gone.
process.stdin.resume().once("end", () => process.exit(0));
