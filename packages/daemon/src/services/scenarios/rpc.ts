/** Model calls without a session: as a stream (close mode A), or at once. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
	ExecuteScenarioRequest,
	ExecuteScenarioResponseSchema,
	RuntimeAiService,
	Scenario,
	StreamScenarioRequest,
} from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { LOG_KINDS, NexusError } from "@nexus-stream/protocol";
import type { Cursor } from "../../bus/bus.ts";
import { logStream, opening, principalOf, sequenceNumberOf } from "../../edge/rpc/rpc.ts";
import type { Artifacts } from "../artifacts/port.ts";
import { reasonCodeOf, SCENARIO_TYPE, usageMessage } from "../kit/codec.ts";
import type { Principal } from "../kit/principal.ts";
import { audioTypeIn, scenarioReaders, scenarioRequestOf } from "./codec.ts";
import type { AdmittedScenario, ScenarioFacts, ScenarioOutcome, ScenarioRequest, Scenarios } from "./port.ts";

/** Size of an answer in one message; a larger one is read as a stream. */
const ANSWER_BYTES_MAX = 900 * 1024;
/** Size of audio that is transcribed in one call. */
const AUDIO_BYTES_MAX = 25 * 1024 * 1024;

/** No token waits longer: in the daemon's busy loop (`flushMsMax`), and then for others to be sent with. */
const TOKEN_MS_MAX = 50;

export interface ScenarioRpcParts {
	scenarios: Scenarios;
	artifacts: Pick<Artifacts, "whole">;
	limits: { flushMsMax: number };
}

export function scenarioMethods(parts: ScenarioRpcParts): Partial<ServiceImpl<typeof RuntimeAiService>> {
	const readerOf = scenarioReaders(Math.max(0, TOKEN_MS_MAX - parts.limits.flushMsMax));
	return {
		executeScenario: (request, context) => execute(parts, request, context),
		streamScenario: (request, context) => opening(() => stream(parts, readerOf, request, context)),
	};
}

async function stream(
	parts: ScenarioRpcParts,
	readerOf: ReturnType<typeof scenarioReaders>,
	request: StreamScenarioRequest,
	context: HandlerContext,
) {
	const principal = principalOf(context);
	const { runId, after } = await established(parts, request, context, principal);
	const facts = await parts.scenarios.facts(runId, principal);
	const sound = facts.kind === "speech" && after > 0 ? await audioTypeOf(parts, runId, after, principal) : undefined;
	const cursor = await parts.scenarios.cursor(runId, after, principal);
	if (request.abortOnCancel) whenCancelled(context, () => void parts.scenarios.abort(runId, principal));
	return logStream(context, { cursor, ...readerOf(runId, facts, sound), closes: LOG_KINDS.scenario.closes });
}

/** The run, new or named, and where its reader begins. */
async function established(
	{ scenarios }: ScenarioRpcParts,
	{ scenario, runId, after = 0n, idempotencyKey }: StreamScenarioRequest,
	context: HandlerContext,
	principal: Principal,
): Promise<{ runId: string; after: number }> {
	if (runId !== "") {
		if (scenario) throw new NexusError("invalid", "send a scenario to begin, or a run_id to go on, not both");
		return { runId, after: sequenceNumberOf(after) };
	}
	if (after > 0n && idempotencyKey === "")
		throw new NexusError("invalid", "`after` needs a run_id or an idempotency_key");
	const { admitted } = await admit(scenarios, { scenario, idempotencyKey }, context, principal);
	if (admitted.spec.kind !== "text" && admitted.spec.kind !== "speech") throw notStreamed();
	const started = await scenarios.start(admitted, { idempotencyKey });
	return { runId: started.runId, after: started.isFirst ? 0 : sequenceNumberOf(after) };
}

async function admit(
	scenarios: Scenarios,
	{ scenario, idempotencyKey }: { scenario?: Scenario | undefined; idempotencyKey: string },
	{ requestHeader }: HandlerContext,
	principal: Principal,
): Promise<{ request: ScenarioRequest; admitted: AdmittedScenario }> {
	const metadata = (name: string) => requestHeader.get(name) ?? undefined;
	const request = { ...scenarioRequestOf(scenario, metadata), idempotencyKey };
	return { request, admitted: await scenarios.admit(request, principal) };
}

const notStreamed = (): NexusError =>
	new NexusError("invalid", "only text and speech are streamed: call ExecuteScenario or SubmitScenarioJob", {
		reason: "AI_SCENARIO_UNSUPPORTED",
	});

/** The caller may have gone while the run was established. */
function whenCancelled({ signal }: HandlerContext, abort: () => void): void {
	if (signal.aborted) abort();
	else signal.addEventListener("abort", abort, { once: true });
}

/** Type of the audio, as recorded before the reader's offset. */
async function audioTypeOf(
	{ scenarios }: ScenarioRpcParts,
	runId: string,
	before: number,
	principal: Principal,
): Promise<string> {
	const cursor: Cursor = await scenarios.cursor(runId, 0, principal);
	try {
		for (let batch = await cursor.next(); batch && batch.first <= before; batch = await cursor.next()) {
			const type = audioTypeIn(batch);
			if (type !== undefined) return type;
		}
		return "";
	} finally {
		cursor.close();
	}
}

async function execute(
	parts: ScenarioRpcParts,
	asked: ExecuteScenarioRequest,
	context: HandlerContext,
): Promise<ScenarioResponse> {
	const { scenarios } = parts;
	const principal = principalOf(context);
	const { idempotencyKey } = asked;
	const { request, admitted } = await admit(scenarios, asked, context, principal);
	const audio = await audioOf(parts, request, admitted);
	const started = await scenarios.start(admitted, { idempotencyKey, audio });
	const [outcome, facts] = await Promise.all([started.outcome(), scenarios.facts(started.runId, principal)]);
	return answerOf(started.runId, facts, outcome);
}

async function audioOf({ artifacts }: ScenarioRpcParts, request: ScenarioRequest, { spec, appId }: AdmittedScenario) {
	if (spec.kind !== "transcribe" || request.audio) return request.audio;
	const { artifact, data } = await artifacts.whole(spec.artifactId, appId, AUDIO_BYTES_MAX);
	return { mimeType: spec.mimeType ?? artifact.mimeType, data };
}

type ScenarioResponse = MessageInitShape<typeof ExecuteScenarioResponseSchema>;

/** From establishment on a failure is an answer, not a status. */
function answerOf(runId: string, { kind, model, demo }: ScenarioFacts, outcome: ScenarioOutcome): ScenarioResponse {
	const { error, text, audio, vectors = [], usage } = outcome;
	const base = {
		runId,
		scenarioType: SCENARIO_TYPE[kind],
		modelId: model,
		demo,
		usage: usageMessage(usage),
	};
	const bytes =
		Buffer.byteLength(text) + (audio?.data.length ?? 0) + vectors.reduce((sum, { length }) => sum + 4 * length, 0);
	if (bytes > ANSWER_BYTES_MAX) {
		const reason = `the answer has ${bytes} bytes and does not fit one message: read the run with StreamScenario`;
		return { ...base, reasonCode: reasonCodeOf("TOO_LARGE"), reason };
	}
	return {
		...base,
		text,
		audio: audio?.data,
		mimeType: audio?.mimeType,
		embeddings: vectors.map((values) => ({ values: [...values] })),
		...(error && { reasonCode: reasonCodeOf(error.reason), reason: error.message }),
	};
}
