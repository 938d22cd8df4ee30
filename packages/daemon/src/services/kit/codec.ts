/** Spellings of the contract that several slices share. */

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ScenarioType } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { ReasonCode } from "@nexus-stream/client/gen/nexus/runtime/v1/common_pb";
import { NexusError, type Reason, reasonOfFailure } from "@nexus-stream/protocol";

export const SCENARIO_TYPE = {
	text: ScenarioType.TEXT_GENERATE,
	speech: ScenarioType.SPEECH_SYNTHESIZE,
	image: ScenarioType.IMAGE_GENERATE,
	embed: ScenarioType.TEXT_EMBED,
	transcribe: ScenarioType.SPEECH_TRANSCRIBE,
} as const;

/** A log that a later version wrote may name a reason that this version does not have. */
export const reasonCodeOf = (reason: Reason): ReasonCode => ReasonCode[reason] ?? ReasonCode.INTERNAL;

export const reasonFields = (error: { code: string; message: string; reason?: string } | undefined) =>
	error && { reasonCode: reasonCodeOf(reasonOfFailure(error)), reason: error.message };

/** The contract's enums have the daemon's names in capitals. */
export const inCapitals = <Name extends string>(name: Name) => name.toUpperCase() as Uppercase<Name>;

/** The daemon's name of a state to filter by. */
export function stateNamed<Name extends string>(
	states: Readonly<Record<Uppercase<Name>, number>>,
	value: number,
): Name {
	const name = Object.entries(states).find(([, known]) => known === value)?.[0] ?? "UNSPECIFIED";
	if (name === "UNSPECIFIED") throw new NexusError("invalid", "states: name those that the contract has");
	return name.toLowerCase() as Name;
}

/** -1 where the model did not say. */
export const usageMessage = ({ input, output }: { input: number; output: number }) => ({
	inputTokens: BigInt(input),
	outputTokens: BigInt(output),
});

/** The time of what has perhaps not happened. */
export const timeOf = (at: number | undefined) => (at === undefined ? undefined : timestampFromMs(at));
