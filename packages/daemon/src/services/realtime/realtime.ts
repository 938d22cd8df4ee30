/** Opens, finds and closes realtime sessions. */

import { isSessionLabel, LOG_KINDS, NexusError, newId } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import type { Log } from "@nexus-stream/protocol/log";
import { chainOf } from "../../broker/broker.ts";
import type { Bus } from "../../bus/bus.ts";
import type { Connectors } from "../connectors/port.ts";
import { gone } from "../kit/gone.ts";
import { type Principal, seesApp } from "../kit/principal.ts";
import type { Quota } from "../kit/quota.ts";
import { findConnector, useConnector } from "./connector.ts";
import { type OpenRealtime, REALTIME_LIMITS, type Realtime, type RealtimeLimits } from "./port.ts";
import { RealtimeSession } from "./session.ts";
import { createVoice } from "./voice.ts";

/** A message of a realtime session: it stops the answer under way. */
export interface RealtimeMessage {
	session: string;
	text: string;
	interrupt: true;
	/** Left out: the owner speaks. */
	app?: string;
	idempotencyKey?: string;
}

export interface RealtimeDeps {
	bus: Bus;
	connectors: Pick<Connectors, "find" | "open" | "report">;
	/** Takes a message into its session, as any other. */
	submit(message: RealtimeMessage): Promise<{ eventId: string; disposition: { state: string; because?: string } }>;
	limits?: Partial<RealtimeLimits>;
	/** Left out: applications store what they like. */
	quota?: Pick<Quota, "check">;
	clock?: Clock;
	log: Log;
}

interface Meta {
	appId: string;
	session: string;
}

const INPUT_ID_CHARS_MAX = 128;

