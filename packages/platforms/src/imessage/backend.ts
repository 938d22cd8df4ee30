/** The port of the program on the Mac: BlueBubbles or imsg. */

import type { HealthReport, SendOptions, Settings, Target, WireAttachment } from "@nexus-stream/adapter";
import type { KeptMessage } from "@nexus-stream/adapter/memory/sent";
import type { MessageWithFiles } from "@nexus-stream/adapter/platform/network";
import type { IMessageFile } from "./inbound.ts";

export type IMessageSettings = Settings<
	"backend" | "api_url" | "password" | "private_api" | "webhook_secret" | "imsg_command" | "name"
>;

/** A message that we sent, as the Mac keeps it. */
export interface SentIMessage extends KeptMessage {
	text: string;
	files: readonly string[];
}

export interface InboundSink {
	/** Resolves once it is read; `safe` resolves when the daemon has stored it, absent when it is not for us. */
	take(inbound: MessageWithFiles<IMessageFile>): Promise<{ safe?: Promise<void> | undefined }>;
	signal: AbortSignal;
}

export interface Backend {
	send(target: Target, text: string, options: SendOptions): Promise<{ messageId: string }>;
	attach(target: Target, attachment: WireAttachment, options: SendOptions): Promise<{ messageId: string }>;
	/** Our messages in a chat since a time, newest first. Throws when the Mac cannot list them. */
	recent(target: Target, since: number): Promise<SentIMessage[]>;
	fetchFile(reference: string, bytesMax: number): Promise<Buffer>;
	listen(listening: InboundSink): Promise<void>;
	health(): Promise<HealthReport>;
	close?(): Promise<void>;
}

/** Chats have ids with semicolons; anything else is a person's number or mail address. */
export const isChat = (to: string): boolean => to.includes(";");
