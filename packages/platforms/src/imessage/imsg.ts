/** imsg: a program on this Mac that speaks JSON-RPC over its standard streams. */

import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { PlatformError, type SendOptions, type Target, type Tools } from "@nexus-stream/adapter";
import { createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { keepListening } from "@nexus-stream/adapter/serve/listen";
import { type Backend, isChat, type SentIMessage } from "./backend.ts";
import { type ImsgMessage, readImsg } from "./inbound.ts";
import { createRpc } from "./rpc.ts";

const RECENT_MESSAGES_MAX = 100;
const CHATS_MAX = 500;
const LAST_ROW = "last_row";

interface Sent {
	ok?: boolean;
	id?: number;
	guid?: string;
}

export function createImsg(command: string, tools: Tools, name: string): Backend {
	const rpc = createRpc(command, tools.log);
	const send = async (target: Target, what: object, { nonce, signal }: SendOptions) => {
		const { guid, id } = await rpc.call<Sent>("send", { ...placeOf(target), ...what }, signal);
		// It does not always see the row that Messages has written.
		return { messageId: guid ?? (id === undefined ? `sent:${nonce}` : rowName(id)) };
	};
	return {
		send: (target, text, options) => send(target, { text }, options),
		async attach(target, { name: fileName, data }, options) {
			const folder = await mkdtemp(join(tmpdir(), "nexus-imessage-"));
			try {
				// imsg copies the file before it answers.
				const file = join(folder, basename(fileName).replace(/^\.+/, "_") || "file");
				await writeFile(file, Buffer.from(data, "base64"), { mode: 0o600 });
				return await send(target, { file }, options);
			} finally {
				await rm(folder, { recursive: true, force: true });
			}
		},
		async recent(target, since): Promise<SentIMessage[]> {
			const start = new Date(since).toISOString();
			const params = { chat_id: await chatId(target), limit: RECENT_MESSAGES_MAX, start, attachments: true };
			const { messages } = await rpc.call<{ messages: ImsgMessage[] }>("messages.history", params);
			const ours = messages.filter(({ is_from_me }) => is_from_me);
			return ours
				.toSorted((a, b) => b.id - a.id)
				.map(({ guid, id, text, attachments = [], created_at = "" }) => {
					const files = attachments.map(({ transfer_name }) => transfer_name ?? "");
					return { ids: [guid, rowName(id)], text: text ?? "", files, ts: Date.parse(created_at) || 0 };
				});
		},
		async fetchFile(path, bytesMax) {
			if (path === "") throw new PlatformError("gone", "it is not on the Mac");
			const { size } = await stat(path);
			if (size > bytesMax) throw new PlatformError("invalid", `larger than ${bytesMax} bytes`);
			return await readFile(path);
		},
		async listen({ take, signal }) {
			const { state, clock, log, listening } = tools;
			const round = async () => {
				const heard = createConfirmationQueue();
				const last = state.get(LAST_ROW) ?? (await newestRow());
				if (last !== undefined) state.set(LAST_ROW, last);
				const since = last === undefined ? {} : { since_rowid: Number(last) };
				const wish = { attachments: true, ...since };
				const begun = () => listening?.();
				await rpc.follow("watch.subscribe", wish, { signal, begun }, async (method, params) => {
					const { message } = params as { message?: ImsgMessage };
					// What it says beside messages is that it ends: its buffer was full, or the database was exchanged.
					if (method !== "message" || !message) throw new PlatformError("unavailable", `imsg: ${method}`);
					const inbound = readImsg(message, name);
					const { safe } = inbound ? await take(inbound) : {};
					// Earlier rows may still come: everything up to the cursor has been told.
					await heard.add(safe, () => signal.aborted || state.set(LAST_ROW, String(message.cursor ?? message.id)));
				});
			};
			await keepListening({ round, pauseMs: 0, signal, clock, log, listening });
		},
		async health() {
			const { chats } = await rpc.call<{ chats: unknown[] }>("chats.list", { limit: 1 });
			return { ok: true, detail: `imsg, ${chats.length === 0 ? "no chats yet" : "Messages can be read"}` };
		},
		close: () => rpc.close(),
	};

	/** Where listening begins. Undefined: nobody has written anything yet. */
	async function newestRow(): Promise<string | undefined> {
		const { chats } = await rpc.call<{ chats: { id: number }[] }>("chats.list", { limit: 1 });
		const [newest] = chats;
		if (!newest) return undefined;
		const params = { chat_id: newest.id, limit: 1 };
		const { messages } = await rpc.call<{ messages: ImsgMessage[] }>("messages.history", params);
		return messages[0] && String(messages[0].id);
	}

	async function chatId({ to, chat_id }: Target): Promise<number> {
		if (typeof chat_id === "number") return chat_id;
		const { chats } = await rpc.call<{ chats: { id: number; guid: string; identifier: string }[] }>("chats.list", {
			limit: CHATS_MAX,
		});
		const chat = chats.find(({ guid, identifier }) => guid === to || identifier === to);
		if (!chat) throw new PlatformError("invalid", `messages.history: there is no chat ${to}`);
		return chat.id;
	}
}

const rowName = (id: number): string => `row:${id}`;

const placeOf = ({ to }: Target): { chat_guid: string } | { to: string } => (isChat(to) ? { chat_guid: to } : { to });
