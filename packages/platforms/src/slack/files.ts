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

const STATE_KEY = "uploads";
const UPLOADS_KEPT = 100;

export type Uploads = ReturnType<typeof createUploads>;

export function createUploads(client: WebClient, state: Tools["state"]) {
	const recorded = (): [nonce: string, fileId: string][] => JSON.parse(state.get(STATE_KEY) ?? "[]");
	return {
		/** Returns the id of the stored file. */
		upload: (attachment: WireAttachment, signal: AbortSignal) => upload(client, attachment, signal),
		/** The message's id is the file's. */
		async share({ channel: channel_id, thread_ts }: SlackAddress, title: string, options: SendOptions, fileId: string) {
			const others = recorded().filter(([nonce]) => nonce !== options.nonce);
			state.set(STATE_KEY, JSON.stringify([...others, [options.nonce, fileId]].slice(-UPLOADS_KEPT)));
			await state.recorded();
			const params = { files: [{ id: fileId, title }] as [{ id: string; title: string }], channel_id };
			await call("files.completeUploadExternal", options.signal, () =>
				client.files.completeUploadExternal(thread_ts === undefined ? params : { ...params, thread_ts }),
			);
			return { messageId: fileId };
		},
		/** The file that was recorded for this nonce. */
		fileOf: (nonce: string) => recorded().find(([known]) => known === nonce)?.[1],
		/** Undefined: it certainly was not shared there. */
		async find(fileId: string, channel: string): Promise<CreatedMessage | undefined> {
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
