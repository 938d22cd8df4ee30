/**
 * The way of a message, from top to bottom: receive ▸ acl ▸ hooks ▸ queue, then in `launch.ts` prepare ▸ execute ▸ deliver ▸ complete.
 * Its outcome is always recorded (I10).
 */

import { NexusError, Refused, toNexusError } from "@nexus-stream/protocol";
import { createKeyedQueue } from "@nexus-stream/protocol/keyed-queue";
import type { InboundEvent } from "../../ledger/inbox/port.ts";
import { decide, rightsOf } from "../access/acl.ts";
import { pairingText } from "../access/pairing.ts";
import { timed } from "./answer.ts";
import { carryOut, commandIn, isCommand, Stops, sessionSince } from "./commands.ts";
import { rulesOf, settingsFor } from "./config.ts";
import type { InboxDeps } from "./deps.ts";
import { Launcher, RejectedByPlugin } from "./launch.ts";
import {
	type Accepted,
	acceptedOf,
	type ChannelMessage,
	hookRequestOf,
	type Inbound,
	type InboxMessage,
	isClients,
	keyOf,
	messageOf,
} from "./message.ts";
import { type Answered, Continuing, recover } from "./recovery.ts";
import { checkClientMessage, checkContent, checkSame, type InboxStats, Refusals } from "./refusals.ts";
import { type QueueDecision, Sessions } from "./sessions.ts";

export class Inbox {
	readonly #deps: InboxDeps;
	/** Identifiable messages that are not on record yet (ST12). */
	readonly #inflight = new Map<string, Promise<InboundEvent>>();
	readonly #bySession = createKeyedQueue();
	readonly #sessions: Sessions;
	readonly #stops = new Stops();
	readonly #refusals: Refusals;
	readonly #continuing: Continuing;
	readonly #launcher: Launcher;
	readonly #stats: InboxStats = { received: 0, duplicates: 0, rejected: 0 };

	constructor(deps: InboxDeps) {
		this.#deps = deps;
		this.#refusals = new Refusals(deps, this.#stats);
		this.#launcher = new Launcher(deps);
		this.#sessions = new Sessions(deps, this.#launcher);
		this.#continuing = new Continuing(deps, this.#sessions);
	}

	/** Accepts a message and returns its disposition once that is durable (I10). A message that is sent twice gets the answer of the first one. */
	async receive(inbound: Inbound): Promise<Accepted> {
		const accepted = await this.#receive(inbound);
		if (!isClients(inbound) && !("because" in accepted.disposition)) this.#deps.arrived?.(inbound);
		return accepted;
	}

	async #receive(inbound: Inbound): Promise<Accepted> {
		const { config, inboxLimits, clock } = this.#deps;
		this.#launcher.refuseWhenClosed();
		this.#stats.received++;
		if (isClients(inbound)) checkClientMessage(inbound, inboxLimits);
		const message = messageOf(inbound, { config: config(), limits: inboxLimits, now: clock.now() });
		const key = keyOf(message);
		if (key === undefined) return acceptedOf(await this.#take(inbound, message));
		let first = this.#inflight.get(key);
		if (first) this.#stats.duplicates++;
		else {
			first = this.#take(inbound, message).finally(() => this.#inflight.delete(key));
			this.#inflight.set(key, first);
		}
		const event = await first;
		if (isClients(inbound)) checkSame(event, message);
		return acceptedOf(event);
	}

	/** Continues an interrupted run as a new run; a second call returns the same one (A1). Rejects with `not_found`, or `conflict` and the reason. */
	async continue(runId: string, answer?: Answered): Promise<{ runId: string }> {
		this.#launcher.refuseWhenClosed();
		return this.#continuing.continue(runId, answer);
	}

	/** Answers the messages of an interrupted run again with a new run, for any engine. */
	async retry(runId: string): Promise<{ runId: string }> {
		this.#launcher.refuseWhenClosed();
		return this.#continuing.retry(runId);
	}

