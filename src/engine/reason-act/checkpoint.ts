/** A run at a tool's boundary, as JSON: enough to go on from there without running a completed tool again. */

import type { Message, ToolResultMessage } from "@earendil-works/pi-ai";
import type { Transition } from "./prompt.ts";
import type { StateSnapshot, TrackedCall } from "./state.ts";

export interface Checkpoint {
	version: 1;
	state: StateSnapshot;
	phase: string;
	transition?: Transition;
	/** Agents whose turn comes after the active one. */
	line: string[];
	/** What agents handed on before the active one began. */
	notes: string[];
	/** Of the active agent, behind the session's own. The last one may wait for results. */
	messages: Message[];
	/** Model calls by agent. */
	calls: Record<string, number>;
}

const UNKNOWN =
	"outcome unknown: the run was cut off while this tool ran. It may have acted; it was not run again. Check before you repeat it.";
const NEVER_RAN = "never ran: the run was cut off before this tool began. Call it again if it is still needed.";

/** Results for the calls that a run was cut off at: completed tools keep theirs, nothing is run again by itself. */
export function owedResults(
	messages: readonly Message[],
	state: StateSnapshot,
	timestamp: number,
): ToolResultMessage[] {
	const last = messages.at(-1);
	if (last?.role !== "assistant") return [];
	const byId = new Map(state.calls.map((call) => [call.callId, call]));
	return last.content.flatMap((part): ToolResultMessage[] => {
		const call = part.type === "toolCall" ? byId.get(part.id) : undefined;
		if (call === undefined) return [];
		const content = [{ type: "text" as const, text: outcomeOf(call) }];
		const isError = call.status !== "completed";
		return [{ role: "toolResult", toolCallId: call.callId, toolName: call.name, content, isError, timestamp }];
	});
}

function outcomeOf({ status, result }: TrackedCall): string {
	if (status === "announced") return NEVER_RAN;
	return status === "started" ? UNKNOWN : result || "(no output)";
}
