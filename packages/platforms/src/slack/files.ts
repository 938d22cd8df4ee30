/** Files to Slack, in three steps: get an address, upload, share. Only sharing shows anything; the file's id is recorded before it. */

import {
	type CreatedMessage,
	PlatformError,
	type SendOptions,
	type Tools,
	type WireAttachment,
} from "@nexus-stream/adapter";
import { fetchNamed, networkError } from "@nexus-stream/adapter/platform/network";
import { harmless } from "@nexus-stream/adapter/platform/platform-error";
import type { WebClient } from "@slack/web-api";
import { call } from "./api.ts";
import { wordOf } from "./faults.ts";
import type { SlackAddress } from "./writer.ts";

export interface Uploads {
	/** Returns the id of the stored file. */
	upload(attachment: WireAttachment, signal: AbortSignal): Promise<string>;
	/** The message's id is the file's. */
	share(
		thread: SlackAddress,
		attachment: WireAttachment,
		options: SendOptions,
		fileId: string,
	): Promise<CreatedMessage>;
	/** The file that was recorded for this nonce. */
	fileOf(nonce: string): string | undefined;
	/** Undefined: it certainly was not shared there. */
	find(fileId: string, channel: string): Promise<CreatedMessage | undefined>;
}

const STATE_KEY = "uploads";
const UPLOADS_KEPT = 100;

export function createUploads(client: WebClient, state: Tools["state"]): Uploads {
	const recorded = (): [nonce: string, fileId: string][] => JSON.parse(state.get(STATE_KEY) ?? "[]");
	return {
		upload: (attachment, signal) => upload(client, attachment, signal),
		async share(thread, attachment, options, fileId) {
			const others = recorded().filter(([nonce]) => nonce !== options.nonce);
			state.set(STATE_KEY, JSON.stringify([...others, [options.nonce, fileId]].slice(-UPLOADS_KEPT)));
			await state.recorded();
			const { channel: channel_id, thread_ts } = thread;
			const params = { files: [{ id: fileId, title: attachment.name }] as [{ id: string; title: string }], channel_id };
			await call("files.completeUploadExternal", options.signal, () =>
				client.files.completeUploadExternal(thread_ts === undefined ? params : { ...params, thread_ts }),
			);
			return { messageId: fileId };
		},
		fileOf: (nonce) => recorded().find(([known]) => known === nonce)?.[1],
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

async function upload(client: WebClient, { name, data }: WireAttachment, signal: AbortSignal): Promise<string> {
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
