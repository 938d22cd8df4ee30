/** Chooses the mode of a delivery once, when it begins: native stream, blocks, or one whole message. */

import type { AdapterInfo } from "@nexus-stream/adapter/host";
import type { DeliveryMode } from "@nexus-stream/protocol";
import { NexusError } from "@nexus-stream/protocol";
import type { DeliverOptions, StreamingConfig } from "../port.ts";
import { isAttachmentNonce } from "./attachments/attachment-nonce.ts";
import { deliverBySend } from "./blocks/send-delivery.ts";
import { type DeliveryContext, type DeliveryOutcome, factsOf } from "./delivery-context.ts";
import { doubtOf } from "./stream/half-shown.ts";
import { deliverByStream } from "./stream/stream-delivery.ts";

export function modeOf(info: AdapterInfo, config: StreamingConfig, options: DeliverOptions): DeliveryMode {
	const can = (verb: "stream" | "send") => info.supports.includes(verb);
	if (!can("stream") && !can("send")) {
		throw new NexusError("invalid", `The adapter of ${info.channel} supports neither stream nor send.`);
	}
	if (options.ask) return "whole";
	const { enabled, mode } = config;
	const isWhole = enabled === false || options.disableStreaming === true || mode === "accumulate" || mode === "off";
	if (can("stream") && ((!isWhole && mode !== "blocks") || !can("send"))) return "stream";
	return isWhole || info.delivery === "whole" ? "whole" : "blocks";
}

/** Runs a delivery to completion, also when its adapter dies on the way. */
export async function route(context: DeliveryContext, options: DeliverOptions): Promise<DeliveryOutcome> {
	const { live, info, account } = context;
	const begun = live.row.mode !== undefined;
	if (!begun) {
		live.given = 0;
		live.setMode(modeOf(info, account.streaming, options));
		await live.recorded();
	}
	return finalOutcome(context, await deliver(context, begun));
}

/** A completely sent text is still `damaged` or `unknown` when the stored answer was damaged, or the outcome of a message is unknown. */
function finalOutcome({ live, damage }: DeliveryContext, outcome: DeliveryOutcome): DeliveryOutcome {
	if (outcome.state === "complete" && damage !== undefined)
		return { state: "damaged", error: `The stored answer is damaged: ${damage}` };
	const doubt = doubtOf(live);
	if (outcome.state === "complete" && doubt !== undefined) return { state: "unknown", error: doubt };
	const doubtful = live.row.messages.some(({ state, nonce }) => state === "unknown" && isAttachmentNonce(nonce));
	if (outcome.state !== "complete" || !doubtful) return outcome;
	return { state: "unknown", error: "The text is there; an image, a file or the like may or may not be." };
}

async function deliver(context: DeliveryContext, begun: boolean): Promise<DeliveryOutcome> {
	const { live, info, log } = context;
	if (live.row.mode !== "stream") return deliverBySend(context);
	const outcome = await deliverByStream(context, begun);
	if (outcome.state !== "degraded") return outcome;
	log.warn({ ...factsOf(context.live), error: outcome.error }, "streaming failed; the remainder is sent in blocks");
	if (!info.supports.includes("send")) return { state: "failed", error: outcome.error };
	live.setMode("blocks");
	await live.recorded();
	return deliverBySend(context);
}
