/** What engines share whose agent reports by callback: bounded tools, paired calls, a queue, summaries, usage, failures. The door of this folder. */
export { allowedTools } from "./allowed.ts";
export { approved, type CallTeller, isAgreed } from "./approved.ts";
export { bounded } from "./bounded.ts";
export { toolCalls } from "./calls.ts";
export { type FailureContext, modelFailure } from "./failure.ts";
export { eventQueue } from "./queue.ts";
export { resultSummary } from "./summary.ts";
export { usageSum } from "./usage.ts";
