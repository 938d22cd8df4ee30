/** A Signal account that signal-cli is signed in to. */

import {
	type Account,
	addressOf,
	cannotTell,
	createConfirmationQueue,
	createdId,
	fetchFiles,
	type InboundMessage,
	keepListening,
	openSentLog,
	type Pace,
	PlatformError,
	type SendOptions,
	type SentLog,
	type Session,
	type Target,
	type Tools,
	type WireAttachment,
} from "@nexus-stream/adapter";
import { createApi, DEFAULT_API_URL, type SignalApi } from "./api.ts";
import { refusedBy, type SendResult } from "./faults.ts";
import { readEnvelope, recipientOf, type SignalFile, type SignalIdentity } from "./inbound.ts";

/** Where reading of events goes on after a restart. */
const LAST_EVENT = "last_event";
const REVISIONS = "revisions";
const REVISIONS_KEPT = 50;
const EDIT_INTERVAL_MS = 2500;
export const SEND_INTERVAL_MS = 1000;

interface Sent {
	timestamp: number;
	results?: readonly SendResult[];
}

export class SignalSession implements Session {
	private readonly number: string;
	private readonly drafts: boolean;
	private readonly api: SignalApi;
	private readonly tools: Tools;
	private readonly sent: SentLog;
	private myself: Promise<SignalIdentity> | undefined;

	constructor({ settings }: Account, tools: Tools) {
		this.number = settings.number ?? "";
		this.drafts = settings.drafts === "true";
		this.api = createApi(addressOf("api_url", settings.api_url, DEFAULT_API_URL), this.number);
		this.tools = tools;
		this.sent = openSentLog(tools);
		if (!/^\+[1-9]\d{6,14}$/.test(this.number)) {
			throw new PlatformError("invalid", "number must be written as +, country code and number.");
		}
	}

	style(): "edit" | "whole" {
		return this.drafts ? "edit" : "whole";
	}

	/** People's apps keep every edit, and take about a hundred of one message; whole messages only have to stay within Signal's limits. */
	pace(): Pace {
		return { targetIntervalMs: this.drafts ? EDIT_INTERVAL_MS : SEND_INTERVAL_MS };
	}

	async create(target: Target, text: string, { nonce, signal }: SendOptions): Promise<{ messageId: string }> {
		return await this.sendOnce(nonce, target, { message: text }, signal);
	}

	/** The servers keep nothing: only a call of which the account's own notes know the end can be told. */
	async find(_target: Target, nonce: string): Promise<{ messageId: string } | undefined> {
		const messageId = this.sent.of(nonce);
		if (messageId !== undefined) return { messageId };
		if (!this.sent.mayHaveLeft(nonce)) return undefined;
		throw cannotTell("The message may or may not have been sent, and Signal keeps none. Look at the chat.");
	}

	/** An edit is a message of its own, with its own time, and the next one refers to that. */
	async edit(target: Target, messageId: string, text: string, { signal }: SendOptions): Promise<void> {
		const revisions = this.revisions();
		const editTimestamp = revisions.find(([known]) => known === messageId)?.[1] ?? Number(messageId);
		const revision = await this.send(target, { message: text, editTimestamp }, signal);
		const others = revisions.filter(([known]) => known !== messageId);
		this.tools.state.set(REVISIONS, JSON.stringify([...others, [messageId, revision]].slice(-REVISIONS_KEPT)));
	}

