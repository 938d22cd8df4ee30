/**
 * A kit adapter of a platform that cannot be asked: only the account's notes tell what was sent. The platform is a file of calls. In the
 * chat `hangs` a message is created and never answered; in `known` the answer is noted and never reported.
 */

import { appendFileSync } from "node:fs";
import {
	type Account,
	openSentLog,
	type Platform,
	PlatformError,
	type Session,
	serve,
	type Tools,
} from "../../../../packages/adapter/src/kit.ts";

const never = new Promise<never>(() => {});
const KEYS = 300;

function openFile({ settings }: Account, tools: Tools): Session {
	const sent = openSentLog(tools);
	const write = (line: object) => appendFileSync(settings.file ?? "", `${JSON.stringify(line)}\n`);
	const setAll = async (name: string) => {
		for (let n = 0; n < KEYS; n++) tools.state.set(`${name}${n}`, String(n));
		await tools.state.recorded?.();
	};
	return {
		style: () => "whole",
		async create({ to }, text, { nonce }) {
			const making = sent.create(nonce, async () => {
				write({ op: "create", to, id: nonce, nonce, text });
				return to === "hangs" ? never : { messageId: nonce };
			});
			const made = settings.hasty === "yes" ? { messageId: nonce } : await making;
			if (to === "states") await setAll("send");
			return to === "known" ? never : made;
		},
		async find(_target, nonce) {
			const messageId = sent.of(nonce);
			if (messageId !== undefined) return { messageId };
			if (!sent.mayHaveLeft(nonce)) return undefined;
			throw new PlatformError("invalid", "nobody can tell");
		},
		async monitor(emit, signal) {
			await setAll("monitor");
			await emit({
				eventId: "e1",
				from: { id: "p" },
				chat: { id: "c", type: "direct" },
				text: tools.state.get("monitor7") ?? "",
				target: { to: "c" },
				ts: 0,
			});
			await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
			tools.state.set("stopped", "in good order");
		},
		health: async () => ({ ok: true, detail: "" }),
	};
}

const platform: Platform = {
	info: {
		channel: "noting",
		version: "1",
		protocol: 1,
		supports: ["monitor", "send", "stream", "health"],
		fields: ["runId", "offset", "intent"],
		limits: { textMax: 1000, unit: "utf16" },
		reconcile: "history",
		settings: [
			{ name: "file", secret: false, required: true, prompt: "Where calls go" },
			{ name: "hasty", secret: false, required: false, prompt: "yes: it does not wait for its notes" },
		],
	},
	render: (markdown) => markdown,
	measure: (rendered) => rendered.length,
	pace: () => ({ targetIntervalMs: 0 }),
	open: openFile,
};

await serve(platform, process.argv.slice(2));
