/** The first stages of a message: known already? let in? changed by plugins? then into the queue. Whatever happens is on record (I10). */

import type { Target } from "../../adapter/adapter.ts";
import { type Accepted, acceptedOf, type Broker } from "../../broker/broker.ts";
import type { InboundEvent, Ledger } from "../../ledger/ledger.ts";
import { NexusError, newEventId, toNexusError } from "../../protocol/protocol.ts";
import type { Clock } from "../../std/clock.ts";
import type { Log } from "../../std/log.ts";
import { decide } from "../acl/acl.ts";
import type { PairingDesk } from "../acl/pairing.ts";
import type { Hooks } from "../hooks/hooks.ts";
import { type InboundConfig, type InboundLimits, type InboundRules, queueOf, rulesOf, WEB } from "./config.ts";
import { createOrder, type Order } from "./order.ts";
import {
	type ApiSubmission,
	type ChannelMessage,
	factsOf,
	hookRequestOf,
	isSameSubmission,
	type NexusRequest,
	originOf,
	requestOfMessage,
	requestOfSubmission,
} from "./request.ts";
import { sessionOf } from "./session.ts";
import { timed } from "./timed.ts";

export interface ReceptionDeps {
	broker: Broker;
	ledger: Ledger;
	pairing: PairingDesk;
	hooks(): Hooks;
	config(): InboundConfig;
	limits: InboundLimits;
	/** Says something that is no answer to a run. Never rejects. */
	tell(place: { channel: string; account: string; target: Target }, text: string): void;
	clock: Clock;
	log: Log;
}

export interface ReceptionStats {
	received: number;
	/** Messages that a platform delivered again. */
	duplicates: number;
	rejected: number;
}

/** Raised by a plugin's `reject` when the run was about to start. */
export class RejectedByPlugin extends NexusError {
	constructor(because: string) {
		super("forbidden", because);
	}
}

/** How often rejected messages are counted and the oldest forgotten. */
const REJECTIONS_PER_SWEEP = 64;

export class Reception {
	readonly #deps: ReceptionDeps;
	readonly #inflight = new Map<string, Promise<Accepted>>();
	readonly #order: Order;
	/** Session → when it was last told that it is busy. */
	readonly #busyTold = new Map<string, number>();
	readonly #stats: ReceptionStats = { received: 0, duplicates: 0, rejected: 0 };

	constructor(deps: ReceptionDeps) {
		this.#deps = deps;
		this.#order = createOrder(deps.limits.hooksWaitingMax);
	}

	stats(): ReceptionStats {
		return { ...this.#stats };
	}

	async receive(inbound: ChannelMessage | ApiSubmission): Promise<Accepted> {
		const { ledger, broker, clock } = this.#deps;
		this.#stats.received++;
		const now = clock.now();
		if ("message" in inbound) {
			const source = [inbound.channel, inbound.account, inbound.message.eventId] as const;
			const known = () => ledger.eventBySource(...source);
			return this.#once(JSON.stringify(source), known, () => this.#message(inbound, now));
		}
		const { session, idempotencyKey } = inbound;
		broker.check(inbound);
		if (idempotencyKey === undefined) return this.#submission(inbound, now);
		const known = () => ledger.eventByKey(session, idempotencyKey);
		const work = () => this.#submission(inbound, now);
		const accepted = await this.#once(JSON.stringify([session, idempotencyKey]), known, work);
		this.#checkSame(inbound, accepted.eventId);
		return accepted;
	}

	/** A client that uses a key for two messages would otherwise never learn that the second was not taken. */
	#checkSame(submission: ApiSubmission, eventId: string): void {
		const event = this.#deps.ledger.event(eventId);
		if (!event || isSameSubmission(event, submission)) return;
		throw new NexusError(
			"conflict",
			`not accepted: its idempotency key belongs to another message of this session already, event ${eventId}; send it with a key of its own`,
		);
	}

	/** The same message twice: the second one gets the first one's answer. */
	#once(key: string, known: () => InboundEvent | undefined, work: () => Promise<Accepted>): Promise<Accepted> {
		const before = this.#inflight.get(key);
		const event = before ? undefined : known();
		if (before || event) this.#stats.duplicates++;
		if (before) return before;
		if (event) return Promise.resolve(acceptedOf(event));
		const accepted = work().finally(() => this.#inflight.delete(key));
		this.#inflight.set(key, accepted);
		return accepted;
	}

	async #message(inbound: ChannelMessage, receivedAt: number): Promise<Accepted> {
		const { clock } = this.#deps;
		const config = this.#deps.config();
		const { channel, account, message } = inbound;
		const { thread_id: thread } = message.target;
		const rules = rulesOf(config, channel, account);
		const session = sessionOf(rules.session, {
			...{ channel, account, chat: message.chat.id, sender: message.from.id },
			...(thread !== undefined && { thread }),
		});
		const queue = queueOf(config, channel, account, session);
		const routing = { agent: rules.agent, target: message.target, ...(queue && { queue }) };
		const request = requestOfMessage(inbound, { eventId: newEventId(receivedAt), receivedAt, session, routing });
		request.timings.push({ stage: "receive", at: receivedAt, ms: clock.now() - receivedAt });
		const stopped = timed(request.timings, "acl", clock, () => this.#letIn(inbound, request, rules));
		if (stopped) return stopped;
		try {
			return await this.#through(request);
		} catch (cause) {
			return this.#refused(cause, request, rules);
		}
	}

