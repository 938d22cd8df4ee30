/** Messages of the fake Discord: checked by the official schemas, with nonces; and the state that all of it shares. */

import { MessageCreateRequestSchema, MessageEditRequestPartialSchema } from "discord-api-spec/zod";
import type { FakeOptions } from "../fake.ts";
import { type Chats, type FakeHttp, FakeRefusal, type FakeReply, type FakeRequest, ok, readForm } from "../http.ts";
import { type Interactions, readComponents } from "./buttons.ts";
import type { FakeGateway } from "./gateway.ts";

const EPOCH_MS = 1_420_070_400_000;
/** "The past few minutes", of real time: so are the waits of the daemon, which repeats a nonce. */
const NONCE_LIFE_MS = 300_000;
const CONTENT_MAX = 2000;

export type DiscordRate = [limit: number, windowMs: number];

export interface DiscordFakeOptions extends FakeOptions {
	createRate?: DiscordRate;
	editRate?: DiscordRate;
	/** Whether the privileged message content intent is enabled in the portal. */
	messageContent?: boolean;
}

export interface DiscordMessage {
	id: string;
	channel_id: string;
	content: string;
	author: { id: string; username: string; bot?: boolean };
	attachments: { id: string; filename: string; size: number; url: string; content_type?: string }[];
	message_reference?: { message_id: string };
	flags: number;
	edits: number;
	files: Buffer[];
	components: unknown[];
}

export interface DiscordWorld {
	http: FakeHttp;
	gateway: FakeGateway;
	interactions: Interactions;
	/** Notes, one for each press. */
	notes: (readonly string[])[];
	me: { id: string; username: string };
	chats: Chats<DiscordMessage>;
	files: Map<string, Buffer>;
	nonces: Map<string, { message: DiscordMessage; at: number }>;
	windows: Map<string, { used: number; resetAt: number }>;
	options: Required<DiscordFakeOptions>;
	ids: { last: bigint };
}

export class DiscordRefusal extends FakeRefusal {
	constructor(status: number, code: number, message: string, errors?: object) {
		super(message, { status, body: { code, message, errors } });
	}
}

export function bodyOf(request: FakeRequest): Record<string, unknown> {
	const payload = readForm(request).find(({ name }) => name === "payload_json");
	return payload ? JSON.parse(payload.data.toString("utf8")) : request.json;
}

/** As others see it: nonces are not stored. */
export function wire({ edits, files, ...message }: DiscordMessage): object {
	const timestamp = new Date(Number(BigInt(message.id) >> 22n) + EPOCH_MS).toISOString();
	return {
		...message,
		type: message.message_reference ? 19 : 0,
		timestamp,
		edited_timestamp: null,
		mentions: [],
		tts: false,
	};
}

export const list = ({ chats }: DiscordWorld, channel: string, limit: number): FakeReply =>
	ok(chats.of(channel).toReversed().slice(0, limit).map(wire));

function checkContent(content: unknown, filled: boolean): string {
	const text = typeof content === "string" ? content : "";
	if (text.length > CONTENT_MAX) {
		const problem = { code: "BASE_TYPE_MAX_LENGTH", message: `Must be ${CONTENT_MAX} or fewer in length.` };
		throw new DiscordRefusal(400, 50035, "Invalid Form Body", { content: { _errors: [problem] } });
	}
	if (text.trim() === "" && !filled) throw new DiscordRefusal(400, 50006, "Cannot send an empty message");
	return text.trim();
}

function checkComponents(given: unknown): unknown[] {
	const read = readComponents(given);
	if ("error" in read) throw new DiscordRefusal(400, 50035, `Invalid Form Body: ${read.error}`);
	return (given ?? []) as unknown[];
}

export function buttonsOf({ components }: DiscordMessage) {
	const read = readComponents(components);
	return "error" in read ? [] : read;
}

function checkShape(schema: typeof MessageCreateRequestSchema, body: unknown): void {
	const checked = schema.safeParse(body);
	if (!checked.success) throw new DiscordRefusal(400, 50035, `Invalid Form Body: ${checked.error.message}`);
}

export function nextId(world: DiscordWorld): string {
	const id = BigInt(Math.floor(world.options.clock.now()) - EPOCH_MS) << 22n;
	world.ids.last = id > world.ids.last ? id : world.ids.last + 1n;
	return String(world.ids.last);
}

export function create(world: DiscordWorld, channel: string, request: FakeRequest): object {
	const body = bodyOf(request);
	checkShape(MessageCreateRequestSchema, body);
	const parts = readForm(request).filter(({ filename }) => filename !== undefined);
	if (parts.some(({ data }) => data.length > 10 * 1024 * 1024))
		throw new DiscordRefusal(413, 40005, "Request entity too large");
	const content = checkContent(body.content, parts.length > 0);
	const nonce = body.enforce_nonce === true && typeof body.nonce === "string" ? body.nonce : undefined;
	const known = nonce === undefined ? undefined : world.nonces.get(nonce);
	if (known && Date.now() - known.at < NONCE_LIFE_MS) {
		const exists = world.chats.of(channel).includes(known.message);
		if (!exists) throw new DiscordRefusal(404, 10008, "Unknown Message");
		return { ...wire(known.message), nonce };
	}
	const message: DiscordMessage = {
		id: nextId(world),
		channel_id: channel,
		content,
		author: { ...world.me, bot: true },
		attachments: parts.map(({ filename = "", data, contentType }, index) => ({
			id: String(index),
			filename,
			size: data.length,
			url: `${world.http.url}/cdn/${filename}`,
			content_type: contentType,
		})),
		message_reference: body.message_reference ? (body.message_reference as { message_id: string }) : undefined,
		flags: Number(body.flags ?? 0),
		edits: 0,
		files: parts.map(({ data }) => data),
		components: checkComponents(body.components),
	};
	world.chats.add(channel, message);
	if (nonce !== undefined) world.nonces.set(nonce, { message, at: Date.now() });
	return { ...wire(message), nonce };
}

function find({ chats }: DiscordWorld, channel: string, id: string): DiscordMessage {
	const message = chats.of(channel).find((each) => each.id === id);
	if (!message) throw new DiscordRefusal(404, 10008, "Unknown Message");
	return message;
}

export function edit(world: DiscordWorld, channel: string, id: string, request: FakeRequest): object {
	checkShape(MessageEditRequestPartialSchema, request.json);
	const message = find(world, channel, id);
	if (message.author.id !== world.me.id)
		throw new DiscordRefusal(403, 50005, "Cannot edit a message authored by another user");
	message.content = checkContent(request.json.content, false);
	if (request.json.components !== undefined) message.components = checkComponents(request.json.components);
	message.edits++;
	return wire(message);
}

export function remove(world: DiscordWorld, channel: string, id: string): FakeReply {
	const message = find(world, channel, id);
	if (message.author.id !== world.me.id) throw new DiscordRefusal(403, 50013, "Missing Permissions");
	world.chats.remove(channel, (each) => each === message);
	return { status: 204 };
}
