/** Reasons and kinds of model calls as the contract spells them, for all slices. */

import { ScenarioType } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { ReasonCode } from "@nexus-stream/client/gen/nexus/runtime/v1/common_pb";
import { type Reason, reasonOfFailure } from "@nexus-stream/protocol";

export const SCENARIO_TYPE = {
	text: ScenarioType.TEXT_GENERATE,
	speech: ScenarioType.SPEECH_SYNTHESIZE,
	image: ScenarioType.IMAGE_GENERATE,
	embed: ScenarioType.TEXT_EMBED,
	transcribe: ScenarioType.SPEECH_TRANSCRIBE,
} as const;

/** A log that a later version wrote may name a reason that this version does not have. */
export const reasonCodeOf = (reason: Reason): ReasonCode => ReasonCode[reason] ?? ReasonCode.INTERNAL;

export function reasonFields(error: { code: string; message: string; reason?: string } | undefined) {
	if (!error) return {};
	return { reasonCode: reasonCodeOf(reasonOfFailure(error)), reason: error.message };
}
