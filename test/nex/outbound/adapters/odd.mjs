/** An adapter that keeps the protocol but for one thing: `node odd.mjs <what> <verb> …`. `LINES` holds lines that it says before everything else. */

import { spawn } from "node:child_process";
import { closeSync, existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const [what, verb] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${typeof line === "string" ? line : JSON.stringify(line)}\n`);
const forever = () => setInterval(() => {}, 1000);
/** Only the first process is odd. */
const first = () => {
	const seen = existsSync(process.env.NEXUS_STATE_FILE);
	writeFileSync(process.env.NEXUS_STATE_FILE, "{}");
	return !seen;
};

if (verb === "info") {
	const info = {
		...{ channel: "odd", version: "1", protocol: 1, supports: ["stream", "send", "monitor"], settings: [] },
		...{ fields: ["runId", "offset", "intent"], limits: { textMax: 4000, unit: "utf16" }, reconcile: "none" },
		blocks: { minChars: 20, maxChars: 60, idleMs: 50, humanDelayMs: { min: 1, max: 2 } },
	};
	say({ ...info, ...JSON.parse(process.env.INFO ?? "{}") });
} else if (what === "deaf" && first()) forever();
else if (what === "closes-input" && first()) {
	closeSync(0);
	forever();
} else if (what === "closes-output" && first()) {
	closeSync(1);
	forever();
} else if (what === "wraps") {
	const inner = spawn(process.execPath, [process.argv[1], "plain", verb], { stdio: "inherit" });
	writeFileSync(process.env.INNER_PID_FILE, String(inner.pid));
	inner.on("exit", (code) => process.exit(code));
} else {
	for (const line of JSON.parse(process.env.LINES ?? "[]")) say(line);
	let text = 0;
	const names = ({ delivery, runId }) => ({ delivery, runId });
	for await (const raw of createInterface({ input: process.stdin })) {
		const line = JSON.parse(raw);
		const from = 0;
		if (line.type === "stream_start") text = line.resume?.position ?? 0;
		if (line.type === "token") text += line.text.length;
		if (line.type === "send") say({ type: "message_sent", messageId: "m1", ...line, text: undefined, final: true });
		if (line.type === "stream_end" && what === "says-nothing")
			say({ type: "delivery_complete", ...names(line), messageIds: [] });
		else if (line.type === "stream_end")
			say({ type: "message_creating", ...names(line), nonce: "n1", from, ordinal: 1 });
		if (line.type === "ack" && line.nonce) {
			say({ type: "message_sent", ...names(line), messageId: "m1", nonce: "n1", from, to: text, final: true });
			say({ type: "delivery_complete", ...names(line), messageIds: ["m1"] });
		}
	}
}
