/**
 * A client of the runtime contract over Connect, gRPC or gRPC-web, for Node and browsers: typed calls, and streams that know how they close.
 * The door of this folder.
 */

import type { ConnectError, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { NexusError } from "@nexus-stream/protocol";
import { type Clock, systemClock } from "@nexus-stream/protocol/clock";
import { withDefaults } from "@nexus-stream/protocol/defaults";
import { RuntimeAccountService } from "../gen/nexus/runtime/v1/account_pb.ts";
import { RuntimeAgentService } from "../gen/nexus/runtime/v1/agent_pb.ts";
import { RuntimeAiService } from "../gen/nexus/runtime/v1/ai_pb.ts";
import { RuntimeAppService } from "../gen/nexus/runtime/v1/app_pb.ts";
import { RuntimeAuditService } from "../gen/nexus/runtime/v1/audit_pb.ts";
import { RuntimeConnectorService } from "../gen/nexus/runtime/v1/connector_pb.ts";
import { RuntimeLocalService } from "../gen/nexus/runtime/v1/local_pb.ts";
import { RuntimeMemoryService } from "../gen/nexus/runtime/v1/memory_pb.ts";
import { RuntimeRealtimeService } from "../gen/nexus/runtime/v1/realtime_pb.ts";
import { RuntimeWorkflowService } from "../gen/nexus/runtime/v1/workflow_pb.ts";
import { createReach, type HttpOptions } from "../http.ts";
import { type Calls, createCalls } from "./calls.ts";
import { connectErrorOf, RETRY_LIMITS, type RuntimeRetryLimits } from "./failures.ts";
import type { CallContext, RuntimeEvent } from "./read.ts";

export { Code, ConnectError } from "@connectrpc/connect";
export { ReasonCode } from "../gen/nexus/runtime/v1/common_pb.ts";
export type { Calls, RuntimeRequestOptions } from "./calls.ts";
export { bytesOf, lastOf, outcomeOf, type ScenarioResult } from "./collect.ts";
export { errorCodeOf, nexusErrorOf, RETRY_LIMITS, type RuntimeRetryLimits, reasonCodeOf } from "./failures.ts";
export type { RuntimeEvent } from "./read.ts";

export interface RuntimeOptions extends Pick<HttpOptions, "locate" | "fetch"> {
	/** Where the daemon is, `http://127.0.0.1:7777`; without it the page's own origin. */
	url?: string;
	/** The owner's, or an application's. Without one, the browser's cookie has to do. */
	token?: string;
	/** Rewords the failure of a call or stream for its reader; `nexusErrorOf` is one way. */
	reword?(error: ConnectError): Error;
	/** Another way than Connect over `fetch`, such as `createGrpcTransport` of `@connectrpc/connect-node`. It brings its own address. */
	transport?: Transport;
	limits?: Partial<RuntimeRetryLimits>;
	clock?: Clock;
	random?(): number;
}

export interface Runtime {
	readonly ai: Calls<typeof RuntimeAiService>;
	readonly realtime: Calls<typeof RuntimeRealtimeService>;
	readonly workflows: Calls<typeof RuntimeWorkflowService>;
	readonly audit: Calls<typeof RuntimeAuditService>;
	readonly accounts: Calls<typeof RuntimeAccountService>;
	readonly memory: Calls<typeof RuntimeMemoryService>;
	readonly agents: Calls<typeof RuntimeAgentService>;
	readonly apps: Calls<typeof RuntimeAppService>;
	readonly local: Calls<typeof RuntimeLocalService>;
	readonly connectors: Calls<typeof RuntimeConnectorService>;
	/** Calls back when a stream loses its connection, and when it has one again. Returns how to stop it. */
	on<Type extends RuntimeEvent["type"]>(
		type: Type,
		listener: (event: Extract<RuntimeEvent, { type: Type }>) => void,
	): () => void;
	/** Ends every call and every stream. Runs and jobs go on in the daemon. */
	close(): void;
}

export function createRuntime(options: RuntimeOptions): Runtime {
	const { token, clock = systemClock, random = Math.random, reword = (error) => error } = options;
	const transport = options.transport ?? fetchTransport(options);
	const listeners = new Set<{ type: string; call(event: RuntimeEvent): void }>();
	const closing = new AbortController();
	const line: CallContext = {
		clock,
		random,
		limits: withDefaults(RETRY_LIMITS, options.limits),
		emit(event) {
			for (const { type, call } of listeners) if (type === event.type) call(event);
		},
		closed: closing.signal,
	};
	const authorization: Record<string, string> =
		token === undefined || options.locate ? {} : { authorization: `Bearer ${token}` };
	const calls = <Service extends Parameters<typeof createCalls>[0]>(service: Service): Calls<Service> =>
		createCalls(service, transport, { ...line, reword }, authorization);
	return {
		ai: calls(RuntimeAiService),
		realtime: calls(RuntimeRealtimeService),
		workflows: calls(RuntimeWorkflowService),
		audit: calls(RuntimeAuditService),
		accounts: calls(RuntimeAccountService),
		memory: calls(RuntimeMemoryService),
		agents: calls(RuntimeAgentService),
		apps: calls(RuntimeAppService),
		local: calls(RuntimeLocalService),
		connectors: calls(RuntimeConnectorService),
		on(type, listener) {
			const entry = { type, call: listener as (event: RuntimeEvent) => void };
			listeners.add(entry);
			return () => void listeners.delete(entry);
		},
		close: () => closing.abort(new NexusError("aborted", "the client was closed")),
	};
}

/** `locate` is asked before every call: a daemon that was restarted may be elsewhere. */
function fetchTransport(options: RuntimeOptions): Transport {
	const baseUrl = options.locate ? ELSEWHERE : baseUrlOf(options.url);
	const { reword: _, ...http } = options;
	const reach = createReach({ ...http, url: baseUrl });
	return createConnectTransport({
		baseUrl,
		async fetch(input, init = {}) {
			try {
				const url = input instanceof Request ? input.url : input.toString();
				return (await reach(url.slice(baseUrl.length), init)).response;
			} catch (cause) {
				throw cause instanceof NexusError ? connectErrorOf(cause) : cause;
			}
		},
	});
}

/** In place of an address that is found later. */
const ELSEWHERE = "http://nexus.invalid";

function baseUrlOf(url: string | undefined): string {
	const origin = (globalThis as { location?: { origin: string } }).location?.origin;
	const found = url ?? origin;
	if (found === undefined)
		throw new NexusError("invalid", "give the daemon's `url`: there is no page whose origin it could be");
	return found.replace(/\/+$/, "");
}