export function createRealtime(deps: RealtimeDeps): Realtime {
	const { bus, clock = systemClock, log } = deps;
	const limits = withDefaults(REALTIME_LIMITS, deps.limits);
	const sessions = new Map<string, RealtimeSession>();
	/** The applications of those that are not on record yet, by their ids. */
	const opening = new Map<string, string>();
	let isStopped = false;

	const heldBytes = () => [...sessions.values()].reduce((sum, { audioBytes }) => sum + audioBytes, 0);

	function refuseTooMany(appId: string): void {
		if (isStopped) throw new NexusError("unavailable", "the daemon is stopping", { reason: "STOPPING" });
		const apps = [...opening.values(), ...[...sessions.values()].map((session) => session.appId)];
		const ofApp = apps.filter((app) => app === appId).length;
		if (apps.length >= limits.sessionsMax || ofApp >= limits.sessionsPerAppMax)
			throw new NexusError("busy", "too many realtime sessions are open: close one first");
	}

	/** The label of its session: an application's are its own, whatever it calls them. */
	const labelOf = (id: string, { appId, session }: OpenRealtime, { owner }: Principal): string => {
		const label = owner ? session || `realtime:${id}` : `app:${appId}:${session || id}`;
		if (isSessionLabel(label)) return label;
		throw new NexusError(
			"invalid",
			"session: up to 128 letters, digits and . _ : @ + - beginning with a letter or digit; an application's id counts, too",
		);
	};

	async function submit(session: string, app: string | undefined, text: string, key: string | undefined) {
		const { eventId, disposition } = await deps.submit({ session, text, interrupt: true, app, idempotencyKey: key });
		if (disposition.state === "rejected")
			throw new NexusError("forbidden", `the message was rejected: ${disposition.because ?? "a plugin refused it"}`);
		return eventId;
	}

	function voiceOf({ speech, appId }: OpenRealtime, principal: Principal, heard: SpeechHandler) {
		if (!speech) return undefined;
		const { voice, mimeType } = speech;
		return (runId: string) =>
			createVoice({
				speak: (text, signal) =>
					useConnector(deps.connectors, { ...speech, appId }, "speech", principal, (provider, model) =>
						provider.speak({ model, text, voice, mimeType }, signal),
					),
				heard: (audio, type) => heard(runId, audio, type),
				limits,
				clock,
			});
	}

	function transcriberOf({ transcription, appId, inputMimeType: mimeType }: OpenRealtime, principal: Principal) {
		if (!transcription) return undefined;
		const wanted = { ...transcription, appId };
		return async (data: Uint8Array, closed: AbortSignal): Promise<string> => {
			const late = new AbortController();
			const cancel = clock.after(limits.transcribeMs, () => late.abort());
			const signal = AbortSignal.any([closed, late.signal]);
			try {
				const call = useConnector(deps.connectors, wanted, "transcribe", principal, (provider, model) =>
					provider.transcribe({ model, audio: { mimeType, data } }, signal),
				);
				return (await call).text;
			} catch (cause) {
				if (!late.signal.aborted) throw cause;
				const why = `the audio was not transcribed within ${limits.transcribeMs} ms`;
				throw new NexusError("timeout", why, { cause, reason: "AI_PROVIDER_TIMEOUT" });
			} finally {
				cancel();
			}
		};
	}

	async function check(request: OpenRealtime, principal: Principal): Promise<void> {
		const { transcription, speech, appId } = request;
		await deps.quota?.check(appId, 1);
		if (transcription) await findConnector(deps.connectors, { ...transcription, appId }, "transcribe", principal);
		if (speech) await findConnector(deps.connectors, { ...speech, appId }, "speech", principal);
	}

	async function open(request: OpenRealtime, principal: Principal) {
		refuseTooMany(request.appId);
		const id = newId("rt", clock.now());
		const session = labelOf(id, request, principal);
		opening.set(id, request.appId);
		try {
			await check(request, principal);
			return await begin(id, session, request, principal);
		} finally {
			opening.delete(id);
		}
	}

	/** A cursor on the session's runs from now on, and the writer of the realtime session's new log. */
	async function logsOf(id: string, { appId, session }: Meta) {
		const chain = chainOf(session);
		const { head } = (await bus.describeChain(chain)) ?? { head: 0 };
		const cursor = await bus.cursor({ chain }, head);
		try {
			const opened = JSON.stringify({ type: "opened", at: clock.now() });
			const writer = await bus.create({ log: id, kind: "realtime", meta: { appId, session }, countedFor: appId }, [
				opened,
			]);
			return { cursor, writer };
		} catch (cause) {
			cursor.close();
			throw cause;
		}
	}

	async function begin(id: string, session: string, request: OpenRealtime, principal: Principal) {
		const { appId } = request;
		const { cursor, writer } = await logsOf(id, { appId, session });
		const heard: SpeechHandler = (runId, audio, mimeType) => made.heard(runId, audio, mimeType);
		const voice = voiceOf(request, principal, heard);
		const app = principal.owner ? undefined : appId;
		const made = new RealtimeSession({
			id,
			appId,
			session,
			writer,
			answers: { cursor, voice },
			transcribe: transcriberOf(request, principal),
			submit: (text, key) => submit(session, app, text, key),
			reserve: (bytes) => heldBytes() + bytes <= limits.audioBytesTotalMax,
			limits,
			clock,
			log,
			onClosed: () => void sessions.delete(id),
		});
		sessions.set(id, made);
		if (isStopped) await made.close(STOPPED);
		return { id, session, idleClosesAt: clock.now() + limits.idleMs };
	}

	/** Live or closed; of another application it is as if it were not there. */
	async function find(id: string, principal: Principal): Promise<{ live?: RealtimeSession; head: number }> {
		const info = await bus.describe(id);
		const meta = info?.kind === "realtime" ? (info.meta as Meta) : undefined;
		if (!info || !meta || !seesApp(principal, meta.appId))
			throw gone("realtime session", id, LOG_KINDS.realtime.keptMs, clock.now());
		const live = sessions.get(id);
		return { head: info.head, live };
	}

	return {
		open,
		async append(id, input, principal) {
			if (input.inputId.length > INPUT_ID_CHARS_MAX)
				throw new NexusError("invalid", `an input_id has at most ${INPUT_ID_CHARS_MAX} characters`);
			const { live } = await find(id, principal);
			if (live && input.commit) await deps.quota?.check(live.appId, 1);
			if (live) return live.append(input);
			throw new NexusError("precondition", `the realtime session ${id} is closed: open another one`);
		},
		async cursor(id, after, principal) {
			const { head } = await find(id, principal);
			return bus.cursor({ log: id }, after ?? head);
		},
		async close(id, principal) {
			await (await find(id, principal)).live?.close();
		},
		recover: () => closeOrphans(bus, clock, log),
		get live() {
			return sessions.size;
		},
		async stop() {
			isStopped = true;
			await Promise.all([...sessions.values()].map((session) => session.close(STOPPED)));
		},
	};
}

type SpeechHandler = (runId: string, audio: Uint8Array, mimeType: string) => Promise<void>;

const STOPPED = { reason: "STOPPING", message: "the daemon stopped: open another session" } as const;

/** An orphan that cannot be closed does not keep the daemon from starting. */
async function closeOrphans(bus: Bus, clock: Clock, log: Log): Promise<number> {
	let closed = 0;
	for (const { log: id } of await bus.list({ kind: "realtime", orphaned: true })) {
		try {
			const writer = await bus.reopen(id);
			const message = "the daemon died during this session: open another one";
			await writer.seal([JSON.stringify({ type: "failed", reason: "CRASHED", message, at: clock.now() })]);
			closed++;
		} catch (cause) {
			log.error({ err: cause, realtime: id }, "a realtime session of the last process could not be closed");
		}
	}
	return closed;
}
