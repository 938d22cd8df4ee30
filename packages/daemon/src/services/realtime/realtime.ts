/** Opens, finds and closes realtime sessions. */

import { isSessionLabel, NexusError, newId } from "@nexus-stream/protocol";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { chainOf } from "../../broker/broker.ts";
import type { Cursor } from "../../bus/bus.ts";
import type { Connectors } from "../connectors/port.ts";
import { DurableWork, type DurableWorkDeps, stopping } from "../kit/durable-work.ts";
import type { Principal } from "../kit/principal.ts";
import { findConnector, transcriberOf, voiceOf } from "./connector.ts";
import {
	type OpenRealtime,
	REALTIME_LIMITS,
	type Realtime,
	type RealtimeInfo,
	type RealtimeInput,
	type RealtimeLimits,
	type RealtimeTaken,
} from "./port.ts";
import { RealtimeSession } from "./session.ts";

/** A message of a realtime session: it stops the answer under way. */
export interface RealtimeMessage {
	session: string;
	text: string;
	interrupt: true;
	/** Left out: the owner speaks. */
	app?: string;
	idempotencyKey?: string;
}

export interface RealtimeDeps extends DurableWorkDeps {
	connectors: Pick<Connectors, "find" | "open">;
	/** Takes a message into its session, as any other. */
	submit(message: RealtimeMessage): Promise<{ eventId: string; disposition: { state: string; because?: string } }>;
	limits?: Partial<RealtimeLimits>;
}

interface Meta {
	appId: string;
	session: string;
}

const INPUT_ID_CHARS_MAX = 128;

const STOPPED = { reason: "STOPPING", message: "the daemon stopped: open another session" } as const;

export const createRealtime = (deps: RealtimeDeps): Realtime => new RealtimeService(deps);

class RealtimeService implements Realtime {
	readonly #deps: RealtimeDeps;
	readonly #limits: RealtimeLimits;
	readonly #work: DurableWork;
	readonly #sessions = new Map<string, RealtimeSession>();
	/** The applications of those that are not on record yet, by their ids. */
	readonly #opening = new Map<string, string>();
	#isStopped = false;