	/** From the first read of the store to the queue's decision, a session handles one message at a time; commands do not wait (ST11). */
	async #take(inbound: Inbound, message: InboxMessage): Promise<InboundEvent> {
		const decide = () => this.#decide(inbound, message);
		const waits = isClients(inbound) || !isCommand(inbound);
		try {
			const { outcome } = await (waits ? this.#inOrder(message.session, decide) : decide());
			return await outcome;
		} catch (cause) {
			return this.#notTaken(cause, inbound, message);
		}
	}

	#inOrder<T>(session: string, work: () => Promise<T>): Promise<T> {
		const { hooksWaitingMax } = this.#deps.limits;
		if (this.#bySession.size(session) >= hooksWaitingMax)
			throw new NexusError("busy", `${hooksWaitingMax} messages wait in ${session} already; try again later.`);
		return this.#bySession.run(session, work);
	}

	async #decide(inbound: Inbound, message: InboxMessage): Promise<QueueDecision | { outcome: InboundEvent }> {
		const { clock } = this.#deps;
		const { receivedAt, facts } = message;
		const existing = await this.#existing(message);
		if (existing) {
			this.#stats.duplicates++;
			return { outcome: existing };
		}
		const label = message.session;
		if (!isClients(inbound)) message.session = await sessionSince(this.#deps.ledger, label, message.eventId);
		facts.timings.push({ stage: "receive", at: receivedAt, ms: clock.now() - receivedAt });
		const admit = () => (isClients(inbound) ? undefined : this.#admit(inbound, message));
		const denied = await timed(facts.timings, "acl", clock, admit);
		const handled =
			denied === undefined && !isClients(inbound) ? await this.#handle(inbound, message, label) : undefined;
		if (handled) return { outcome: handled };
		const isStopped = () => !isClients(inbound) && this.#stops.has(message);
		const refusal = denied ?? (isStopped() ? undefined : await this.#askPlugins(message));
		if (refusal !== undefined) return { outcome: await this.#refusals.reject(message, refusal) };
		return isStopped() ? { outcome: await this.#refusals.cancel(message) } : this.#queue(message);
	}

	/** A decision or a command skips plugins and queue, because the run it concerns waits for it. */
	async #handle(inbound: ChannelMessage, message: InboxMessage, label: string): Promise<InboundEvent | undefined> {
		const decided = await this.#deps.approvals.takeMessage(message);
		if (decided) return decided;
		const command = commandIn(inbound);
		const deps = { ...this.#deps, sessions: this.#sessions, stops: this.#stops };
		return command && carryOut(deps, command, message, label);
	}

	async #existing({ session, idempotencyKey, origin }: InboxMessage): Promise<InboundEvent | undefined> {
		const { inbox } = this.#deps.ledger;
		if (idempotencyKey !== undefined) return inbox.byKey(session, idempotencyKey);
		return origin.sourceId === undefined ? undefined : inbox.bySource(origin.channel, origin.account, origin.sourceId);
	}

	/** The stage `acl`: undefined, or why the message is denied. */
	async #admit(inbound: ChannelMessage, message: InboxMessage): Promise<string | undefined> {
		const { pairing, tell, config, approvals } = this.#deps;
		const { channel, account, message: source } = inbound;
		const { sender, chat, agent } = message.facts;
		const { target } = source;
		// A reply to an approval prompt needs no mention.
		const mention = source.mention === true || (chat.type === "group" && (await approvals.decides(source.text)));
		const person = { channel, account, sender: sender.id };
		const paired = await pairing.isPaired(person);
		const question = { ...person, agent, chat, mention, public: inbound.public ?? true, paired };
		const verdict = decide(rulesOf(config(), channel, account).acl, question);
		if (verdict.verdict === "allow") {
			sender.owner = verdict.owner;
			message.facts.rights = rightsOf(rulesOf(config(), channel, account).acl, question, config().agents ?? []);
			return undefined;
		}
		if (verdict.verdict === "deny") {
			if (verdict.unaddressed) message.text = "";
			return verdict.because;
		}
		const stranger = { ...person, target, senderName: sender.name };
		const { because, code } = await pairing.ask(stranger);
		if (code !== undefined) tell({ channel, account, target }, pairingText(code));
		return because;
	}

	/** The stage `hooks`: undefined, or why a plugin rejects the message. */
	async #askPlugins(message: InboxMessage): Promise<string | undefined> {
		const { hooks, clock } = this.#deps;
		const { facts } = message;
		if (!hooks().has("onReceive")) {
			facts.timings.push({ stage: "hooks", at: clock.now(), ms: 0 });
			return undefined;
		}
		const call = () => this.#stops.during(message, () => hooks().call("onReceive", hookRequestOf(message)));
		const { text, context, attached, calls, reject } = await timed(facts.timings, "hooks", clock, call);
		facts.hooks = { context, attached, calls };
		message.text = text;
		return reject;
	}

	/** The stage `queue` begins here and ends when the run is prepared. */
	#queue(message: InboxMessage): Promise<QueueDecision> {
		checkContent(message, this.#deps.inboxLimits);
		const { engine, hooks, clock } = this.#deps;
		if (message.queue) message.queue = settingsFor(message.queue, engine, hooks());
		message.facts.queuedAt = clock.now();
		return this.#sessions.arrive(message);
	}

	/** Records a message that can never be accepted: without an acknowledgement the platform would send it again forever. */
	async #notTaken(cause: unknown, inbound: Inbound, message: InboxMessage): Promise<InboundEvent> {
		// The run may have been refused because the message already has a run (ST12).
		const winner = cause instanceof Refused ? await this.#existing(message) : undefined;
		if (winner) return winner;
		const { code, message: because } = toNexusError(cause);
		const isRecorded = message.disposition.state === "rejected";
		if (cause instanceof RejectedByPlugin) {
			if (isRecorded) this.#stats.rejected++;
			return isRecorded ? message : this.#refusals.reject(message, because);
		}
		if (isClients(inbound)) throw cause;
		if (isRecorded) return message;
		if (code === "invalid" || code === "too_large") return this.#refusals.reject(message, because);
		if (code !== "busy") throw cause;
		const { channel, account } = message.origin;
		this.#refusals.sayBusy(message, rulesOf(this.#deps.config(), channel, account).busyText);
		return this.#refusals.reject(message, because, message.queue?.mode === "reject" ? "rejected" : "dropped");
	}

