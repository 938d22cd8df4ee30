/** A Mac with Messages: BlueBubbles' REST interface, and what the fake imsg program (imsg.ts) asks of it. */

import { join } from "node:path";
import { systemClock } from "@nexus-stream/protocol/clock";
import type { Fake } from "../fake.ts";
import {
	type FakeHttp,
	FakeRefusal,
	type FakeReply,
	type FakeRequest,
	ok,
	readForm,
	serveFake,
	word,
} from "../http.ts";
import { type IMessageFakeOptions, type IMessageMessage, isGroup, isOf, type MacWorld, put, putSent } from "./mac.ts";
import { handleImsg } from "./rpc.ts";

export const BLUEBUBBLES_PASSWORD = "fake-password";

export interface IMessageFake extends Fake {
	raw(to: string): IMessageMessage[];
	/** For the setting `imsg_command`. */
	readonly imsgCommand: string;
	wire(message: IMessageMessage): object;
	/** Everything that was said, by whomever. */
	readonly messages: IMessageMessage[];
	/** The message that is being sent. */
	readonly sending: ReadonlySet<string>;
}

class Refusal extends FakeRefusal {
	constructor(status: number, type: string, message: string, data?: object) {
		super(message, { status, body: { status, message: "FakeRefusal", error: { type, message }, data } });
	}
}

export async function createIMessageFake(options: IMessageFakeOptions = {}): Promise<IMessageFake> {
	const world: MacWorld = {
		http: undefined as unknown as FakeHttp,
		messages: [],
		sending: new Set(),
		blocked: undefined,
		options: { privateApi: false, sent: Promise.resolve(), clock: systemClock, ...options },
	};
	world.http = await serveFake({
		clock: world.options.clock,
		name(request) {
			if (request.path === "/imsg") {
				const { method, params = {} } = request.json as { method: string; params?: Record<string, unknown> };
				return { name: method, to: word(params.chat_guid ?? params.to), body: params };
			}
			const name = request.path.replace("/api/v1/", "");
			if (!/^message\/(?:text|attachment|query)$/.test(name)) return undefined;
			const body = fieldsOf(request);
			// Polling is not what a test wants to disturb.
			return body.where === undefined ? { name, to: word(body.chatGuid), body } : undefined;
		},
		handle: (request) => (request.path.startsWith("/imsg") ? handleImsg(world, request) : handle(world, request)),
		refuse: ({ kind }) => {
			if (kind === "429") return new Refusal(429, "Error", "slow down").reply;
			return new Refusal(500, "Server Error", "").reply;
		},
	});
	const ours = (to: string) => world.messages.filter(({ chat, fromMe }) => fromMe && chat === to);
	return {
		...world.http,
		settings: { backend: "bluebubbles", password: BLUEBUBBLES_PASSWORD, api_url: world.http.url },
		messages: world.messages,
		sending: world.sending,
		imsgCommand: `${process.execPath} --conditions=nexus-source ${join(import.meta.dirname, "imsg.ts")} ${world.http.url}`,
		raw: ours,
		visible: (to) => ours(to).map(({ text }) => text),
		wire: (message) => wire(message),
		inject({ text, from = "+15551230001", to, file, fileName, filePath, cursor, at }) {
			const chat = to ?? `iMessage;-;${from}`;
			const data = file as Buffer | undefined;
			const path = filePath as string | undefined;
			const named = { name: word(fileName ?? "note.txt"), contentType: "text/plain", path: path || undefined };
			const stamps = {
				cursor: typeof cursor === "number" ? cursor : undefined,
				created: typeof at === "number" ? at : undefined,
			};
			put(world, { chat, text, fromMe: false, handle: from, ...stamps, ...(data ? { file: { ...named, data } } : {}) });
		},
	};
}

function wire(message: IMessageMessage, withFiles = true): object {
	const { row, guid, chat, text, fromMe, handle, created, file } = message;
	const attachment = file && {
		guid: `at_${guid}`,
		mimeType: file.contentType,
		transferName: file.name,
		totalBytes: file.data.length,
		hideAttachment: false,
	};
	return {
		originalROWID: row,
		guid,
		text: file ? `\uFFFC${text}` : text,
		isFromMe: fromMe,
		handle: fromMe ? null : { address: handle, service: "iMessage" },
		chats: [{ guid: chat, style: isGroup(chat) ? 43 : 45, displayName: isGroup(chat) ? "Team" : "" }],
		attachments: attachment && withFiles ? [attachment] : [],
		dateCreated: created,
		dateRetracted: null,
		itemType: 0,
		associatedMessageGuid: null,
		error: 0,
	};
}

