/** A platform that is a folder: every message a file, so that processes that die leave behind what a person would see. Run it as an adapter. */

import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
	type DraftStyle,
	type Platform,
	PlatformError,
	type Session,
	serve,
	type Target,
} from "../../../packages/adapter/src/kit.ts";
import { linesOf } from "../../lines.ts";
import { sessionOf } from "../session.ts";

const TEXT_MAX = 200;

interface Stored {
	to: string;
	nonce: string;
	text: string;
	order: number;
}

/** The texts that a person sees in one chat. */
export function visibleIn(folder: string, to: string): string[] {
	return storedIn(folder)
		.filter(([, message]) => message.to === to)
		.map(([, message]) => message.text);
}

function storedIn(folder: string): [string, Stored][] {
	if (!existsSync(folder)) return [];
	const files = readdirSync(folder).filter((name) => name.endsWith(".json"));
	const messages = files.map((name): [string, Stored] => [
		name.slice(0, -5),
		JSON.parse(readFileSync(join(folder, name), "utf8")),
	]);
	return messages.sort(([, a], [, b]) => a.order - b.order);
}

export function callsIn(folder: string): { name: string; at: number }[] {
	return linesOf(join(folder, "calls.jsonl")).map((line) => JSON.parse(line));
}

function openFolder(folder: string, style: DraftStyle, paceMs: number): Session {
	mkdirSync(folder, { recursive: true });
	const note = (name: string, to: string) =>
		appendFileSync(join(folder, "calls.jsonl"), `${JSON.stringify({ name, to, at: Date.now() })}\n`);
	const put = (id: string, message: Stored) => {
		if (message.text.trim() === "") throw new PlatformError("invalid", "message text is empty");
		if (message.text.length > TEXT_MAX) throw new PlatformError("invalid", `message is longer than ${TEXT_MAX}`);
		writeFileSync(join(folder, `${id}.tmp`), JSON.stringify(message));
		renameSync(join(folder, `${id}.tmp`), join(folder, `${id}.json`));
	};
	const get = (id: string): Stored => {
		const path = join(folder, `${id}.json`);
		if (!existsSync(path)) throw new PlatformError("gone", `no message ${id}`);
		return JSON.parse(readFileSync(path, "utf8"));
	};
	const create = (target: Target, text: string, nonce: string) => {
		const order = storedIn(folder).length + 1;
		const id = `m${order}`;
		put(id, { to: target.to, nonce, text, order });
		return { messageId: id };
	};
	return sessionOf({
		style: () => style,
		pace: () => ({ targetIntervalMs: paceMs }),
		async create(target, text, { nonce }) {
			note("create", target.to);
			return create(target, text, nonce);
		},
		async edit(target, messageId, text) {
			note("edit", target.to);
			put(messageId, { ...get(messageId), text });
		},
		async start(target, markdown, { nonce }) {
			note("start", target.to);
			return create(target, markdown, nonce);
		},
		async append(target, messageId, markdown) {
			note("append", target.to);
			const before = get(messageId);
			put(messageId, { ...before, text: before.text + markdown });
		},
		async stop(target) {
			note("stop", target.to);
		},
		async preview(target, _draftId, text) {
			note("preview", target.to);
			if (text.length > TEXT_MAX) throw new PlatformError("invalid", "too long");
		},
		async attach(target, attachment, { nonce }) {
			note("attach", target.to);
			return create(target, `[${attachment.name}]`, nonce);
		},
		async find(target, nonce) {
			note("find", target.to);
			const found = storedIn(folder).find(([, message]) => message.to === target.to && message.nonce === nonce);
			return found ? { messageId: found[0] } : undefined;
		},
		async typing(target, on) {
			note(on ? "typing" : "typing off", target.to);
		},
		async monitor(emit, signal) {
			for (const line of linesOf(join(folder, "inbound.jsonl"))) {
				const message = JSON.parse(line);
				await emit(message);
				note("confirmed", message.chat.id);
			}
			await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
		},
		async webhook(request) {
			const text = request.body.toString("utf8");
			const chat = { id: "w", type: "direct" as const };
			const message = { eventId: `w-${text}`, from: { id: "p" }, chat, text, target: { to: "w" }, ts: 0 };
			return { status: 200, body: `got ${text}`, messages: [message] };
		},
		health: async () => ({ ok: true, detail: `folder ${folder}` }),
	});
}

export const platform: Platform = {
	info: {
		channel: "folder",
		version: "1",
		protocol: 1,
		supports: ["monitor", "send", "stream", "health", "typing", "attachments", "webhook"],
		fields: ["runId", "offset", "intent"],
		limits: { textMax: TEXT_MAX, unit: "utf16" },
		reconcile: "nonce",
		settings: [
			{ name: "folder", secret: false, required: true, prompt: "Where messages go" },
			{ name: "style", secret: false, required: false, prompt: "edit, append, preview or whole", default: "edit" },
			{ name: "pace_ms", secret: false, required: false, prompt: "Between two writes", default: "20" },
		],
	},
	render: (markdown) => markdown,
	measure: (rendered) => rendered.length,
	pace: () => ({ targetIntervalMs: 20 }),
	open: ({ settings }) => openFolder(settings.folder ?? "", settings.style as DraftStyle, Number(settings.pace_ms)),
};

if (import.meta.main) await serve(platform, process.argv.slice(2));
