/** Helpers for engines whose agent reports by callback: bounded tools, paired calls, a queue, summaries, usage, failures. The door of this folder. */
export {
	allowedTools,
	approved,
	bounded,
	type CallTeller,
	isAgreed,
	type Permitting,
	unlessAborted,
} from "./approved.ts";
export { named, resultSummary, ToolCalls } from "./calls.ts";
export { type FailureContext, modelFailure, usageSum } from "./model-call.ts";
export { EventQueue, mapEvents, NOT_SILENT } from "./queue.ts";
