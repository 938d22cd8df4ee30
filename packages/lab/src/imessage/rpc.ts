/** The JSON-RPC methods of imsg, for the fake imsg program (imsg.ts), which forwards its requests to the fake Mac. */

import { type FakeReply, type FakeRequest, ok, word } from "../http.ts";
import { type IMessageMessage, isGroup, isOf, type MacWorld, putSent } from "./mac.ts";

const imsgWire = (message: IMessageMessage, withFiles = true): object => {
	const { row, guid, chat, text, fromMe, handle, created, file, cursor = row } = message;
	const attachment = file && {
		transfer_name: file.name,
		mime_type: file.contentType,
		byte_size: file.data.length,
		missing: false,
		path: file.path,
	};
	return {
		id: row,
		cursor,
		chat_id: 7,
		chat_guid: chat,
		chat_identifier: chat.split(";").at(-1),
		chat_name: isGroup(chat) ? "Team" : "",
		is_group: isGroup(chat),
		guid,
		sender: handle,
		is_from_me: fromMe,
		text: file ? `\uFFFC${text}` : text,
		created_at: new Date(created).toISOString(),
		attachments: attachment && withFiles ? [attachment] : [],
	};
};

const chatWire = ({ chat, handle }: IMessageMessage) => ({ id: 7, guid: chat, identifier: handle });

/** imsg refuses what it does not know; `file_name` and `file_data` are how the fake program passes a file on. */
const IMSG_PARAMS: Readonly<Record<string, readonly string[]>> = {
	"chats.list": ["limit"],
	"messages.history": ["chat_id", "limit", "start", "attachments"],
	"watch.subscribe": ["since_rowid", "attachments"],
	send: ["to", "chat_guid", "text", "file", "file_name", "file_data"],
};

const invalidParams = (data: string) => ({ error: { code: -32602, message: "Invalid params", data } });

/** `/imsg` takes a JSON-RPC request, `/imsg/watch?since=` brings messages. */
export async function handleImsg(world: MacWorld, request: FakeRequest): Promise<FakeReply> {
	if (request.path === "/imsg/watch") {
		const since = request.query.get("since");
		const from = since === null || since === "" ? world.messages.length : Number(since);
		const messages = world.messages.filter(({ row }) => row > from).map((each) => imsgWire(each));
		return ok({ from, messages });
	}
	const { id, method, params } = request.json as { id: string; method: string; params: Record<string, unknown> };
	const answer = (body: object) => ok({ jsonrpc: "2.0", id, ...body });
	const known = IMSG_PARAMS[method];
	if (!known) return answer({ error: { code: -32601, message: "Method not found", data: method } });
	const unknown = Object.keys(params).find((name) => !known.includes(name));
	if (unknown !== undefined) return answer(invalidParams(`unknown parameter: ${unknown}`));
	switch (method) {
		case "chats.list":
			return answer({ result: { chats: world.messages.slice(-1).map(chatWire) } });
		case "messages.history":
			if (params.chat_id !== 7) return answer(invalidParams("chat_id is required"));
			return answer({ result: { messages: imsgHistory(world, params) } });
		case "watch.subscribe":
			return answer({ result: { subscription: 1, buffer_limit: 256 } });
		default:
			return answer(imsgSend(world, params, request.headers["x-process"] ?? ""));
	}
}

/** Newest first. */
const imsgHistory = ({ messages }: MacWorld, { limit = 50, start, attachments }: Record<string, unknown>): object[] =>
	messages
		.filter(({ created }) => start === undefined || created >= Date.parse(word(start)))
		.toReversed()
		.slice(0, Number(limit))
		.map((each) => imsgWire(each, attachments === true));

function imsgSend(world: MacWorld, params: Record<string, unknown>, process: string): object {
	const chat = word(params.chat_guid ?? `iMessage;-;${word(params.to)}`);
	if (params.text === "") return invalidParams("text or file is required");
	const failure = { transport: "applescript", operation: "send" };
	if (isOf(chat, "chat404")) {
		const data = { retry_safe: true, disposition: "not_started", ...failure, detail: "Chat not found" };
		return { error: { code: -32603, message: "Delivery failed before dispatch", data } };
	}
	if (isOf(chat, "403")) {
		const data = "Not authorized to send Apple events to Messages. (-1743)";
		return { error: { code: -32603, message: "Internal error", data } };
	}
	if (isOf(chat, "hangs")) world.blocked ??= process;
	if (world.blocked === process) {
		const data = {
			retry_safe: false,
			disposition: "still_in_flight",
			...failure,
			detail: "A prior send remains in flight.",
		};
		return { error: { code: -32004, message: "Mutation lane blocked", data } };
	}
	const file = params.file_data
		? { name: word(params.file_name), contentType: "", data: Buffer.from(word(params.file_data), "base64") }
		: undefined;
	const made = putSent(world, { chat, text: word(params.text), file });
	return { result: { ok: true, id: made.row, guid: params.text ? made.guid : undefined } };
}
