/** The fake `imsg rpc`: JSON-RPC on its standard streams, answered by the fake Mac at the address in its arguments. It dies when that does not answer. */

import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { createInterface } from "node:readline";
import { systemClock } from "@nexus-stream/protocol/clock";
import { sleep } from "@nexus-stream/protocol/retry";

const url = process.argv[2] ?? "";
const WATCH_EVERY_MS = 30;

const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);

async function watch(since: string): Promise<never> {
	for (let last = since; ; await sleep(systemClock, WATCH_EVERY_MS, undefined, "due")) {
		const response = await fetch(`${url}/imsg/watch?since=${last}`);
		const { from, messages } = (await response.json()) as { from: number; messages: { id: number }[] };
		for (const message of messages) say({ jsonrpc: "2.0", method: "message", params: { subscription: 1, message } });
		last = String(messages.at(-1)?.id ?? from);
	}
}

async function answer(line: string): Promise<void> {
	const request = JSON.parse(line);
	const { file } = request.params;
	// The fake Mac is elsewhere: a file is read as imsg would read it.
	if (file)
		Object.assign(request.params, { file_name: basename(file), file_data: readFileSync(file).toString("base64") });
	const headers = { "content-type": "application/json", "x-process": String(process.pid) };
	const response = await fetch(`${url}/imsg`, { method: "POST", headers, body: JSON.stringify(request) });
	say((await response.json()) as object);
	// No row, or row 0: from now on.
	if (request.method === "watch.subscribe") await watch(String(request.params.since_rowid || ""));
}

const die = () => process.exit(1);

const input = createInterface({ input: process.stdin });
input.on("line", (line) => void answer(line).catch(die));
input.on("close", () => process.exit(0));
