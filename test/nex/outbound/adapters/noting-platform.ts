/**
 * A kit adapter of a platform that cannot be asked: only the account's notes tell what was sent. The platform is a file of calls. In the
 * chat `hangs` a message is created and never answered; in `known` the answer is noted, and nobody hears of it.
 */

import { appendFileSync } from "node:fs";
import {
	type Account,
	type Platform,
	PlatformError,
	type Session,
	serve,
	type Tools,
} from "../../../../packages/adapter/src/kit.ts";

const never = new Promise<never>(() => {});
const KEYS = 300;

function openFile({ settings }: Account, tools: Tools): Session {
	const write = (line: object) => appendFileSync(settings.file ?? "", `${JSON.stringify(line)}\n`);
	// Without a look-up the kit writes no notes.
	const isHasty = settings.hasty === "yes";
	const setAll = async (name: string) => {
		for (let n = 0; n < KEYS; n++) tools.state.set(`${name}${n}`, String(n));
		await tools.state.recorded();
	};
	return {
		style: () => "whole",
		async create({ to }, text, { nonce }) {
			write({ op: "create", to, id: nonce, nonce, text });
			if (isHasty) void tools.sent.create(nonce, async () => ({ messageId: nonce }));
			if (to === "hangs") return never;
			if (to === "states") await setAll("send");
			if (to !== "known") return { messageId: nonce };
			tools.sent.add(nonce, nonce);
			return never;
		},
		find: isHasty ? undefined : () => Promise.reject(new PlatformError("invalid", "the platform cannot tell")),
		listening: {
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
