/** Whether and how a delivery shows typing, and which events trigger it. */

import type { ToolStatusEvent } from "@nexus-stream/protocol";
import type { DeliveryContext } from "../delivery-context.ts";
import type { SourceEvent } from "../source.ts";
import type { TypingInput, TypingRules } from "./typing.ts";

/** Undefined when the platform has no typing indicator, or the configuration disables it. */
export function typingRulesOf({ info, account, limits }: DeliveryContext): TypingRules | undefined {
	const { typing } = account.config;
	if (
		typing?.enabled === false ||
		account.streaming.mode === "off" ||
		!info.typing ||
		!info.supports.includes("typing")
	)
		return undefined;
	const { expiryMs, text: showsTools = false, beside } = info.typing;
	return {
		intervalMs: typing?.intervalMs ?? info.typing.intervalMs,
		expiryMs,
		ttlMs: limits.typingTtlMs,
		showsTools,
		besideText: beside || undefined,
	};
}

/** The trigger of an event. `visible`: the text visibly grows, and the platform shows no indicator next to it. */
export function typingInputOf(event: SourceEvent["event"], visible: boolean): TypingInput | undefined {
	switch (event.type) {
		case "stream_start":
			return { type: "run_start" };
		case "token":
			return visible ? undefined : { type: "text" };
		case "tool_status":
			return toolInputOf(event);
		case "reasoning":
			return { type: "reasoning" };
		case "stream_end":
			return event.final === false ? { type: "message_start" } : undefined;
		case "stream_error":
		case "part":
			return undefined;
		default:
			return event satisfies never;
	}
}

function toolInputOf({ status, toolCallId: id, toolName: tool, summary }: ToolStatusEvent): TypingInput {
	if (status === "started") return { type: "tool_start", id, tool, text: summary ?? tool };
	return status === "progress" ? { type: "tool_progress" } : { type: "tool_end", id };
}
