/**
 * The way of a message, top to bottom: receive ▸ acl ▸ hooks ▸ queue ▸ prepare ▸ execute ▸ deliver ▸ complete.
 * Whatever becomes of it is on record (I10).
 */

import { NexusError, newRunId, Refused, toNexusError } from "@nexus-stream/protocol";
import { type Clock, neverBack } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { Broker, Execution } from "../../broker/broker.ts";
import { ADMIT_MS_MAX, type Bus } from "../../bus/bus.ts";
import type { Engine } from "../../engine/engine.ts";
import type { InboundEvent, Ledger } from "../../ledger/ledger.ts";
import { decide } from "../access/acl.ts";
import { HistoryRights } from "../access/history.ts";
import { type PairingService, pairingText } from "../access/pairing.ts";
import { rightsOf } from "../access/rights.ts";
import type { Trust } from "../access/trust.ts";
import type { ChatApprovals } from "../approvals/approvals.ts";
import { takeDecision } from "../approvals/inbound.ts";
import type { Hooks } from "../plugins/hooks.ts";
import type { Outbound } from "../port.ts";
import {
	type PlannedDelivery,
	type PreparedRun,
	plannedDeliveriesOf,
	requestOf,
	stagesOf,
	traceWrite,
} from "./answer.ts";
import { cancelWaiting } from "./cancel.ts";
import { checkClients, checkContent, checkSame } from "./check.ts";
import { carryOut, commandIn, isCommand, sessionSince } from "./commands.ts";
import { Completing } from "./completing.ts";
import { type InboundConfig, type InboundLimits, rulesOf, settingsFor } from "./config.ts";
import { type Answered, Continuing } from "./continuing.ts";
import type { InboxLimits } from "./limits.ts";
import {
	type Accepted,
	acceptedOf,
	type ChannelMessage,
	type Destination,
	hookRequestOf,
	type Inbound,
	type InboxMessage,
	isClients,
	keyOf,
	messageOf,
	together,
} from "./message.ts";
import { createOrder, type Order } from "./order.ts";
import { recover } from "./recovery.ts";
import { type InboxStats, Refusals } from "./refusals.ts";
import { type QueueDecision, Sessions } from "./sessions.ts";
import type { Launched, Start } from "./start.ts";
import { Stops } from "./stops.ts";
import { timed } from "./timed.ts";

/** What the inbox needs of the outbound side. */
export type InboxOutbound = Pick<Outbound, "planDelivery" | "launch" | "settled" | "deliveries">;

export interface InboxDeps {
	broker: Broker;
	bus: Bus;
	ledger: Ledger;
	pairing: PairingService;
	outbound: InboxOutbound;
	engine: Pick<Engine, "disableStreaming" | "injects">;
	approvals: Pick<ChatApprovals, "takeMessage" | "decides">;
	trust: Pick<Trust, "of">;
	hooks(): Hooks;
	config(): InboundConfig;
	limits: InboundLimits;
	inboxLimits: InboxLimits;
	/** Says something that is not an answer to a run. Never rejects. */
	tell(place: Destination, text: string): void;
	clock: Clock;
	log: Log;
}

/** Raised by a plugin's `reject` when the run was about to start. */
class RejectedByPlugin extends NexusError {
	constructor(because: string) {
		super("forbidden", because);
	}
}

export class Inbox {
	readonly #deps: InboxDeps;
	/** Messages that can be recognised and are not on record yet (ST12). */
	readonly #inflight = new Map<string, Promise<InboundEvent>>();
	readonly #inOrder: Order;
	readonly #sessions: Sessions;
	readonly #stops = new Stops();
	readonly #refusals: Refusals;
	readonly #continuing: Continuing;
	readonly #history: HistoryRights;
	/** Runs are listed by their ids: one that starts later must not stand before an earlier one. */
	readonly #idTime: () => number;
	readonly #completing: Completing;
	readonly #stats: InboxStats = { received: 0, duplicates: 0, rejected: 0 };
	/** The daemon stops: nothing is taken in or started any more. */
	#closed = false;

