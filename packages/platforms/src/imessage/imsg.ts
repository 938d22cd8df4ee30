/** imsg: a program on this Mac that speaks JSON-RPC over its standard streams. */

import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { PlatformError, type SendOptions, type Target, type Tools, type WireAttachment } from "@nexus-stream/adapter";
import { createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { keepListening } from "@nexus-stream/adapter/serve/listen";
import { type Backend, type InboundSink, isChat, type SentIMessage } from "./backend.ts";
import { type ImsgMessage, readImsg } from "./inbound.ts";
import { JsonRpcClient } from "./rpc.ts";

const RECENT_MESSAGES_MAX = 100;
const CHATS_MAX = 500;
const LAST_ROW = "last_row";

type ImsgChat = { id: number; guid: string; identifier: string };

export class ImsgBackend implements Backend {
	readonly #rpc: JsonRpcClient;
	readonly #tools: Tools;
	readonly #name: string;

	/** `name`: what the agent is called in groups. */
	constructor(command: string, tools: Tools, name: string) {
		this.#rpc = new JsonRpcClient(command, tools.log);
		this.#tools = tools;
		this.#name = name;
	}

	send(target: Target, text: string, options: SendOptions) {
		return this.#send(target, { text }, options);
	}

	async attach(target: Target, { name, data }: WireAttachment, options: SendOptions) {
		const folder = await mkdtemp(join(tmpdir(), "nexus-imessage-"));
		try {
			// imsg copies the file before it answers.
			const file = join(folder, basename(name).replace(/^\.+/, "_") || "file");
			await writeFile(file, Buffer.from(data, "base64"), { mode: 0o600 });
			return await this.#send(target, { file }, options);
		} finally {
			await rm(folder, { recursive: true, force: true });
		}
	}

	async recent(target: Target, since: number): Promise<SentIMessage[]> {
		const start = new Date(since).toISOString();
		const params = { chat_id: await this.#chatId(target), limit: RECENT_MESSAGES_MAX, start, attachments: true };
		return (await this.#history(params))
			.filter(({ is_from_me }) => is_from_me)
			.toSorted((a, b) => b.id - a.id)
			.map(({ guid, id, text, attachments = [], created_at = "" }) => {
				const files = attachments.map(({ transfer_name }) => transfer_name ?? "");
				return { ids: [guid, rowName(id)], text: text ?? "", files, ts: Date.parse(created_at) || 0 };
			});
	}

	async fetchFile(path: string, bytesMax: number): Promise<Buffer> {
		if (path === "") throw new PlatformError("gone", "it is not on the Mac");
		const { size } = await stat(path);
		if (size > bytesMax) throw new PlatformError("invalid", `larger than ${bytesMax} bytes`);
		return await readFile(path);
	}

	async listen(sink: InboundSink): Promise<void> {
		await keepListening({ round: () => this.#follow(sink), pauseMs: 0, signal: sink.signal, ...this.#tools });
	}

	async health() {
		const chats = await this.#chats(1);
		return { ok: true, detail: `imsg, ${chats.length === 0 ? "no chats yet" : "Messages can be read"}` };
	}

	close(): Promise<void> {
		return this.#rpc.close();
	}

	async #send(target: Target, what: object, { nonce, signal }: SendOptions) {
		const params = { ...(isChat(target.to) ? { chat_guid: target.to } : { to: target.to }), ...what };
		const { guid, id } = await this.#rpc.call<{ guid?: string; id?: number }>("send", params, signal);
		// It does not always see the row that Messages has written.
		return { messageId: guid ?? (id === undefined ? `sent:${nonce}` : rowName(id)) };
	}

	async #follow({ take, signal }: InboundSink): Promise<void> {
		const { state, listening } = this.#tools;
		const heard = createConfirmationQueue();
		const last = state.get(LAST_ROW) ?? (await this.#newestRow());
		if (last !== undefined) state.set(LAST_ROW, last);
		const params = { attachments: true, since_rowid: last === undefined ? undefined : Number(last) };
		const begun = () => listening();
		await this.#rpc.follow("watch.subscribe", params, { signal, begun }, async (method, notified) => {
			const { message } = notified as { message?: ImsgMessage };
			// Any other notification is an end: its buffer was full, or the database was replaced.
			if (method !== "message" || !message) throw new PlatformError("unavailable", `imsg: ${method}`);
			const inbound = readImsg(message, this.#name);
			const { safe } = inbound ? await take(inbound) : {};
			// Earlier rows may still come: only the cursor says that all rows up to it were reported.
			await heard.add(safe, () => signal.aborted || state.set(LAST_ROW, String(message.cursor ?? message.id)));
		});
	}

	/** Where listening begins. Undefined: there are no messages yet. */
	async #newestRow(): Promise<string | undefined> {
		const [newest] = await this.#chats(1);
		if (!newest) return undefined;
		const [last] = await this.#history({ chat_id: newest.id, limit: 1 });
		return last && String(last.id);
	}

	async #chats(limit: number): Promise<ImsgChat[]> {
		return (await this.#rpc.call<{ chats: ImsgChat[] }>("chats.list", { limit })).chats;
	}

	async #history(params: object): Promise<ImsgMessage[]> {
		return (await this.#rpc.call<{ messages: ImsgMessage[] }>("messages.history", params)).messages;
	}

	async #chatId({ to, chat_id }: Target): Promise<number> {
		if (typeof chat_id === "number") return chat_id;
		const chats = await this.#chats(CHATS_MAX);
		const chat = chats.find(({ guid, identifier }) => guid === to || identifier === to);
		if (!chat) throw new PlatformError("invalid", `messages.history: there is no chat ${to}`);
		return chat.id;
	}
}

const rowName = (id: number): string => `row:${id}`;
