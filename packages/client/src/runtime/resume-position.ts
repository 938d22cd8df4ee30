/** A reader's place in a stream, by its close mode (PROTOCOL §5): what to ask for next, what is new, and what is the end. */

import { Code, type ConnectError } from "@connectrpc/connect";
import type { CloseMode } from "@nexus-stream/protocol";
import {
	ScenarioJobState,
	type StreamScenarioResponse,
	type SubscribeScenarioJobEventsResponse,
} from "../gen/nexus/runtime/v1/ai_pb.ts";
import type { ExportAuditEventsResponse } from "../gen/nexus/runtime/v1/audit_pb.ts";
import { type SubscribeWorkflowEventsResponse, WorkflowState } from "../gen/nexus/runtime/v1/workflow_pb.ts";

/** The fields by which a place is found, in whatever message has them. */
export interface ResumeFields {
	after?: bigint;
	runId?: string;
	idempotencyKey?: string;
}

/** `last`: new, and nothing follows it. */
type Taken = "new" | "known" | "last";

export interface StreamPosition<Message> {
	/** Request fields that the next call adds to the caller's request. */
	ask(): ResumeFields;
	take(message: Message): Taken;
	/** A clean close without the `last` message is an end, too. */
	readonly endsWithOk: boolean;
	/** The position was refused; true when there is another to go on from. */
	lost(error: ConnectError): boolean;
	/** The daemon said where a stream that was asked for "from now on" begins. */
	begins?(at: bigint): void;
}

const never = () => false;

/** Mode A. Once the run's id is known the run is read again, never executed again; before that the same key finds the same run. */
function callPosition(fields: ResumeFields): StreamPosition<StreamScenarioResponse> {
	let { runId = "", after } = fields;
	return {
		endsWithOk: false,
		lost: never,
		ask: () => (runId === "" ? fields : { runId, after, idempotencyKey: "" }),
		take(event) {
			runId = event.runId === "" ? runId : event.runId;
			if (event.done) return "last";
			if (after !== undefined && event.sequence <= after) return "known";
			after = event.sequence;
			return "new";
		},
	};
}

type StateEvent = SubscribeScenarioJobEventsResponse | SubscribeWorkflowEventsResponse;

const ENDED_JOBS: ReadonlySet<ScenarioJobState> = new Set([
	ScenarioJobState.COMPLETED,
	ScenarioJobState.FAILED,
	ScenarioJobState.CANCELED,
	ScenarioJobState.TIMEOUT,
]);
const ENDED_WORKFLOWS: ReadonlySet<WorkflowState> = new Set([
	WorkflowState.COMPLETED,
	WorkflowState.FAILED,
	WorkflowState.CANCELED,
	WorkflowState.SKIPPED,
]);

/** By the snapshot and not by the event's type, which may repeat and come in any order. */
const isTerminal = (event: StateEvent): boolean =>
	"job" in event
		? event.job !== undefined && ENDED_JOBS.has(event.job.state)
		: "workflow" in event && event.workflow !== undefined && ENDED_WORKFLOWS.has(event.workflow.state);

/** Mode B. Where the last position is not kept any more, the current snapshot says all that counts. */
function statePosition(fields: ResumeFields): StreamPosition<StateEvent> {
	let { after } = fields;
	let seen = after;
	return {
		endsWithOk: false,
		ask: () => (after === undefined ? {} : { after }),
		lost({ code }) {
			const canGoOn = code === Code.OutOfRange && after !== undefined && seen !== fields.after;
			if (canGoOn) after = undefined;
			return canGoOn;
		},
		take(event) {
			if (isTerminal(event)) return "last";
			if (seen !== undefined && event.sequence <= seen) return "known";
			after = event.sequence;
			seen = event.sequence;
			return "new";
		},
	};
}

/** Mode C: a new call is another export, which continues after the last event received. */
function filePosition(fields: ResumeFields): StreamPosition<ExportAuditEventsResponse> {
	let { after } = fields;
	return {
		endsWithOk: false,
		lost: never,
		ask: () => (after === undefined ? {} : { after }),
		take({ eof, lastAuditSequence }) {
			if (eof) return "last";
			if (after !== undefined && lastAuditSequence <= after) return "known";
			after = lastAuditSequence;
			return "new";
		},
	};
}

/** Mode D of a log: the daemon numbers what it holds. An event without a type says how far the reader is, and nothing else (P8.7). */
function logPosition(fields: ResumeFields): StreamPosition<{ sequence: bigint; eventType?: number }> {
	let { after } = fields;
	return {
		endsWithOk: true,
		lost: never,
		ask: () => (after === undefined ? {} : { after }),
		begins(at) {
			after ??= at;
		},
		take({ sequence, eventType }) {
			if (after !== undefined && sequence <= after) return "known";
			after = sequence;
			return eventType === 0 ? "known" : "new";
		},
	};
}

/** Mode D of a state feed: it begins with what is so now, and its numbers are those of one connection. */
const feedPosition = (): StreamPosition<unknown> => ({
	endsWithOk: true,
	lost: never,
	ask: () => ({}),
	take: () => "new",
});

/** The mode is the table's; whether it is a log, the request says by having `after`. */
export function positionOf(closes: CloseMode, isLog: boolean, fields: ResumeFields): StreamPosition<never> {
	switch (closes) {
		case "A":
			return callPosition(fields);
		case "B":
			return statePosition(fields);
		case "C":
			return filePosition(fields);
		case "D":
			return isLog ? logPosition(fields) : feedPosition();
		default:
			return closes satisfies never;
	}
}