	async #submission(given: ApiSubmission, receivedAt: number): Promise<Accepted> {
		const config = this.#deps.config();
		const { session } = given;
		const queue = queueOf(config, WEB, WEB, session);
		const routing = { agent: rulesOf(config, WEB, WEB).agent, ...(queue && { queue }) };
		const request = requestOfSubmission(given, { eventId: newEventId(receivedAt), receivedAt, session, routing });
		request.timings.push({ stage: "receive", at: receivedAt, ms: 0 }, { stage: "acl", at: receivedAt, ms: 0 });
		try {
			return await this.#through(request);
		} catch (cause) {
			if (cause instanceof RejectedByPlugin) return this.#reject(request, cause.message);
			throw cause;
		}
	}

	/** The stage `acl`. */
	#letIn(inbound: ChannelMessage, request: NexusRequest, rules: InboundRules): Accepted | undefined {
		const { pairing, tell } = this.#deps;
		const { channel, account, sender, chat } = request;
		const { target, mention = false } = inbound.message;
		const person = { channel, account, sender: sender.id };
		const verdict = decide(rules.acl, {
			...{ ...person, agent: rules.agent, chat, mention },
			...{ public: inbound.public ?? true, paired: pairing.isPaired(person) },
		});
		if (verdict.verdict === "allow") {
			request.sender.owner = verdict.owner;
			return undefined;
		}
		if (verdict.verdict === "deny") {
			if (verdict.unaddressed) request.event.text = "";
			return this.#reject(request, verdict.because);
		}
		const stranger = { ...person, target, ...(sender.name !== undefined && { senderName: sender.name }) };
		const { because, tell: code } = pairing.ask(stranger);
		if (code !== undefined) tell({ channel, account, target }, pairingText(code));
		return this.#reject(request, because);
	}

	/** The stage `hooks`, and on into the queue. */
	#through(request: NexusRequest): Promise<Accepted> {
		const { hooks, clock } = this.#deps;
		if (!hooks().has("onReceive")) {
			request.timings.push({ stage: "hooks", at: clock.now(), ms: 0 });
			return this.#submit(request);
		}
		// Plugins take their time: what came later must not overtake.
		return this.#order(request.session, async () => {
			const asked = () => hooks().call("onReceive", hookRequestOf(request));
			const { text, context, attached, calls, reject } = await timed(request.timings, "hooks", clock, asked);
			request.hooks = { context, attached, calls };
			request.event.text = text;
			return reject === undefined ? await this.#submit(request) : this.#reject(request, reject);
		});
	}

	/** The stage `queue` begins here and ends when the run starts. */
	#submit(request: NexusRequest): Promise<Accepted> {
		const { broker, clock } = this.#deps;
		const { session, event, routing } = request;
		const { eventId, text, attachments, idempotencyKey, traceId } = event;
		return broker.submit({
			...{ session, text, attachments, eventId, origin: originOf(request) },
			facts: { ...factsOf(request, clock.now()) },
			...(idempotencyKey !== undefined && { idempotencyKey }),
			...(traceId !== undefined && { traceId }),
			...(routing.queue && { queue: routing.queue }),
		});
	}

	/** A platform that is not told "safe" sends it again for ever: what can never be accepted is recorded as such. */
	#refused(cause: unknown, request: NexusRequest, rules: InboundRules): Accepted {
		const { code, message } = toNexusError(cause);
		if (cause instanceof RejectedByPlugin || code === "invalid" || code === "too_large")
			return this.#reject(request, message);
		if (code !== "busy") throw cause;
		this.#sayBusy(request, rules.busyText);
		return this.#reject(request, message, request.routing.queue?.mode === "reject" ? "rejected" : "dropped");
	}

	#sayBusy({ session, channel, account, routing: { target } }: NexusRequest, busyText: string): void {
		const { clock, limits, tell } = this.#deps;
		const now = clock.now();
		for (const [label, at] of this.#busyTold) if (now - at >= limits.busyReplyMs) this.#busyTold.delete(label);
		if (busyText === "" || !target || this.#busyTold.has(session)) return;
		this.#busyTold.set(session, now);
		tell({ channel, account, target }, busyText);
	}

	#reject(request: NexusRequest, because: string, state: "rejected" | "dropped" = "rejected"): Accepted {
		const { ledger, limits, clock, log } = this.#deps;
		const { eventId, text, receivedAt, idempotencyKey } = request.event;
		const event: InboundEvent = {
			...{ eventId, session: request.session, text: text.slice(0, limits.rejectedTextCharsMax).toWellFormed() },
			...{ attachments: [], receivedAt, disposition: { state, because }, origin: originOf(request) },
			...(idempotencyKey !== undefined && { idempotencyKey }),
			facts: { ...factsOf(request, clock.now()) },
		};
		ledger.accept(event);
		if (++this.#stats.rejected % REJECTIONS_PER_SWEEP === 0) ledger.forgetRejected(limits.rejectedEventsMax);
		log.debug({ eventId, channel: request.channel, sender: request.sender.id, because }, "a message was not let in");
		return { eventId, disposition: event.disposition };
	}
}

const pairingText = (code: string): string =>
	`I do not know you yet. To let you in, the person who runs me has to enter:\n\n\`nexus pair ${code}\`\n\nThe code is good for one hour.`;
