/** The connectors of a realtime session: found for the caller, checked for what they can do, opened when they are used. */

import { NexusError, type Reason } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { ConnectorInfo, Connectors, Provider, ScenarioKind } from "../connectors/port.ts";
import { defaultModelOf, unsupported } from "../connectors/provider-types.ts";
import type { Principal } from "../kit/principal.ts";
import type { OpenRealtime, RealtimeLimits } from "./port.ts";
import { createVoice, type Voice } from "./voice.ts";

export interface ConnectorSelection {
	connectorId: string;
	model?: string;
	/** The application that the session is for. */
	appId: string;
}

/** Rejects as a scenario with this connector would be refused. */
export async function findConnector(
	connectors: Pick<Connectors, "find">,
	{ connectorId, model = "", appId }: ConnectorSelection,
	kind: ScenarioKind,
	principal: Principal,
): Promise<{ connector: ConnectorInfo; model: string }> {
	const connector = await connectors.find(connectorId, principal);
	const refused = (code: NexusError["code"], reason: Reason, message: string) =>
		new NexusError(code, message, { reason });
	if (!connector || (connector.appId !== undefined && connector.appId !== appId))
		throw refused("not_found", "AI_CONNECTOR_NOT_FOUND", `there is no connector ${connectorId}`);
	const { enabled, kinds, models } = connector;
	if (!enabled)
		throw refused("precondition", "AI_CONNECTOR_DISABLED", `the connector ${connectorId} is disabled: enable it first`);
	if (!kinds.includes(kind)) throw unsupported(`the connector ${connectorId}`, kind);
	if (model !== "" && models.length > 0 && !models.includes(model))
		throw refused("not_found", "AI_MODEL_NOT_FOUND", `the connector ${connectorId} has no model ${model}`);
	return { connector, model: model === "" ? (defaultModelOf(connector, kind) ?? "") : model };
}

/** The session that uses its connectors. */
export interface ConnectorUse {
	connectors: Pick<Connectors, "find" | "open">;
	limits: Pick<RealtimeLimits, "transcribeMs" | "speakMs" | "sentencesMax">;
	clock: Clock;
	appId: string;
	principal: Principal;
}

/** Looks it up again for every use: a connector may have been changed or removed meanwhile. */
async function openConnector(
	{ connectors, appId, principal }: ConnectorUse,
	wanted: Omit<ConnectorSelection, "appId">,
	kind: ScenarioKind,
): Promise<{ provider: Provider; model: string }> {
	const { connector, model } = await findConnector(connectors, { ...wanted, appId }, kind, principal);
	return { provider: await connectors.open(connector), model };
}

/** Speaks one answer each; undefined when the session's answers are text alone. */
export function voiceOf(
	use: ConnectorUse,
	{ speech }: OpenRealtime,
	heard: (runId: string, audio: Uint8Array, mimeType: string) => Promise<void>,
): ((runId: string) => Voice) | undefined {
	if (!speech) return undefined;
	const { voice, mimeType } = speech;
	return (runId) =>
		createVoice({
			async speak(text, signal) {
				const { provider, model } = await openConnector(use, speech, "speech");
				return provider.speak({ model, text, voice, mimeType }, signal);
			},
			heard: (audio, type) => heard(runId, audio, type),
			limits: use.limits,
			clock: use.clock,
		});
}

/** Undefined when the session understands text alone. */
export function transcriberOf(use: ConnectorUse, { transcription, inputMimeType: mimeType }: OpenRealtime) {
	if (!transcription) return undefined;
	const { transcribeMs } = use.limits;
	return async (data: Uint8Array, closed: AbortSignal): Promise<string> => {
		const late = new AbortController();
		const cancel = use.clock.after(transcribeMs, () => late.abort());
		const signal = AbortSignal.any([closed, late.signal]);
		try {
			const { provider, model } = await openConnector(use, transcription, "transcribe");
			const { text } = await provider.transcribe({ model, audio: { mimeType, data } }, signal);
			return text;
		} catch (cause) {
			if (!late.signal.aborted) throw cause;
			const why = `the audio was not transcribed within ${transcribeMs} ms`;
			throw new NexusError("timeout", why, { cause, reason: "AI_PROVIDER_TIMEOUT" });
		} finally {
			cancel();
		}
	};
}
