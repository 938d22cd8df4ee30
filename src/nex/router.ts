/** Where a delivery goes: native stream, blocks or one whole message, decided once when it begins. */

import type { AdapterInfo } from "../adapter/adapter.ts";
import type { DeliveryMode } from "../ledger/ledger.ts";
import { NexusError } from "../protocol/protocol.ts";
import { isAside } from "./aside-nonce.ts";
import { type Delivering, factsOf, type Outcome } from "./delivering.ts";
import { doubtOf } from "./half-shown.ts";
import type { DeliverOptions, StreamingConfig } from "./port.ts";
import { deliverBySend } from "./send-delivery.ts";
import { deliverByStream } from "./stream-delivery.ts";

export function modeOf(info: AdapterInfo, config: StreamingConfig, options: DeliverOptions): DeliveryMode {
	const can = (verb: "stream" | "send") => info.supports.includes(verb);
	if (!can("stream") && !can("send")) {
		throw new NexusError("invalid", `The adapter of ${info.channel} supports neither stream nor send.`);
	}
	if (options.ask) return "whole";
	const { enabled, mode } = config;
	const inOne = enabled === false || options.disableStreaming === true || mode === "accumulate" || mode === "off";
	if (can("stream") && ((!inOne && mode !== "blocks") || !can("send"))) return "stream";
	return inOne || info.delivery === "whole" ? "whole" : "blocks";
}

/** Carries a delivery to its end, however often its adapter dies on the way. */
export async function route(delivering: Delivering, options: DeliverOptions): Promise<Outcome> {
	const { tracked, info, account } = delivering;
	const begun = tracked.row.mode !== undefined;
	if (!begun) {
		tracked.given = 0;
		tracked.change("setMode", modeOf(info, account.streaming, options));
		await tracked.recorded();
	}
	return inSum(delivering, await carry(delivering, begun));
}

/** The text is out; of something beside it nobody can tell, or it is not all of the answer. */
function inSum({ tracked, damage }: Delivering, outcome: Outcome): Outcome {
	if (outcome.state === "complete" && damage !== undefined)
		return { state: "damaged", error: `The stored answer is damaged: ${damage}` };
	const doubt = doubtOf(tracked);
	if (outcome.state === "complete" && doubt !== undefined) return { state: "unknown", error: doubt };
	const doubtful = tracked.row.messages.some(({ state, nonce }) => state === "unknown" && isAside(nonce));
	if (outcome.state !== "complete" || !doubtful) return outcome;
	return { state: "unknown", error: "The text is there; an image, a file or the like may or may not be." };
}

async function carry(delivering: Delivering, begun: boolean): Promise<Outcome> {
	const { tracked, info, log } = delivering;
	if (tracked.row.mode !== "stream") return deliverBySend(delivering);
	const outcome = await deliverByStream(delivering, begun);
	if (outcome.state !== "degraded") return outcome;
	log.warn({ ...factsOf(delivering.tracked), error: outcome.error }, "streaming failed; what is owed is sent");
	if (!info.supports.includes("send")) return { state: "failed", error: outcome.error };
	tracked.change("setMode", "blocks");
	await tracked.recorded();
	return deliverBySend(delivering);
}