	constructor(deps: RealtimeDeps) {
		this.#deps = deps;
		this.#limits = withDefaults(REALTIME_LIMITS, deps.limits);
		this.#work = new DurableWork(
			{
				kind: "realtime",
				noun: "realtime session",
				domain: "realtime",
				appOf: (_, info) => (info?.meta as Meta | undefined)?.appId,
			},
			deps,
		);
	}

	get live(): number {
		return this.#sessions.size;
	}

	async open(request: OpenRealtime, principal: Principal): Promise<RealtimeInfo> {
		const { appId, transcription, speech } = request;
		const { connectors, clock } = this.#deps;
		this.#refuseTooMany(appId);
		const id = newId("rt", clock.now());
		const session = labelOf(id, request, principal);
		this.#opening.set(id, appId);
		try {
			if (transcription) await findConnector(connectors, { ...transcription, appId }, "transcribe", principal);
			if (speech) await findConnector(connectors, { ...speech, appId }, "speech", principal);
			await this.#begin(id, session, request, principal);
			return { id, session, idleClosesAt: clock.now() + this.#limits.idleMs };
		} finally {
			this.#opening.delete(id);
		}
	}

	#refuseTooMany(appId: string): void {
		if (this.#isStopped) throw stopping();
		const { sessionsMax, sessionsPerAppMax } = this.#limits;
		const apps = [...this.#opening.values(), ...[...this.#sessions.values()].map((session) => session.appId)];
		const ofApp = apps.filter((app) => app === appId).length;
		if (apps.length >= sessionsMax || ofApp >= sessionsPerAppMax)
			throw new NexusError("busy", "too many realtime sessions are open: close one first");
	}

	/** Reads the session's runs from now on, and writes the realtime session's new log. */
	async #begin(id: string, session: string, request: OpenRealtime, principal: Principal): Promise<void> {
		const { bus, clock, log, connectors } = this.#deps;
		const limits = this.#limits;
		const { appId } = request;
		const chain = chainOf(session);
		const { head } = (await bus.describeChain(chain)) ?? { head: 0 };
		const cursor = await bus.cursor({ chain }, head);
		const writer = await this.#create(id, { appId, session }).catch((cause: unknown) => {
			cursor.close();
			throw cause;
		});
		const use = { connectors, limits, clock, appId, principal };
		const made: RealtimeSession = new RealtimeSession({
			id,
			appId,
			writer,
			answers: { cursor, voice: voiceOf(use, request, (runId, audio, type) => made.heard(runId, audio, type)) },
			transcribe: transcriberOf(use, request),
			submit: (text, key) => this.#submit(session, principal.owner ? undefined : appId, text, key),
			reserve: (bytes) => this.#heldBytes() + bytes <= limits.audioBytesTotalMax,
			limits,
			clock,
			log,
			onClosed: () => void this.#sessions.delete(id),
		});
		this.#sessions.set(id, made);
		if (this.#isStopped) await made.close(STOPPED);
	}

	async #create(id: string, meta: Meta) {
		const record = JSON.stringify({ type: "opened", at: this.#deps.clock.now() });
		const { log } = await this.#work.create({ appId: meta.appId, body: meta, result: id }, (commit) =>
			commit({ record, writes: [], meta, patienceMs: Number.POSITIVE_INFINITY }),
		);
		return log!.writer;
	}

	async #submit(session: string, app: string | undefined, text: string, idempotencyKey: string | undefined) {
		const message = { session, text, interrupt: true, app, idempotencyKey } as const;
		const { eventId, disposition } = await this.#deps.submit(message);
		if (disposition.state === "rejected")
			throw new NexusError("forbidden", `the message was rejected: ${disposition.because ?? "a plugin refused it"}`);
		return eventId;
	}

	#heldBytes(): number {
		return [...this.#sessions.values()].reduce((sum, { audioBytes }) => sum + audioBytes, 0);
	}

	async append(id: string, input: RealtimeInput, principal: Principal): Promise<RealtimeTaken> {
		if (input.inputId.length > INPUT_ID_CHARS_MAX)
			throw new NexusError("invalid", `an input_id has at most ${INPUT_ID_CHARS_MAX} characters`);
		await this.#work.describe(id, principal);
		const live = this.#sessions.get(id);
		if (live && input.commit) await this.#deps.quota.check(live.appId, 1);
		if (live) return live.append(input);
		throw new NexusError("precondition", `the realtime session ${id} is closed: open another one`);
	}

	async cursor(id: string, after: number | undefined, principal: Principal): Promise<Cursor> {
		const { head } = await this.#work.describe(id, principal);
		return this.#deps.bus.cursor({ log: id }, after ?? head);
	}

	async close(id: string, principal: Principal): Promise<void> {
		await this.#work.describe(id, principal);
		await this.#sessions.get(id)?.close();
	}

	recover(): Promise<number> {
		const message = "the daemon died during this session: open another one";
		return this.#work.recover(async (_, reopen) => {
			const record = { type: "failed", reason: "CRASHED", message, at: this.#deps.clock.now() };
			await (await reopen()).writer.seal([JSON.stringify(record)]);
			return true;
		});
	}

	async stop(): Promise<void> {
		this.#isStopped = true;
		await Promise.all([...this.#sessions.values()].map((session) => session.close(STOPPED)));
	}
}

/** The label of its session: an application's are its own, whatever it calls them. */
function labelOf(id: string, { appId, session }: OpenRealtime, { owner }: Principal): string {
	const label = owner ? session || `realtime:${id}` : `app:${appId}:${session || id}`;
	if (isSessionLabel(label)) return label;
	throw new NexusError(
		"invalid",
		"session: up to 128 letters, digits and . _ : @ + - beginning with a letter or digit; an application's id counts, too",
	);
}
