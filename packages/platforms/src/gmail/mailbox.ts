/** The new mails of a mailbox since the last poll, in order of arrival. */

import type { gmail_v1 } from "@googleapis/gmail";
import { PlatformError, type Tools } from "@nexus-stream/adapter";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { GmailCall } from "./api.ts";

/** The next position in the mailbox's history, and when it was last read. */
const HISTORY = "history_id";
const READ_AT = "read_at";
const PAGE_MAILS = 100;
/** After a long absence only the newest mails are read. */
const GAP_MAILS_MAX = 1000;

/** `take` resolves when the mail is safe; the position moves on behind it. */
export type SyncMailbox = (take: (mail: gmail_v1.Schema$Message) => Promise<void>) => Promise<void>;

interface News {
	ids: string[];
	historyId: string;
}

export function createSync(call: GmailCall, { state, clock, log }: Tools): SyncMailbox {
	const queue = createKeyedQueue();

	/** Undefined: the history does not reach back that far. */
	async function since(startHistoryId: string): Promise<News | undefined> {
		const ids = new Set<string>();
		let historyId = startHistoryId;
		let pageToken: string | undefined;
		do {
			const types = { historyTypes: ["messageAdded"], labelId: "INBOX" };
			const params = { userId: "me", startHistoryId, ...types, pageToken };
			const page = await call("history.list", (users) => users.history.list(params)).catch(orUndefinedWhenGone);
			if (!page) return undefined;
			for (const { messagesAdded = [] } of page.history ?? [])
				for (const { message } of messagesAdded) if (message?.id) ids.add(message.id);
			historyId = page.historyId ?? historyId;
			pageToken = page.nextPageToken ?? undefined;
		} while (pageToken);
		return { ids: [...ids], historyId };
	}

	/** Mails since the last reading, by their time; those that were read already have the same ids. */
	async function afterGap(): Promise<News> {
		const historyId = await now();
		const seconds = Math.floor(Number(state.get(READ_AT) ?? clock.now()) / 1000);
		const params = { userId: "me", labelIds: ["INBOX"], q: `after:${seconds}`, maxResults: PAGE_MAILS };
		const ids: string[] = [];
		let pageToken: string | undefined;
		do {
			const page = await call("messages.list", (users) => users.messages.list({ ...params, pageToken }));
			for (const { id } of page.messages ?? []) if (id) ids.push(id);
			pageToken = page.nextPageToken ?? undefined;
		} while (pageToken && ids.length < GAP_MAILS_MAX);
		if (pageToken)
			log.warn({ mails: ids.length }, "more mails arrived while the account was offline; older ones are not read");
		// They are listed newest first.
		return { ids: ids.toReversed(), historyId };
	}

	async function now(): Promise<string> {
		return (await call("getProfile", (users) => users.getProfile({ userId: "me" }))).historyId ?? "";
	}

	const sync: SyncMailbox = async (take) => {
		const begun = clock.now();
		const last = state.get(HISTORY);
		// Listening begins now.
		const news = last === undefined ? { ids: [], historyId: await now() } : ((await since(last)) ?? (await afterGap()));
		for (const id of news.ids) {
			const params = { userId: "me", id, format: "raw" };
			const mail = await call("messages.get", (users) => users.messages.get(params)).catch(orUndefinedWhenGone);
			if (mail) await take(mail);
			else log.info({ id, reason: "it was deleted before it was read" }, "skipped a mail");
		}
		state.set(HISTORY, news.historyId);
		state.set(READ_AT, String(begun));
	};

	// One after another, also after a failure.
	return (take) => queue.run("", () => sync(take));
}

function orUndefinedWhenGone(cause: unknown): undefined {
	if (cause instanceof PlatformError && cause.fault === "gone") return undefined;
	throw cause;
}