	constructor(deps: InboxDeps) {
		const { bus, clock, log, hooks, inboxLimits } = deps;
		this.#deps = deps;
		this.#inOrder = createOrder(deps.limits.hooksWaitingMax);
		this.#idTime = neverBack(clock);
		this.#refusals = new Refusals(deps, this.#stats);
		this.#completing = new Completing(deps);
		const prepares = () => hooks().has("onPrepare");
		const launch = (start: Start) => this.#launch(start);
		this.#sessions = new Sessions({ bus, clock, log, limits: inboxLimits, prepares, launch });
		this.#continuing = new Continuing(deps, this.#sessions);
		this.#history = new HistoryRights(deps);
	}

	/** The stage `receive`. The same message twice: the second one gets the first one's answer. */
	async receive(inbound: Inbound): Promise<Accepted> {
		const { config, inboxLimits, clock } = this.#deps;
		this.#refuseWhenClosed();
		this.#stats.received++;
		if (isClients(inbound)) checkClients(inbound, inboxLimits);
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

	/** Goes on with a run that was cut off, as a new run; asked twice, it is the same one (A1). */
	async continue(runId: string, answer?: Answered): Promise<{ runId: string }> {
		this.#refuseWhenClosed();
		return this.#continuing.continue(runId, answer);
	}

	/** Answers the messages of a run that was cut off with a new run, whatever the engine. */
	async retry(runId: string): Promise<{ runId: string }> {
		this.#refuseWhenClosed();
		return this.#continuing.retry(runId);
	}

	/** From the first look at the store to the queue's decision a session takes one message at a time; a command waits for none (ST11). */
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

	async #decide(inbound: Inbound, message: InboxMessage): Promise<QueueDecision | { outcome: InboundEvent }> {
		const { clock } = this.#deps;
		const { receivedAt, facts } = message;
		const known = await this.#existing(message);
		if (known) {
			this.#stats.duplicates++;
			return { outcome: known };
		}
		const label = message.session;
		if (!isClients(inbound)) message.session = await sessionSince(this.#deps.ledger, label, message.eventId);
		facts.timings.push({ stage: "receive", at: receivedAt, ms: clock.now() - receivedAt });
		const letIn = () => (isClients(inbound) ? undefined : this.#letIn(inbound, message));
		const denied = await timed(facts.timings, "acl", clock, letIn);
		const meant = denied === undefined && !isClients(inbound) ? await this.#heed(inbound, message, label) : undefined;
		if (meant) return { outcome: meant };
		const isStopped = () => !isClients(inbound) && this.#stops.has(message);
		const refusal = denied ?? (isStopped() ? undefined : await this.#askPlugins(message));
		if (refusal !== undefined) return { outcome: await this.#refusals.reject(message, refusal) };
		return isStopped() ? { outcome: await this.#refusals.cancel(message) } : this.#queue(message);
	}

	/** A decision or a command: neither plugins nor the queue see it, for the run that it is about must go on. */
	async #heed(inbound: ChannelMessage, message: InboxMessage, label: string): Promise<InboundEvent | undefined> {
		const decided = await takeDecision(this.#deps, message, ADMIT_MS_MAX);
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

	/** The stage `acl`: undefined, or why the message is not let in. */
	async #letIn(inbound: ChannelMessage, message: InboxMessage): Promise<string | undefined> {
		const { pairing, tell, config, approvals } = this.#deps;
		const { channel, account, message: said } = inbound;
		const { sender, chat, agent } = message.facts;
		const { target } = said;
		// The prompt asks for these words, and for no mention.
		const mention = said.mention === true || (chat.type === "group" && (await approvals.decides(said.text)));
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
		const { because, tell: code } = await pairing.ask(stranger);
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
		const asked = () => this.#stops.during(message, () => hooks().call("onReceive", hookRequestOf(message)));
		const { text, context, attached, calls, reject } = await timed(facts.timings, "hooks", clock, asked);
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

	/** A platform that is not told "safe" sends it again for ever: what can never be accepted is recorded as such. */
	async #notTaken(cause: unknown, inbound: Inbound, message: InboxMessage): Promise<InboundEvent> {
		// Its run may have been refused because the message's run is there already (ST12).
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

	/** Messages have left the queue. */
	#launch(start: Start): Launched {
		let run: Execution | undefined;
		let isStopped = false;
		const begun = (execution: Execution) => {
			run = execution;
			if (isStopped) run.abort();
		};
		const abort = () => {
			isStopped = true;
			run?.abort();
		};
		return { established: this.#answer(start, begun), abort };
	}

	async #answer(start: Start, begun: (execution: Execution) => void): Launched["established"] {
		const { outbound, log } = this.#deps;
		const answer = await this.#prepare(start);
		this.#refuseWhenClosed();
		const planned = plannedDeliveriesOf(answer, outbound, log);
		const execution = this.#execute(start, answer, planned);
		begun(execution);
		await execution.established;
		this.#deliver(answer, planned);
		this.#completing.whenSaved(answer, execution);
		return { runId: answer.runId, saved: execution.saved };
	}

	/** The run is live: whatever fails here, its session is not free, and what it owes is on record. */
	#deliver({ runId }: PreparedRun, planned: readonly PlannedDelivery[]): void {
		const { outbound, log } = this.#deps;
		for (const { delivery } of planned) {
			try {
				outbound.launch(delivery);
			} catch (cause) {
				log.error(
					{ runId, delivery: delivery.id, err: cause },
					"a delivery could not begin; the next start takes it up",
				);
			}
		}
	}

	/** The stage `prepare`. A plugin may reject the messages still. */
	async #prepare({ session, messages }: Start): Promise<PreparedRun> {
		const { clock, hooks } = this.#deps;
		const runId = newRunId(this.#idTime());
		const now = clock.now();
		const message = together(messages, now);
		const { facts } = message;
		// A plugin may still say otherwise.
		if (this.#isInOnePiece(session, message.text))
			facts.hooks.context = { disable_streaming: true, ...facts.hooks.context };
		const answer: PreparedRun = { runId, messages, message, deliveries: [] };
		if (!hooks().has("onPrepare")) {
			facts.timings.push({ stage: "prepare", at: now, ms: 0 });
			return answer;
		}
		const asked = () => hooks().call("onPrepare", hookRequestOf(message, answer));
		const { context, attached, calls, text, reject } = await timed(facts.timings, "prepare", clock, asked);
		const before = facts.hooks;
		facts.hooks = { context, attached: [...before.attached, ...attached], calls: [...before.calls, ...calls] };
		if (reject !== undefined) throw new RejectedByPlugin(reject);
		message.text = text;
		return answer;
	}

	/** An engine that cannot say so streams: that is no reason to refuse the message. */
	#isInOnePiece(session: string, text: string): boolean {
		const { engine, log } = this.#deps;
		try {
			const { disableStreaming: setting } = engine;
			return typeof setting === "function" ? setting({ session, text }) === true : setting === true;
		} catch (cause) {
			log.error({ session, err: cause }, "the engine failed when it was asked whether to stream");
			return false;
		}
	}

	/** The stage `execute`: what becomes of the messages and what is owed begin with the run; their trace is saved with its turn. */
	#execute(
		{ begin, settle, patienceMs, continues, inbox }: Start,
		answer: PreparedRun,
		planned: readonly PlannedDelivery[],
	): Execution {
		const { runId } = answer;
		return this.#deps.broker.execute({
			...requestOf(answer, this.#deps.config().approvals?.policy, this.#history),
			inbox,
			...(continues && { continues }),
			begin: [...begin(runId), ...planned.map(({ write }) => write)],
			settle: (turn) => [traceWrite(answer, stagesOf(turn, this.#completing.isWhole(answer))), ...settle(turn)],
			...(patienceMs !== undefined && { patienceMs }),
		});
	}

	/** Ends what a dead daemon left of runs, lets what they owe begin, and goes on with the messages that waited in it. */
	recover(planned: () => Promise<void>): Promise<{ recovered: number }> {
		return recover(this.#deps, this.#sessions, planned);
	}

	cancel(eventId: string): Promise<InboundEvent> {
		return cancelWaiting(this.#deps.ledger, this.#sessions, eventId);
	}

	stats(): InboxStats & { waiting: number } {
		return { ...this.#stats, waiting: this.#sessions.waitingInAll };
	}

	/** Takes nothing in and starts nothing any more; what waits is the next daemon's. */
	close(): void {
		this.#closed = true;
		this.#sessions.close();
	}

	/** Lets what is completing end until the deadline. */
	finish(deadlineMs: number): Promise<void> {
		return this.#completing.finish(deadlineMs);
	}

	#refuseWhenClosed(): void {
		if (this.#closed) throw new NexusError("unavailable", "The daemon is stopping; send it again when it is back.");
	}
}
