/** Files to Slack, in its three steps. Only the last one shows anything, and which file it was about is remembered before it. */

import {
	fetchNamed,
	harmless,
	networkError,
	PlatformError,
	type SendOptions,
	type Tools,
	type WireAttachment,
} from "@nexus-stream/adapter";
import type { WebClient } from "@slack/web-api";
import { call } from "./api.ts";
import { wordOf } from "./faults.ts";

export interface SlackAddress {
	channel: string;
	thread_ts?: string;
}

export interface Uploads {
	/** The message's id is the file's. */
	send(thread: SlackAddress, attachment: WireAttachment, options: SendOptions): Promise<{ messageId: string }>;
	/** The file that was to be shared with this nonce. */
	fileOf(nonce: string): string | undefined;
	/** Undefined: it was certainly not shared there. */
	find(fileId: string, channel: string): Promise<{ messageId: string } | undefined>;
}

const STATE_KEY = "uploads";
const UPLOADS_KEPT = 100;

export function createUploads(client: WebClient, state: Tools["state"]): Uploads {
	const remembered = (): [nonce: string, fileId: string][] => JSON.parse(state.get(STATE_KEY) ?? "[]");
	return {
		async send(thread, attachment, options) {
			const fileId = await upload(client, attachment, options);
			const others = remembered().filter(([nonce]) => nonce !== options.nonce);
			state.set(STATE_KEY, JSON.stringify([...others, [options.nonce, fileId]].slice(-UPLOADS_KEPT)));
			await state.recorded?.();
			const { channel: channel_id, thread_ts } = thread;
			const params = { files: [{ id: fileId, title: attachment.name }] as [{ id: string; title: string }], channel_id };
			await call("files.completeUploadExternal", options.signal, () =>
				client.files.completeUploadExternal(thread_ts === undefined ? params : { ...params, thread_ts }),
			);
			return { messageId: fileId };
		},
		fileOf: (nonce) => remembered().find(([known]) => known === nonce)?.[1],
		async find(fileId, channel) {
			try {
				const { file } = await call("files.info", undefined, () => client.files.info({ file: fileId }));
				const shares: { public?: object; private?: object } = file?.shares ?? {};
				const shared = channel in { ...shares.public, ...shares.private };
				return shared ? { messageId: fileId } : undefined;
			} catch (cause) {
				if (wordOf(cause) !== "file_not_found") throw cause;
				return undefined;
			}
		},
	};
}

async function upload(client: WebClient, { name, data }: WireAttachment, { signal }: SendOptions): Promise<string> {
	const bytes = Buffer.from(data, "base64");
	const filename = name.replace(/[\r\n"]/g, "_");
	const params = { filename, length: bytes.length };
	const thread = await harmless(
		call("files.getUploadURLExternal", signal, () => client.files.getUploadURLExternal(params)),
	);
	if (!thread.upload_url || !thread.file_id)
		throw new PlatformError("invalid", "files.getUploadURLExternal: no address");
	await harmless(putBytes(thread.upload_url, client.slackApiUrl, bytes, signal));
	return thread.file_id;
}

async function putBytes(url: string, home: string, body: Buffer, signal: AbortSignal): Promise<void> {
	const send = { method: "POST", body: new Uint8Array(body), home, signal };
	const response = await fetchNamed(url, send).catch((cause) => Promise.reject(networkError("upload", cause)));
	await response.body?.cancel();
	if (response.ok) return;
	const fault = response.status === 429 ? "rate_limited" : response.status >= 500 ? "unavailable" : "invalid";
	throw new PlatformError(fault, `upload: HTTP ${response.status}`);
}
