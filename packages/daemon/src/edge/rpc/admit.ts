/** Before the body of a call is read: the token, the limit on streams, and what is refused while the daemon stops. */

import { ConnectError, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { type CloseMode, NexusError, STREAM_PROCEDURES } from "@nexus-stream/protocol";
import type { Clock } from "@nexus-stream/protocol/clock";
import type { Log } from "@nexus-stream/protocol/log";
import type { HoldStream } from "../http/strangers.ts";
import type { EdgeLimits, Principal } from "../port.ts";
import type { Flusher } from "../stream/stream.ts";
import { explained, toConnectError } from "./errors.ts";
import {
	directTo,
	keepOpen,
	OpenStream,
	type OutgoingResponse,
	type RpcResponse,
	sendHeaders,
} from "./fast-stream/fast-stream.ts";
import { PRINCIPAL, SERVING } from "./rpc.ts";
import type { RpcStreams } from "./streams.ts";

export interface AdmitParts {
	flusher: Flusher;
	streams: RpcStreams;
	/** Throws `busy` when no further stream may open. */
	admitStream(): void;
	/** Counts a stream of its caller, or throws `busy`. */
	holdStream: HoldStream;
	/** While stopping, new work and subscriptions are refused; reads continue (Z6). */
	stopping(): boolean;
	limits: EdgeLimits;
	clock: Clock;
	log: Log;
}

/** The HTTP side of a call. */
interface RpcCall {
	response: RpcResponse;
	outgoing: OutgoingResponse;
	/** Aborts when the client goes away, or the stream is cut. */
	controller: AbortController;
}

export const CALL = createContextKey<RpcCall | undefined>(undefined);

/** Needs no token: probes send none. */
const OPEN_SERVICE = "grpc.health.v1.Health";
/** Procedures that neither begin work nor stay open. */
const PASSES_WHILE_STOPPING = /^(Get|List|Recall|Check|Abort|Cancel)/;

/** Throws with the status that the call is refused with. */
export function admit(context: HandlerContext, parts: AdmitParts): void {
	const { signal, method } = context;
	// Connect aborts with an error before it makes a status of it: here its own errors get their reasons (Z9).
	const explain = () => void (signal.reason instanceof ConnectError && explained(signal.reason));
	signal.addEventListener("abort", explain, { once: true });
	try {
		permit(context, parts.stopping());
		if (method.methodKind !== "unary") open(context, parts);
	} catch (cause) {
		throw toConnectError(cause, parts.log);
	}
}

/** Throws when the caller may not call this procedure, or when it begins work while the daemon stops. */
export function permit({ service, method, values }: HandlerContext, isStopping: boolean): void {
	if (service.typeName !== OPEN_SERVICE) {
		const principal = values.get(PRINCIPAL);
		if (!principal) throw new NexusError("unauthenticated", "send `authorization: Bearer <token>`");
		requireProcedure(principal, `${service.typeName}/${method.name}`);
	}
	if (isStopping && (method.methodKind !== "unary" || !PASSES_WHILE_STOPPING.test(method.name)))
		throw new NexusError("unavailable", "the daemon is stopping", { reason: "STOPPING" });
}

function open(context: HandlerContext, parts: AdmitParts): void {
	const { service, method, values, responseHeader, requestHeader } = context;
	parts.admitStream();
	const { response, outgoing, controller } = values.get(CALL)!;
	parts.holdStream(values.get(PRINCIPAL), response);
	const stream = new OpenStream({
		closes: closeModeOf(`${service.typeName}/${method.name}`),
		controller,
		establish: () => sendHeaders(response, responseHeader),
		direct: directTo(outgoing, method.output, requestHeader.get("content-type") ?? "", parts.limits.grpcWriteBytesMax),
		shown: (cause, signal) => toConnectError(cause, parts.log, signal),
	});
	const remove = parts.streams.add(stream);
	outgoing.onStalled = remove;
	response.once("close", remove);
	keepOpen(response, parts.limits.heartbeatMs);
	values.set(SERVING, { flusher: parts.flusher, clock: parts.clock, stream });
}

export const closeModeOf = (procedure: string): CloseMode | undefined =>
	(STREAM_PROCEDURES as Readonly<Record<string, { closes: CloseMode }>>)[procedure]?.closes;

const RUNTIME = "nexus.runtime.v1";

/** The procedures that an application's token reaches, as `service/method`: those whose answers are the application's own (Z25). */
const APP_PROCEDURES: ReadonlySet<string> = new Set([
	...proceduresOf("RuntimeAiService", [
		"ExecuteScenario",
		"StreamScenario",
		"SubmitScenarioJob",
		"GetScenarioJob",
		"CancelScenarioJob",
		"ListScenarioJobs",
		"SubscribeScenarioJobEvents",
		"GetArtifact",
	]),
	...proceduresOf("RuntimeWorkflowService", [
		"SubmitWorkflow",
		"GetWorkflow",
		"CancelWorkflow",
		"ListWorkflows",
		"SubscribeWorkflowEvents",
	]),
	...proceduresOf("RuntimeAppService", ["SendAppMessage", "AckAppMessage", "SubscribeAppMessages"]),
	...proceduresOf("RuntimeLocalService", [
		"UploadArtifact",
		"ListLocalTransfers",
		"PauseLocalTransfer",
		"ResumeLocalTransfer",
		"CancelLocalTransfer",
		"WatchLocalTransfers",
	]),
	// Shows nothing but the contract.
	"grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
]);

function proceduresOf(service: string, methods: readonly string[]): string[] {
	return methods.map((method) => `${RUNTIME}.${service}/${method}`);
}

export const reachesProcedure = ({ owner }: Pick<Principal, "owner">, procedure: string): boolean =>
	owner || APP_PROCEDURES.has(procedure);

function requireProcedure(principal: Principal, procedure: string): void {
	if (reachesProcedure(principal, procedure)) return;
	throw new NexusError("forbidden", `an application's token does not reach ${procedure}: use the owner's`);
}
