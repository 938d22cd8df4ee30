/** Realtime sessions on a real inbox, Broker and Bus, with connectors that play. */

import { follow } from "../../../packages/daemon/src/bus/bus.ts";
import type { ConnectorInfo, Connectors, Provider } from "../../../packages/daemon/src/services/connectors/port.ts";
import type {
	OpenRealtime,
	RealtimeEvent,
	RealtimeLimits,
} from "../../../packages/daemon/src/services/realtime/port.ts";
import { createRealtime } from "../../../packages/daemon/src/services/realtime/realtime.ts";
import { silentLog } from "../../../packages/protocol/src/log.ts";
import { NexusError } from "../../../packages/protocol/src/protocol.ts";
import type { Play } from "../../broker/rig.ts";
import { manualClock } from "../../clock.ts";
import { type NexRigOptions, nexRig } from "../../nex/inbox/rig.ts";
import { until } from "../../until.ts";
import { connectorOf, durableParts, OWNER } from "../parts.ts";

export { appPrincipal, OWNER } from "../parts.ts";

interface PlayedConnectors extends Pick<Connectors, "find" | "open"> {
	/** Sentences given to the speech provider, in order. */
	readonly spoken: string[];
}

const info = (id: string, kinds: ConnectorInfo["kinds"], fields: Partial<ConnectorInfo> = {}): ConnectorInfo =>
	connectorOf(id, { kinds, models: [], ...fields });

/** `voice` speaks, `ear` understands, `off` is disabled, `mine` belongs to the application `a`. */
export function playedConnectors(provider: Partial<Provider> = {}): PlayedConnectors {
	const spoken: string[] = [];
	const all = [
		info("voice", ["speech"]),
		info("ear", ["transcribe"]),
		info("off", ["speech"], { enabled: false }),
		info("mine", ["speech"], { appId: "a" }),
	];
	return {
		spoken,
		find: async (id, { owner, appId }) =>
			all.find((one) => one.id === id && (owner || one.appId === undefined || one.appId === appId)),
		open: async () =>
			({
				demo: true,
				async speak({ text }) {
					spoken.push(text);
					return { mimeType: "audio/test", audio: bytesOf(text) };
				},
				transcribe: async ({ audio }) => ({ text: Buffer.from(audio.data).toString() }),
				...provider,
			}) as Provider,
	};
}

async function* bytesOf(text: string): AsyncIterable<Uint8Array> {
	yield Buffer.from(text);
}

export interface RealtimeRigOptions extends NexRigOptions {
	provider?: Partial<Provider>;
	realtime?: Partial<RealtimeLimits>;
}

export function realtimeRig(play: Play, { provider, realtime: limits = {}, ...options }: RealtimeRigOptions = {}) {
	const parts = nexRig(play, options);
	const clock = manualClock(1_000_000);
	const connectors = playedConnectors(provider);
	const logged: unknown[] = [];
	const log = { ...silentLog, error: (...said: unknown[]) => void logged.push(said) };
	const { nex } = parts;
	const realtime = createRealtime({
		...durableParts(parts, clock),
		connectors,
		submit: (message) => nex.receive(message),
		limits,
		log,
	});

	const open = (fields: Partial<OpenRealtime> = {}, principal = OWNER) =>
		realtime.open({ appId: "owner", session: "", inputMimeType: "audio/wav", ...fields }, principal);
	const say = (id: string, text: string, fields: { inputId?: string; commit?: boolean } = {}, principal = OWNER) =>
		realtime.append(id, { text, audio: new Uint8Array(), commit: true, inputId: "", ...fields }, principal);
	const speak = (id: string, words: string, fields: { inputId?: string; commit?: boolean } = {}) =>
		realtime.append(id, { text: "", audio: Buffer.from(words), commit: true, inputId: "", ...fields }, OWNER);

	/** Everything in the log until `enough`, or until it has ended. */
	async function heard(id: string, enough: (events: readonly RealtimeEvent[]) => boolean = () => false) {
		const events: RealtimeEvent[] = [];
		for await (const batch of follow(await realtime.cursor(id, 0, OWNER))) {
			for (const record of batch.records) events.push(JSON.parse(record) as RealtimeEvent);
			if (enough(events)) break;
		}
		return events;
	}

	/** Reads in the background what the log holds. */
	function listenTo(id: string) {
		const events: RealtimeEvent[] = [];
		const ended = (async () => {
			for await (const batch of follow(await realtime.cursor(id, 0, OWNER)))
				events.push(...batch.records.map((record) => JSON.parse(record) as RealtimeEvent));
		})();
		// At the end of a test its store is closed.
		ended.catch(() => {});
		const has = (type: RealtimeEvent["type"], count = 1) =>
			until(`${count} ${type} event(s)`, () => events.filter((event) => event.type === type).length >= count);
		return { events, ended, has };
	}

	return { ...parts, realtime, clock, connectors, logged, open, say, speak, heard, listenTo };
}

export const typesOf = (events: readonly RealtimeEvent[]): string[] => events.map(({ type }) => type);

/** The answers' text, joined. */
export const textOf = (events: readonly RealtimeEvent[]): string =>
	events.map((event) => (event.type === "text" ? event.text : "")).join("");

export const failing = (message: string) => (): never => {
	throw new NexusError("engine_failed", message, { reason: "AI_PROVIDER_FAILED" });
};
