/** BlueBubbles: a server on the Mac with a REST interface to Messages. */

import { PlatformError, type SendOptions, type Target, type Tools } from "@nexus-stream/adapter";
import { createdId, fetchJson, foreignAnswer, type JsonAnswer, retryAfter } from "@nexus-stream/adapter/platform/json";
import { addressOf, download } from "@nexus-stream/adapter/platform/network";
import { createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { keepListening } from "@nexus-stream/adapter/serve/listen";
import { type Backend, type IMessageSettings, isChat, type SentIMessage } from "./backend.ts";
import { type BlueBubblesMessage, readBlueBubbles } from "./inbound.ts";

const POLL_MS = 2000;
/** With a webhook, polling only brings what it has missed. */
const POLL_BESIDE_WEBHOOK_MS = 30_000;
const POLL_MESSAGES_MAX = 1000;
const RECENT_MESSAGES_MAX = 100;
const LAST_ROW = "last_row";

export function createBlueBubbles(settings: IMessageSettings, tools: Tools): Backend {
	const { call, address } = createCaller(settings);
	const method = settings.private_api === "true" ? "private-api" : "apple-script";
	const pauseMs = settings.webhook_secret ? POLL_BESIDE_WEBHOOK_MS : POLL_MS;
	const query = (params: object) => call<BlueBubblesMessage[]>("message/query", { json: params });
	return {
		async send(target, message, options) {
			// Only the private interface shows what is answered.
			const answered = method === "private-api" && target.reply_to ? { selectedMessageGuid: target.reply_to } : {};
			const params = { chatGuid: chatOf(target), tempGuid: options.nonce, message, method, ...answered };
			const { guid } = await call<{ guid: string }>("message/text", { json: params, ...options });
			return { messageId: createdId("message/text", guid) };
		},
		async attach(target, { name: fileName, contentType, data }, options) {
			const form = new FormData();
			const fields = { chatGuid: chatOf(target), tempGuid: options.nonce, name: fileName, method };
			for (const [field, value] of Object.entries(fields)) form.set(field, value);
			form.set("attachment", new Blob([Buffer.from(data, "base64")], { type: contentType }), fileName);
			const { guid } = await call<{ guid: string }>("message/attachment", { form, ...options });
			return { messageId: createdId("message/attachment", guid) };
		},
		async recent(target, after): Promise<SentIMessage[]> {
			const params = { after, with: ["attachments"], sort: "DESC", limit: RECENT_MESSAGES_MAX };
			const asked = namesOf(chatOf(target)).map((chatGuid) => {
				const json = { chatGuid, ...params };
				return call<BlueBubblesMessage[]>("message/query", { json }, refuseUnknownChat);
			});
			return (await ofKnownChats(asked)).flatMap(({ guid, isFromMe, error, text, attachments = [], dateCreated }) => {
				const files = attachments.map(({ transferName }) => transferName ?? "");
				return isFromMe && !error ? [{ ids: [guid], text: text ?? "", files, ts: dateCreated || 0 }] : [];
			});
		},
		fetchFile(guid, bytesMax) {
			const url = address(`attachment/${encodeURIComponent(guid)}/download`);
			return download(url, { bytesMax, home: url.href });
		},
		async listen({ take, signal }) {
			const { state } = tools;
			const round = async () => {
				const heard = createConfirmationQueue();
				const last = state.get(LAST_ROW) ?? (await newestRow(query));
				if (state.get(LAST_ROW) === undefined) state.set(LAST_ROW, last);
				const where = [{ statement: "message.ROWID > :row", args: { row: Number(last) } }];
				const found = await query({ where, with: ["chats", "attachments"], sort: "ASC", limit: POLL_MESSAGES_MAX });
				for (const message of found.toSorted((a, b) => a.originalROWID - b.originalROWID)) {
					const inbound = readBlueBubbles(message, settings.name);
					const { safe } = inbound ? await take(inbound) : {};
					await heard.add(safe, () => signal.aborted || state.set(LAST_ROW, String(message.originalROWID)));
					if (signal.aborted) return;
				}
				// The next round asks for what follows.
				await heard.confirmed();
			};
			await keepListening({ round, pauseMs, signal, ...tools });
		},
		async health() {
			const info = await call<Partial<Record<string, string | boolean>>>("server/info", {});
			const lacking = method === "private-api" && info.private_api === false;
			const detail = `BlueBubbles ${info.server_version ?? ""}, macOS ${info.os_version ?? ""}, ${method}`;
			return { ok: !lacking, detail: lacking ? `${detail}: turn the private API on in the server` : detail };
		},
	};
}

const chatOf = ({ to }: Target): string => (isChat(to) ? to : `iMessage;-;${to}`);

/** From macOS 26 on, the chat with a person is the same whatever service brings its messages. */
function namesOf(chat: string): string[] {
	const anyService = chat.replace(/^\w+;-;/, "any;-;");
	return anyService === chat ? [chat] : [chat, anyService];
}

/** The messages of a chat under all its names. One of them has to be known, and what cannot be asked says nothing. */
async function ofKnownChats(asked: readonly Promise<BlueBubblesMessage[]>[]): Promise<BlueBubblesMessage[]> {
	const outcomes = await Promise.allSettled(asked);
	const refused = outcomes.flatMap((each) => (each.status === "rejected" ? [each.reason as unknown] : []));
	const failed = refused.find((cause) => !(cause instanceof UnknownChat));
	if (failed !== undefined || refused.length === outcomes.length) throw failed ?? refused[0];
	return outcomes.flatMap((each) => (each.status === "fulfilled" ? each.value : []));
}

class UnknownChat extends PlatformError {}

/** Listening begins now. */
async function newestRow(query: (params: object) => Promise<BlueBubblesMessage[]>): Promise<string> {
	const [newest] = await query({ sort: "DESC", limit: 1 });
	return String(newest?.originalROWID ?? 0);
}

interface CallParams extends Partial<Pick<SendOptions, "signal">> {
	json?: object;
	form?: FormData;
}

function createCaller(settings: Pick<IMessageSettings, "api_url" | "password">) {
	if (!settings.api_url || !settings.password) {
		throw new PlatformError("invalid", "BlueBubbles needs api_url (http://my-mac:1234) and password.");
	}
	const root = addressOf("api_url", settings.api_url);
	const address = (path: string): URL => {
		const url = new URL(`${root}/api/v1/${path}`);
		url.searchParams.set("password", settings.password);
		return url;
	};
	return {
		address,
		/** `check` looks at the words of a successful answer. */
		async call<T>(
			path: string,
			{ json, form, signal }: CallParams,
			check?: (call: string, message: string) => void,
		): Promise<T> {
			const headers: Record<string, string> = json ? { "content-type": "application/json" } : {};
			const body = json ? JSON.stringify(json) : form;
			const init = body === undefined ? {} : { method: "POST", headers, body };
			const answer = await fetchJson(path, address(path), { ...init, signal });
			if (answer.status >= 300) throw refusal(path, answer);
			const { data, message = "" } = (answer.body ?? {}) as { data?: unknown; message?: string };
			if (data === undefined || data === null) throw foreignAnswer(path, answer);
			check?.(path, message);
			return data as T;
		},
	};
}

/** An empty list of a chat that is named otherwise says nothing about a message. */
function refuseUnknownChat(call: string, message: string): void {
	if (/no chat found/i.test(message)) throw new UnknownChat("invalid", `${call}: ${message}`);
}

function refusal(call: string, { status, headers, body }: JsonAnswer): PlatformError {
	const answer = (body ?? {}) as { status?: unknown; error?: { message?: string }; data?: { error?: number } | null };
	// BlueBubbles repeats the status in every answer.
	if (answer.status !== status) return foreignAnswer(call, { status, headers });
	const { error, data } = answer;
	const reason = error?.message ?? "";
	const said = `${call}: ${status} ${reason}`.trim();
	if (status === 401 || status === 403) return new PlatformError("denied", `${said}. The server password is wrong.`);
	if (status === 429) return new PlatformError("rate_limited", said, retryAfter(headers, Date.now()));
	// An earlier try is still under way.
	if (/already queued/i.test(reason)) return new PlatformError("unknown_outcome", said);
	if (data?.error === 22) return new PlatformError("gone", `${said}. The person does not use iMessage.`);
	if (data?.error) return new PlatformError("invalid", `${said}. Messages says error ${data.error}: look at the Mac.`);
	if (status === 404 || /does not exist|can.t get (?:chat|buddy)/i.test(reason)) {
		return new PlatformError("gone", `${said}. Check the chat's id.`);
	}
	if (/private api/i.test(reason)) return new PlatformError("denied", `${said}. Turn it on in the server.`);
	return new PlatformError(status < 500 ? "invalid" : "unknown_outcome", said);
}