	/** Ends the runs of a dead daemon, starts their pending deliveries by `planned`, and restores the messages that waited in it. */
	recover(planned: () => Promise<void>): Promise<{ recovered: number }> {
		return recover(this.#deps, this.#sessions, planned);
	}

	/** Cancels a waiting message (A27). Throws `not_found`, and `conflict` once it no longer waits. */
	async cancel(eventId: string): Promise<InboundEvent> {
		const event = await this.#deps.ledger.inbox.get(eventId);
		if (!event) throw new NexusError("not_found", `there is no message ${eventId}`);
		const { state } = event.disposition;
		if (state !== "queued") throw new NexusError("conflict", `message ${eventId} is ${state}: it waits no longer`);
		const cancelled = await this.#sessions.cancel(event.session, (message) => message.eventId === eventId);
		if (cancelled === 0)
			throw new NexusError("conflict", `Message ${eventId} is about to start, or waits in another daemon.`);
		return { ...event, disposition: { state: "cancelled" } };
	}

	stats(): InboxStats & { waiting: number } {
		return { ...this.#stats, waiting: this.#sessions.waitingInAll };
	}

	/** Accepts no message and starts no run any more; the next daemon starts what waits. */
	close(): void {
		this.#sessions.close();
	}

	/** Lets completing runs end until the deadline. */
	finish(deadlineMs: number): Promise<void> {
		return this.#launcher.finish(deadlineMs);
	}
}
