/** Reads a person's message from Twilio's webhook. */

import type { MessageWithFiles, RemoteFile } from "@nexus-stream/adapter/platform/network";
import type { MessageFailure } from "@nexus-stream/adapter/port";
import { own } from "@nexus-stream/protocol/own";
import { heard } from "../heard.ts";

export interface SmsFile extends RemoteFile {
	url: string;
}

/** Undefined: nothing a person said to the agent (delivery reports, and STOP or HELP, which Twilio answers itself). */
export function readMessage(fields: URLSearchParams, now: number): MessageWithFiles<SmsFile> | undefined {
	const field = (name: string): string => fields.get(name) ?? "";
	const [eventId, from, to] = [field("MessageSid"), field("From"), field("To")];
	if (eventId === "" || from === "" || from === to) return undefined;
	if (field("SmsStatus") !== "received" || field("OptOutType") !== "") return undefined;
	return heard([field("Body")], filesOf(field), {
		eventId,
		from: { id: from },
		chat: { id: from, type: "direct" },
		// The answer comes from the number that was written to.
		target: { to: from, direct: true, from: to },
		// Twilio does not say when it was written.
		ts: now,
	});
}

/** The most frequent errors of carriers; Twilio's list has the others. */
const CAUSES: Readonly<Record<string, string>> = {
	30003: "the phone is off or out of reach",
	30004: "the number blocks these messages, or the person said STOP",
	30005: "the number does not exist",
	30006: "a landline, or a carrier that cannot be reached",
	30007: "the carrier took it for spam",
	30032: "the toll-free number has not been verified",
	30034: "the sender is not registered for this traffic (A2P 10DLC)",
	30044: "a trial account sends only short messages",
};

/** A status of one of our messages that says that it did not arrive; nothing for any other. */
export function readFailure(fields: URLSearchParams): MessageFailure | undefined {
	const messageId = fields.get("MessageSid") ?? "";
	const status = fields.get("MessageStatus") ?? "";
	if (messageId === "" || (status !== "failed" && status !== "undelivered")) return undefined;
	const code = fields.get("ErrorCode") ?? "";
	const cause = own(CAUSES, code) ?? (code && `see https://www.twilio.com/docs/errors/${code}`);
	return { messageId, error: `${status}${code && `, ${code}`}${cause && `: ${cause}`}` };
}

function filesOf(field: (name: string) => string): SmsFile[] {
	const files: SmsFile[] = [];
	for (let index = 0; index < Number(field("NumMedia")); index++) {
		const url = field(`MediaUrl${index}`);
		const contentType = field(`MediaContentType${index}`) || "application/octet-stream";
		const ending = /^[\w.+-]+\/([\w]+)/.exec(contentType)?.[1] ?? "bin";
		if (url !== "") files.push({ url, contentType, name: `media${index + 1}.${ending}` });
	}
	return files;
}
