/** The authors of a run's history: a guest's text never acts with the owner's rights, however old it is (A10). */

import { shownText } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import { own } from "@nexus-stream/protocol/own";
import type { PassedOn } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import { executionWrites } from "../../ledger/execution/port.ts";
import type { Origin } from "../../ledger/inbox/port.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { trustWrites } from "../../ledger/trust/port.ts";
import { type InboundConfig, OUTSIDE_TOOLS } from "../inbox/config.ts";
import { type InboxMessage, type MessageFacts, recordedRights, rightsTogether } from "../inbox/message.ts";
import { commonRights, GUEST_RIGHTS, narrows, type Rights } from "./acl.ts";

export interface HistoryDeps {
	ledger: Pick<Ledger, "inbox">;
	trust: Pick<Trust, "of">;
	config(): Pick<InboundConfig, "approvals">;
}

interface Author {
	channel: string;
	account: string;
	sender: string;
	name?: string;
	rights: Rights;
}

export interface HistoryRead extends Pick<PassedOn, "among" | "outsideTools"> {
	/** The history contains text of another person without the owner's rights: the run uses no personal memory. */
	hasOthers: boolean;
}

/** Cached authors of all sessions; the author of a message never changes. */
const AUTHORS_MAX = 10_000;
/** Authors named in the prompt; the others are only counted. */
const NAMED_MAX = 3;
const NAME_CHARS_MAX = 60;

/** The author of a message whose event was deleted. */
const UNKNOWN: Author = { channel: "unknown", account: "", sender: "unknown", rights: GUEST_RIGHTS };

export class HistoryRights {
	readonly #deps: HistoryDeps;
	/** By event. */
	readonly #authors = new Map<string, Author>();

	constructor(deps: HistoryDeps) {
		this.#deps = deps;
	}

	/** The limits of a run that answers these messages. `events`: the messages of earlier runs in its context. */
	async reads(messages: readonly InboxMessage[], events: readonly string[]): Promise<HistoryRead> {
		const { trust, config } = this.#deps;
		const newest = messages.at(-1)!;
		if (await trust.of(newest.session)) return { hasOthers: false };
		const authors = await this.#authorsOf(events);
		const run = ofTools(rightsTogether(messages));
		const fewer = authors.filter(({ rights }) => narrows(run, ofTools(rights)));
		const { outside = OUTSIDE_TOOLS } = config().approvals ?? {};
		return {
			among: fewer.length > 0 ? amongOf(fewer) : undefined,
			outsideTools: outside.length > 0 ? outside : undefined,
			hasOthers: authors.some((one) => !one.rights.owner && !isBy(one, newest)),
		};
	}

	async #authorsOf(events: readonly string[]): Promise<Author[]> {
		const missing = events.filter((eventId) => !this.#authors.has(eventId));
		if (missing.length > 0)
			for (const { eventId, origin, facts } of await this.#deps.ledger.inbox.authors(missing))
				this.#keep(eventId, authorOf(origin, facts as Partial<MessageFacts> | undefined));
		return events.map((eventId) => this.#authors.get(eventId) ?? UNKNOWN);
	}

	#keep(eventId: string, author: Author): void {
		this.#authors.set(eventId, author);
		for (const oldest of this.#authors.keys()) {
			if (this.#authors.size <= AUTHORS_MAX) return;
			this.#authors.delete(oldest);
		}
	}
}

function authorOf(origin: Origin | undefined, facts: Partial<MessageFacts> = {}): Author {
	const rights = recordedRights(facts);
	if (!origin) return { channel: "web", account: "web", sender: "owner", rights };
	const { channel, account, sender, senderName } = origin;
	return { channel, account, sender, name: senderName, rights };
}

const isBy = ({ channel, account, sender }: Author, { origin, facts }: InboxMessage): boolean =>
	channel === origin.channel && account === origin.account && sender === facts.sender.id;

/** Only the rights on tools: the agents of a sender were decided when the message arrived. */
const ofTools = ({ agents: _, ...rights }: Rights): Rights => rights;

function amongOf(authors: readonly Author[]): NonNullable<PassedOn["among"]> {
	const { tools, denied } = commonRights(authors.map(({ rights }) => ofTools(rights)));
	const { channel, account, sender } = authors.at(-1)!;
	return { whose: namesOf(authors), from: { channel, account, sender }, allowedTools: tools, deniedTools: denied };
}

/** The last author is named first. */
function namesOf(authors: readonly Author[]): string {
	const names = [...new Set(authors.toReversed().map(nameOf))];
	const more = names.length - NAMED_MAX;
	return [...names.slice(0, NAMED_MAX), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

/** With the platform's id, because people choose their names themselves. */
const nameOf = ({ name, sender, channel }: Author): string =>
	`${name === undefined ? "" : `${short(name)} `}(${short(sender)}) on ${channel}`;

const short = (text: string): string => shownText(text).replaceAll("\n", " ").slice(0, NAME_CHARS_MAX).toWellFormed();

export type Trust = ReturnType<typeof createTrust>;

export interface TrustDeps {
	bus: Pick<Bus, "write">;
	ledger: Pick<Ledger, "trust">;
	config(): Pick<InboundConfig, "sessions">;
	clock: Clock;
}

/** The owner waits for the commit. */
const WRITE_MS_MAX = 1000;

/** Whether a session's history is trusted: the owner's setting, otherwise the configuration. */
export const createTrust = ({ bus, ledger, config, clock }: TrustDeps) => ({
	async of(session: string): Promise<boolean> {
		const set = await ledger.trust.get(session);
		return set ?? own(config().sessions, session)?.trustHistory === true;
	},
	/** Applies to the session's next runs. */
	async set(session: string, trusted: boolean): Promise<void> {
		const at = clock.now();
		const text = trusted ? "the owner trusts the history" : "the owner trusts the history no longer";
		const entry = { session, at, kind: "note", text, data: { trust_history: trusted } };
		await bus.write([trustWrites.set(session, trusted, at), executionWrites.add([entry])], WRITE_MS_MAX);
	},
});
