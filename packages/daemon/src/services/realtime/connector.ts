/** The connectors of a realtime session: found for the caller, checked for what they can do, opened when they are used. */

import { NexusError } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { ConnectorInfo, Connectors, Provider, ScenarioKind } from "../connectors/port.ts";
import { defaultModelOf } from "../connectors/provider-types.ts";
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
	if (!connector || (connector.appId !== undefined && connector.appId !== appId))
		throw new NexusError("not_found", `there is no connector ${connectorId}`, { reason: "AI_CONNECTOR_NOT_FOUND" });
	if (!connector.enabled)
		throw new NexusError("precondition", `the connector ${connectorId} is disabled: enable it first`, {
			reason: "AI_CONNECTOR_DISABLED",
		});
	if (!connector.kinds.includes(kind))
		throw new NexusError("precondition", `the connector ${connectorId} cannot do this (${kind}): name another one`, {
			reason: "AI_SCENARIO_UNSUPPORTED",
		});
	const { models } = connector;
	if (model !== "" && models.length > 0 && !models.includes(model))
		throw new NexusError("not_found", `the connector ${connectorId} has no model ${model}`, {
			reason: "AI_MODEL_NOT_FOUND",
		});
	return { connector, model: model === "" ? (defaultModelOf(connector, kind) ?? "") : model };
}

/** The session that uses its connectors. */
export interface ConnectorUse {
	connectors: Pick<Connectors, "find" | "open" | "report">;
	limits: Pick<RealtimeLimits, "transcribeMs" | "speakMs" | "sentencesMax">;
	clock: Clock;
	appId: string;
	principal: Principal;
}

/** Looks it up again for every use: a connector may have been changed or removed meanwhile. The call's outcome counts for its health. */
async function useConnector<T>(
	{ connectors, appId, principal }: ConnectorUse,
	wanted: Omit<ConnectorSelection, "appId">,
	kind: ScenarioKind,
	call: (provider: Provider, model: string) => Promise<T>,
): Promise<T> {
	const { connector, model } = await findConnector(connectors, { ...wanted, appId }, kind, principal);
	const provider = await connectors.open(connector);
	try {
		const answer = await call(provider, model);
		connectors.report(connector.id, { ok: true });
		return answer;
	} catch (cause) {
		if (cause instanceof NexusError && cause.code !== "aborted")
			connectors.report(connector.id, { ok: false, error: cause });
		throw cause;
	}
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
			speak: (text, signal) =>
				useConnector(use, speech, "speech", (provider, model) =>
					provider.speak({ model, text, voice, mimeType }, signal),
				),
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
			const { text } = await useConnector(use, transcription, "transcribe", (provider, model) =>
				provider.transcribe({ model, audio: { mimeType, data } }, signal),
			);
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
