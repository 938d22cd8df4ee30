/** Files to Slack, in three steps: get an address, upload, share. Only sharing shows anything; the file's id is recorded before it. */

import {
	type CreatedMessage,
	PlatformError,
	type SendOptions,
	type Target,
	type Tools,
	type WireAttachment,
} from "@nexus-stream/adapter";
import { fetchNamed, networkError } from "@nexus-stream/adapter/platform/network";
import { harmless } from "@nexus-stream/adapter/platform/platform-error";
import type { Attaching } from "@nexus-stream/adapter/platform/session";
import { call } from "./api.ts";
import { wordOf } from "./faults.ts";
import type { SlackWriter } from "./writer.ts";

const STATE_KEY = "uploads";
const UPLOADS_KEPT = 100;

export class SlackUploads implements Attaching {
	readonly #writer: SlackWriter;
	readonly #state: Tools["state"];

	constructor(writer: SlackWriter, state: Tools["state"]) {
		this.#writer = writer;
		this.#state = state;
	}

	/** Returns the id of the stored file. */
	async upload({ name, data }: WireAttachment, signal: AbortSignal): Promise<string> {
		const { client } = this.#writer;
		const bytes = Buffer.from(data, "base64");
		const params = { filename: name.replace(/[\r\n"]/g, "_"), length: bytes.length };
		const { upload_url: url, file_id: id } = await harmless(
			call("files.getUploadURLExternal", signal, () => client.files.getUploadURLExternal(params)),
		);
		if (!url || !id) throw new PlatformError("invalid", "files.getUploadURLExternal: no address");
		await harmless(putBytes(url, client.slackApiUrl, bytes, signal));
		return id;
	}

	/** The message's id is the file's. */
	async attach(
		target: Target,
		{ name: title }: WireAttachment,
		{ nonce, signal }: SendOptions,
		id: string,
	): Promise<CreatedMessage> {
		const { client } = this.#writer;
		const { channel: channel_id, thread_ts } = await this.#writer.threadOf(target, signal);
		const others = this.#recorded().filter(([known]) => known !== nonce);
		this.#state.set(STATE_KEY, JSON.stringify([...others, [nonce, id]].slice(-UPLOADS_KEPT)));
		await this.#state.recorded();
		const params = { files: [{ id, title }] as [{ id: string; title: string }], channel_id };
		await call("files.completeUploadExternal", signal, () =>
			client.files.completeUploadExternal(thread_ts === undefined ? params : { ...params, thread_ts }),
		);
		return { messageId: id };
	}

	/** The file that was recorded for this nonce. */
	fileOf(nonce: string): string | undefined {
		return this.#recorded().find(([known]) => known === nonce)?.[1];
	}

	/** Undefined: it certainly was not shared there. */
	async findShared(fileId: string, channel: string): Promise<CreatedMessage | undefined> {
		const { client } = this.#writer;
		try {
			const { file } = await call("files.info", undefined, () => client.files.info({ file: fileId }));
			const shares: { public?: object; private?: object } = file?.shares ?? {};
			const shared = channel in { ...shares.public, ...shares.private };
			return shared ? { messageId: fileId } : undefined;
		} catch (cause) {
			if (wordOf(cause) !== "file_not_found") throw cause;
			return undefined;
		}
	}

	#recorded(): [nonce: string, fileId: string][] {
		return JSON.parse(this.#state.get(STATE_KEY) ?? "[]");
	}
}

async function putBytes(url: string, home: string, body: Buffer, signal: AbortSignal): Promise<void> {
	const send = { method: "POST", body: new Uint8Array(body), home, signal };
	const response = await fetchNamed(url, send).catch((cause) => Promise.reject(networkError("upload", cause)));
	await response.body?.cancel();
	if (response.ok) return;
	const fault = response.status === 429 ? "rate_limited" : response.status >= 500 ? "unavailable" : "invalid";
	throw new PlatformError(fault, `upload: HTTP ${response.status}`);
}
