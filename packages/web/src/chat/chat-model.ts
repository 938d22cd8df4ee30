/** The state of an open session, the single reads that refresh a part of it, and its unsent messages. */

import { api } from "../app/api.ts";
import { type PageContext, PageState } from "../ui/page.ts";
import {
	type ChatState,
	hasLooseEnds,
	newChat,
	type OutgoingMessage,
	withDecisions,
	withEvents,
	withRow,
} from "./chat.ts";

const EVENTS_MAX = 100;
const DECISIONS_MAX = 100;

export interface ChatContext extends PageContext {
	/** A run began, settled or asks a person: the list of sessions or the pending approvals have changed. */
	onRunChange(): void;
	/** This tab sent a message to the session. */
	onSent(session: string): void;
}

export class ChatModel extends PageState<ChatState> {
	readonly session: string;
	readonly context: ChatContext;

	constructor(session: string, context: ChatContext) {
		super({ ...newChat(session), outgoing: unsentOf(session) }, context);
		this.session = session;
		this.context = context;
	}

	/** Ignored once the session is closed. */
	override change(part: Partial<ChatState>): void {
		if (this.isClosed) return;
		const { outgoing } = this.newest;
		super.change(part);
		// Stored at once, so that a reload or another session loses no message.
		if (this.newest.outgoing !== outgoing) keepUnsent(this.session, this.newest.outgoing);
	}

	async loadRow(runId: string): Promise<void> {
		this.context.onRunChange();
		await this.#read(`the run ${runId}`, async () => {
			const row = await api.run(runId);
			this.change(withRow(this.newest, row));
		});
	}

	loadEvents(): Promise<void> {
		return this.#read("the dispositions of the messages", async () => {
			const { events } = await api.events({ session: this.session, limit: EVENTS_MAX });
			this.change(withEvents(this.newest, events));
		});
	}

	async loadDecisions(): Promise<void> {
		if (!hasLooseEnds(this.newest)) return;
		await this.#read("the decisions", async () => {
			const { approvals } = await api.approvals({ session: this.session, limit: DECISIONS_MAX });
			this.change(withDecisions(this.newest, approvals));
		});
	}

	loadPhase(): Promise<void> {
		return this.#read("the session's phase", async () => {
			const { phase } = await api.phase(this.session);
			if (phase) this.change({ works: phase });
		});
	}

	loadQueue(): Promise<void> {
		return this.#read("the queue", async () => {
			const { queued } = await api.turns(this.session, { limit: 1 });
			this.change({ queued });
		});
	}

	/** A refresh that fails keeps the shown state. */
	async #read(name: string, read: () => Promise<void>): Promise<void> {
		try {
			await read();
		} catch (cause) {
			console.warn(`nexus: ${name} could not be read:`, this.messageOf(cause));
		}
	}
}

type Unsent = Pick<OutgoingMessage, "key" | "text" | "error">;

const nameOf = (session: string) => `nexus.unsent.${session}`;

export function unsentOf(session: string): OutgoingMessage[] {
	const stored = sessionStorage.getItem(nameOf(session)) ?? "[]";
	return (JSON.parse(stored) as Unsent[]).map((message) => ({ ...message, state: "failed" }));
}

export function keepUnsent(session: string, outgoing: readonly OutgoingMessage[]): void {
	const unsent = outgoing
		.filter(({ state }) => state === "failed")
		.map(({ key, text, error }): Unsent => ({ key, text, error }));
	try {
		if (unsent.length === 0) sessionStorage.removeItem(nameOf(session));
		else sessionStorage.setItem(nameOf(session), JSON.stringify(unsent));
	} catch (cause) {
		console.warn("nexus: an unsent message is too long for the storage of this tab:", cause);
	}
}