	async attach(target: Target, file: WireAttachment, { nonce, signal }: SendOptions): Promise<{ messageId: string }> {
		const name = file.name.replace(/[;,\r\n"]/g, "_");
		const type = file.contentType.split(";")[0]?.trim() || "application/octet-stream";
		const attachments = [`data:${type};filename=${name};base64,${file.data}`];
		return await this.sendOnce(nonce, target, { attachments }, signal);
	}

	async typing(target: Target, on: boolean): Promise<void> {
		await this.api.call("sendTyping", { ...recipientOf(target), stop: on ? undefined : true });
	}

	async monitor(emit: (message: InboundMessage) => Promise<void>, signal: AbortSignal): Promise<void> {
		const { clock, log, state, listening } = this.tools;
		const heard = createConfirmationQueue();
		const take = async (data: string, id: string | undefined) => {
			const message = await this.read(data);
			await heard.add(message && emit(message), () => id === undefined || state.set(LAST_EVENT, id));
		};
		const opened = () => listening?.();
		const round = () => this.api.events({ after: state.get(LAST_EVENT), opened, take, signal, clock });
		await keepListening({ round, pauseMs: 0, signal, clock, log, listening });
	}

	async health() {
		const { uuid } = await this.me();
		const registered = uuid !== undefined;
		const detail = registered
			? `${this.number}, drafts ${this.drafts ? "on" : "off"}`
			: `${this.number} is not registered`;
		return { ok: registered, detail };
	}

	private async sendOnce(nonce: string, target: Target, what: object, signal: AbortSignal) {
		return await this.sent.create(nonce, async () => ({ messageId: String(await this.send(target, what, signal)) }));
	}

	private async send(target: Target, what: object, signal: AbortSignal): Promise<number> {
		const params = { ...recipientOf(target), ...quoteOf(target), ...what };
		const { timestamp, results = [] } = await this.api.call<Sent>("send", params, signal);
		const refused = refusedBy("send", results);
		if (refused) throw refused;
		return Number(createdId("send", timestamp));
	}

	private me(): Promise<SignalIdentity> {
		const number = this.number;
		this.myself ??= this.api
			.call<{ uuid?: string | null }[]>("getUserStatus", { recipient: [number] })
			.then(([me]) => ({ number, uuid: me?.uuid ?? undefined }));
		// A failure is not remembered.
		this.myself.catch(() => {
			this.myself = undefined;
		});
		return this.myself;
	}

	/** Signal gives a message once: it is not lost because our own id cannot be asked for. The number tells us as well, mostly. */
	private async selfInfo(): Promise<SignalIdentity> {
		try {
			return await this.me();
		} catch (cause) {
			this.tools.log.warn(
				{ error: String(cause) },
				"signal-cli does not say who we are; mentions are told by the number",
			);
			return { number: this.number, uuid: undefined };
		}
	}

	private async read(data: string): Promise<InboundMessage | undefined> {
		const inbound = readEnvelope(this.parse(data), await this.selfInfo());
		if (!inbound) return undefined;
		const { message, files } = inbound;
		const { attachments, notes } = await fetchFiles(files, (file, bytesMax) =>
			this.fetchFile(file, message.target, bytesMax),
		);
		const text = [message.text, ...notes].filter((each) => each !== "").join("\n");
		return { ...message, text, ...(attachments.length > 0 ? { attachments } : {}) };
	}

	/** An event that cannot be read is not asked for again. */
	private parse(data: string): unknown {
		try {
			return JSON.parse(data);
		} catch (cause) {
			this.tools.log.warn({ error: String(cause), excerpt: data.slice(0, 120) }, "skipped an event of signal-cli");
			return undefined;
		}
	}

	private async fetchFile({ id }: SignalFile, target: Target, bytesMax: number): Promise<Buffer> {
		const place = recipientOf(target);
		const where = "groupId" in place ? place : { recipient: place.recipient[0] };
		const { data } = await this.api.call<{ data: string }>("getAttachment", { id, ...where });
		const bytes = Buffer.from(data, "base64");
		if (bytes.length > bytesMax) throw new PlatformError("invalid", `larger than ${bytesMax} bytes`);
		return bytes;
	}

	private revisions(): [messageId: string, revision: number][] {
		return JSON.parse(this.tools.state.get(REVISIONS) ?? "[]");
	}
}

/** In groups an answer shows what it answers. */
const quoteOf = ({ reply_to, reply_author }: Target): object =>
	reply_to !== undefined && typeof reply_author === "string"
		? { quoteTimestamp: Number(reply_to), quoteAuthor: reply_author }
		: {};