const success = (data: unknown, message = "Success") => ok({ status: 200, message, data });

function fieldsOf(request: FakeRequest): Record<string, unknown> {
	const form = readForm(request);
	if (form.length === 0) return request.json;
	return Object.fromEntries(
		form.filter((part) => part.filename === undefined).map((part) => [part.name, part.data.toString()]),
	);
}

async function handle(world: MacWorld, request: FakeRequest): Promise<FakeReply> {
	const secret = request.query.get("password") ?? request.query.get("guid") ?? request.query.get("token");
	if (secret !== BLUEBUBBLES_PASSWORD) throw new Refusal(401, "Authentication Error", "Wrong password");
	const path = request.path.replace("/api/v1/", "");
	if (path === "server/info") {
		return success({ server_version: "1.9.9", os_version: "15.1", private_api: world.options.privateApi });
	}
	if (path === "message/query") return query(world, request.json);
	if (path === "message/text") return success(await send(world, request.json, undefined), "Message sent!");
	if (path === "message/attachment") {
		const part = readForm(request).find(({ filename }) => filename !== undefined);
		const fields = fieldsOf(request);
		if (!part || part.data.length === 0)
			throw new Refusal(400, "Validation Error", "Attachment not provided or was empty!");
		const file = { name: String(fields.name), contentType: part.contentType ?? "", data: part.data };
		return success(await send(world, fields, file), "Attachment sent!");
	}
	const download = /^attachment\/at_([^/]+)\/download$/.exec(path);
	const file = download && world.messages.find(({ guid }) => guid === download[1])?.file;
	if (!file) throw new Refusal(404, "Database Error", "Attachment does not exist!");
	return { status: 200, headers: { "content-type": file.contentType }, body: file.data };
}

function query(world: MacWorld, params: Record<string, unknown>): FakeReply {
	const { chatGuid, after = 0, sort = "DESC", limit = 100 } = params;
	const row = (params.where as [{ statement: string; args: { row: number } }] | undefined)?.[0].args.row ?? 0;
	if (chatGuid !== undefined && !world.messages.some(({ chat }) => chat === chatGuid)) {
		return success([], `No chat found with GUID: ${word(chatGuid)}`);
	}
	const found = world.messages.filter(
		(each) => (chatGuid === undefined || each.chat === chatGuid) && each.created >= Number(after) && each.row > row,
	);
	// The answer lists files only on request.
	const withFiles = ((params.with as string[] | undefined) ?? []).includes("attachments");
	const page = (sort === "DESC" ? found.toReversed() : found).slice(0, Number(limit));
	return success(page.map((each) => wire(each, withFiles)));
}

async function send(world: MacWorld, fields: Record<string, unknown>, file: IMessageMessage["file"]): Promise<object> {
	const [chat, text, temp] = [word(fields.chatGuid), word(fields.message), word(fields.tempGuid)];
	const invalid = (reason: string) => new Refusal(400, "Validation Error", reason);
	if (chat === "") throw invalid("The chatGuid field is required.");
	if (!["apple-script", "private-api"].includes(String(fields.method)))
		throw invalid("The selected method is invalid.");
	const privately = fields.method === "private-api" || fields.selectedMessageGuid !== undefined;
	if (!privately && temp === "") throw invalid("A 'tempGuid' is required when sending via AppleScript");
	if (text === "" && !file) throw invalid("A 'message' is required when sending via AppleScript");
	if (world.sending.has(temp)) throw invalid(`Message is already queued to be sent! (Temp GUID: ${temp})`);
	if (privately && !world.options.privateApi) throw new Refusal(500, "iMessage Error", "Private API is not enabled!");
	if (isOf(chat, "chat404")) throw new Refusal(500, "iMessage Error", "Chat does not exist!");
	if (isOf(chat, "+15550022")) throw new Refusal(500, "iMessage Error", "Failed to send message!", { error: 22 });
	world.sending.add(temp);
	await world.options.sent;
	const replyTo = fields.selectedMessageGuid === undefined ? {} : { replyTo: word(fields.selectedMessageGuid) };
	const made = putSent(world, { chat, text, ...replyTo, file });
	world.sending.delete(temp);
	return { ...wire(made), tempGuid: temp };
}
