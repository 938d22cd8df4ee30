/** A Signal account that signal-cli is signed in to. */

import {
	type CreatedMessage,
	type InboundMessage,
	type Pace,
	PlatformError,
	remembered,
	type SendOptions,
	type Session,
	type Settings,
	type Target,
	type Tools,
	type WireAttachment,
} from "@nexus-stream/adapter";
import { createdId } from "@nexus-stream/adapter/platform/json";
import { addressOf, withFiles } from "@nexus-stream/adapter/platform/network";
import { cannotTell } from "@nexus-stream/adapter/platform/platform-error";
import type { Attaching, Editing, Emit, Listening } from "@nexus-stream/adapter/platform/session";
import { createConfirmationQueue } from "@nexus-stream/adapter/serve/confirmation-queue";
import { keepListening } from "@nexus-stream/adapter/serve/listen";
import { createApi, type SignalApi } from "./api.ts";
import { refusedBy, type SignalSendAnswer } from "./faults.ts";
import { readEnvelope, recipientOf, type SignalFile, type SignalIdentity } from "./inbound.ts";

/** Where reading of events resumes after a restart. */
const LAST_EVENT = "last_event";
const REVISIONS = "revisions";
const REVISIONS_KEPT = 50;
const EDIT_INTERVAL_MS = 2500;
export const SEND_INTERVAL_MS = 1000;

export class SignalSession implements Session, Editing, Attaching, Listening {
	readonly editing = this;
	readonly attaching = this;
	readonly listening = this;
	readonly #number: string;
	readonly #drafts: boolean;
	readonly #api: SignalApi;
	readonly #tools: Tools;
	readonly #me = remembered(async (): Promise<SignalIdentity> => {
		const number = this.#number;
		const [me] = await this.#api.call<{ uuid?: string | null }[]>("getUserStatus", { recipient: [number] });
		return { number, uuid: me?.uuid ?? undefined };
	});

	constructor(settings: Settings<"number" | "drafts" | "api_url">, tools: Tools) {
		this.#number = settings.number;
		this.#drafts = settings.drafts === "true";
		this.#api = createApi(addressOf("api_url", settings.api_url), this.#number);
		this.#tools = tools;
		if (!/^\+[1-9]\d{6,14}$/.test(this.#number)) {
			throw new PlatformError("invalid", "number must be written as +, country code and number.");
		}
	}

	style(): "edit" | "whole" {
		return this.#drafts ? "edit" : "whole";
	}

	/** People's apps keep every edit, and take about a hundred of one message; whole messages only have to stay within Signal's limits. */
	pace(): Pace {
		return { targetIntervalMs: this.#drafts ? EDIT_INTERVAL_MS : SEND_INTERVAL_MS };
	}

	async create(target: Target, text: string, { signal }: SendOptions): Promise<CreatedMessage> {
		return { messageId: String(await this.#send(target, { message: text }, signal)) };
	}

	/** Signal's servers store no messages: only the kit's record can answer. */
	async find(): Promise<never> {
		throw cannotTell("The message may or may not have been sent, and Signal keeps none. Look at the chat.");
	}

	/** An edit is a separate message with its own time, and the next edit refers to that time. */
	async edit(target: Target, messageId: string, text: string, { signal }: SendOptions): Promise<void> {
		const revisions = this.#revisions();
		const editTimestamp = revisions.find(([known]) => known === messageId)?.[1] ?? Number(messageId);
		const revision = await this.#send(target, { message: text, editTimestamp }, signal);
		const others = revisions.filter(([known]) => known !== messageId);
		this.#tools.state.set(REVISIONS, JSON.stringify([...others, [messageId, revision]].slice(-REVISIONS_KEPT)));
	}

	async attach(target: Target, file: WireAttachment, { signal }: SendOptions): Promise<CreatedMessage> {
		const name = file.name.replace(/[;,\r\n"]/g, "_");
		const type = file.contentType.split(";")[0]?.trim() || "application/octet-stream";
		const attachments = [`data:${type};filename=${name};base64,${file.data}`];
		return { messageId: String(await this.#send(target, { attachments }, signal)) };
	}

	async typing(target: Target, on: boolean): Promise<void> {
		await this.#api.call("sendTyping", { ...recipientOf(target), stop: on ? undefined : true });
	}

	async monitor(emit: Emit, signal: AbortSignal): Promise<void> {
		const { clock, state, listening } = this.#tools;
		const heard = createConfirmationQueue();
		const take = async (data: string, id: string | undefined) => {
			const message = await this.#read(data);
			await heard.add(message && emit(message), () => id === undefined || state.set(LAST_EVENT, id));
		};
		const opened = () => listening();
		const round = () => this.#api.events({ after: state.get(LAST_EVENT), opened, take, signal, clock });
		await keepListening({ round, pauseMs: 0, signal, ...this.#tools });
	}

	async health() {
		const { uuid } = await this.#me();
		const state = uuid === undefined ? " is not registered" : `, drafts ${this.#drafts ? "on" : "off"}`;
		return { ok: uuid !== undefined, detail: `${this.#number}${state}` };
	}

	async #send(target: Target, what: object, signal: AbortSignal): Promise<number> {
		const params = { ...recipientOf(target), ...quoteOf(target), ...what };
		const { timestamp, results = [] } = await this.#api.call<SignalSendAnswer>("send", params, signal);
		const refused = refusedBy("send", results);
		if (refused) throw refused;
		return Number(createdId("send", timestamp));
	}

	/** Signal gives a message once: it is not lost because our own id cannot be asked for. The number tells us as well, mostly. */
	async #selfInfo(): Promise<SignalIdentity> {
		try {
			return await this.#me();
		} catch (cause) {
			this.#tools.log.warn(
				{ error: String(cause) },
				"signal-cli does not report our id; mentions are recognised by the number",
			);
			return { number: this.#number, uuid: undefined };
		}
	}

	async #read(data: string): Promise<InboundMessage | undefined> {
		const inbound = readEnvelope(this.#parse(data), await this.#selfInfo());
		if (!inbound) return undefined;
		return await withFiles(inbound, (file, bytesMax) => this.#fetchFile(file, inbound.message.target, bytesMax));
	}

	/** An event that cannot be read is not asked for again. */
	#parse(data: string): unknown {
		try {
			return JSON.parse(data);
		} catch (cause) {
			this.#tools.log.warn({ error: String(cause), excerpt: data.slice(0, 120) }, "skipped an event of signal-cli");
			return undefined;
		}
	}

	async #fetchFile({ id }: SignalFile, target: Target, bytesMax: number): Promise<Buffer> {
		const place = recipientOf(target);
		const where = "groupId" in place ? place : { recipient: place.recipient[0] };
		const { data } = await this.#api.call<{ data: string }>("getAttachment", { id, ...where });
		const bytes = Buffer.from(data, "base64");
		if (bytes.length > bytesMax) throw new PlatformError("invalid", `larger than ${bytesMax} bytes`);
		return bytes;
	}

	#revisions(): [messageId: string, revision: number][] {
		return JSON.parse(this.#tools.state.get(REVISIONS) ?? "[]");
	}
}

/** In groups an answer shows what it answers. */
const quoteOf = ({ reply_to, reply_author }: Target): object =>
	reply_to !== undefined && typeof reply_author === "string"
		? { quoteTimestamp: Number(reply_to), quoteAuthor: reply_author }
		: {};
