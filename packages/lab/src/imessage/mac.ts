/** The fake Mac's Messages: what was said in which chat. */

import type { FakeOptions } from "../fake.ts";
import type { FakeHttp } from "../http.ts";

/** The account's chat with itself: a message there comes back as if another person had written it. */
export const OWN_CHAT = "iMessage;-;+15559990000";

export interface IMessageMessage {
	row: number;
	guid: string;
	chat: string;
	text: string;
	fromMe: boolean;
	handle: string;
	created: number;
	/** imsg: the last row up to which all were reported, when that is not this row. */
	cursor?: number;
	replyTo?: string;
	file?: { name: string; contentType: string; data: Buffer; path?: string };
}

export interface IMessageFakeOptions extends FakeOptions {
	privateApi?: boolean;
	/** Messages has not sent anything before this; a second try meanwhile is refused. */
	sent?: Promise<void>;
}

export interface MacWorld {
	http: FakeHttp;
	messages: IMessageMessage[];
	sending: Set<string>;
	/** The imsg process that has a send that hangs. */
	blocked: string | undefined;
	options: Required<IMessageFakeOptions>;
}

type Put = Omit<IMessageMessage, "row" | "guid" | "created"> & { created?: number };

export function put(world: MacWorld, given: Put): IMessageMessage {
	const row = world.messages.length + 1;
	const { created = world.options.clock.now() } = given;
	const message = { ...given, row, guid: `GUID-${String(row).padStart(4, "0")}`, created };
	world.messages.push(message);
	return message;
}

export function putSent(world: MacWorld, given: Omit<Put, "fromMe" | "handle">): IMessageMessage {
	const made = put(world, { ...given, fromMe: true, handle: "" });
	const { chat, text, file } = made;
	if (chat === OWN_CHAT) put(world, { chat, text, fromMe: false, handle: "+15559990000", ...(file ? { file } : {}) });
	return made;
}

/** Chats with their own fate are named in full: `+15551231022` is like any other. */
export const isOf = (chat: string, who: string): boolean => chat === who || chat.endsWith(`;${who}`);

export const isGroup = (chat: string): boolean => chat.includes(";+;");
