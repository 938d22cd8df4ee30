/** Every service of the runtime contract on one router. */

import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter, type ServiceImpl } from "@connectrpc/connect";
import { Health, HealthCheckResponse_ServingStatus as Status } from "@nexus-stream/client/gen/grpc/health/v1/health_pb";
import {
	ServerReflection,
	type ServerReflectionRequest,
	type ServerReflectionResponse,
} from "@nexus-stream/client/gen/grpc/reflection/v1/reflection_pb";
import { ServerReflection as ServerReflectionAlpha } from "@nexus-stream/client/gen/grpc/reflection/v1alpha/reflection_pb";
import { RuntimeAccountService } from "@nexus-stream/client/gen/nexus/runtime/v1/account_pb";
import { RuntimeAgentService } from "@nexus-stream/client/gen/nexus/runtime/v1/agent_pb";
import { RuntimeAiService } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { RuntimeAppService } from "@nexus-stream/client/gen/nexus/runtime/v1/app_pb";
import { RuntimeAuditService } from "@nexus-stream/client/gen/nexus/runtime/v1/audit_pb";
import { RuntimeConnectorService } from "@nexus-stream/client/gen/nexus/runtime/v1/connector_pb";
import { RuntimeLocalService } from "@nexus-stream/client/gen/nexus/runtime/v1/local_pb";
import { RuntimeMemoryService } from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import { RuntimeRealtimeService } from "@nexus-stream/client/gen/nexus/runtime/v1/realtime_pb";
import { RuntimeWorkflowService } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { NexusError } from "@nexus-stream/protocol";
import type { DaemonState } from "@nexus-stream/protocol/api";
import type { EdgeDeps, EdgeLimits, RegisterMethods } from "../port.ts";
import { feedStream } from "./rpc.ts";

/** Every service that there is; reflection and health checks name them. */
export const SERVICES: readonly DescService[] = [
	RuntimeAiService,
	RuntimeLocalService,
	RuntimeRealtimeService,
	RuntimeWorkflowService,
	RuntimeAuditService,
	RuntimeAccountService,
	RuntimeMemoryService,
	RuntimeAgentService,
	RuntimeAppService,
	RuntimeConnectorService,
	Health,
	ServerReflection,
	ServerReflectionAlpha,
];

export interface MethodSources {
	deps: Pick<EdgeDeps, "health">;
	register: RegisterMethods;
	limits: EdgeLimits;
}

export function addServices(router: Pick<ConnectRouter, "service">, { deps, register, limits }: MethodSources): void {
	register(router, limits);
	const reflection = reflectionMethods(SERVICES);
	router.service(ServerReflection, reflection);
	// The same messages under an older name.
	router.service(ServerReflectionAlpha, reflection as unknown as ServiceImpl<typeof ServerReflectionAlpha>);
	router.service(Health, probeMethods(deps, new Set(SERVICES.map(({ typeName }) => typeName))));
}

type ServingStatus = (typeof Status)[keyof typeof Status];

/** Degraded is not ready, as `/readyz` says it, too. */
const statusOf = (state: DaemonState): ServingStatus => (state === "READY" ? Status.SERVING : Status.NOT_SERVING);

/**
 * The standard health check of gRPC: whether the daemon serves, for probes and load balancers. It needs no token. `names`: the services that
 * there are. The empty name is the whole daemon.
 */
function probeMethods({ health }: Pick<EdgeDeps, "health">, names: ReadonlySet<string>): ServiceImpl<typeof Health> {
	const state = () => health.state();
	const isKnown = (name: string) => name === "" || names.has(name);
	return {
		async check({ service }) {
			if (!isKnown(service)) throw new NexusError("not_found", "there is no such service");
			return { status: statusOf(state()) };
		},
		async list() {
			const status = statusOf(state());
			return { statuses: Object.fromEntries(["", ...names].map((name) => [name, { status }])) };
		},
		watch: ({ service }, context) =>
			feedStream<ServingStatus, { status: ServingStatus }>(context, {
				current: () => [isKnown(service) ? statusOf(state()) : Status.SERVICE_UNKNOWN],
				subscribe(listener) {
					let last = statusOf(state());
					if (!isKnown(service)) return () => {};
					return health.subscribe((next) => {
						if (statusOf(next) === last) return;
						last = statusOf(next);
						listener(last);
					});
				},
				key: () => "",
				message: (status) => ({ status }),
			}),
	};
}

type ReflectionResponse = ServerReflectionResponse["messageResponse"];

/** Server reflection, for tools such as grpcurl. Both versions of the protocol have the same messages under two names. */
function reflectionMethods(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
	const files = allFiles(services.map(({ file }) => file));
	const symbols = symbolsOf(files);
	return {
		async *serverReflectionInfo(requests) {
			for await (const request of requests) {
				yield {
					validHost: request.host,
					originalRequest: request,
					messageResponse: answer(request) as ReflectionResponse,
				};
			}
		},
	};
	function answer({ messageRequest }: ServerReflectionRequest) {
		switch (messageRequest.case) {
			case "listServices":
				return {
					case: "listServicesResponse",
					value: { service: services.map(({ typeName }) => ({ name: typeName })) },
				} as const;
			case "fileByFilename":
				return found(files.get(messageRequest.value));
			case "fileContainingSymbol":
				return found(symbols.get(messageRequest.value.replace(/^\./, "")));
			case "allExtensionNumbersOfType":
			case "fileContainingExtension":
				return missing("there are no extensions");
			case undefined:
				return failed(Code.InvalidArgument, "the request asks for nothing");
			default:
				return messageRequest satisfies never;
		}
	}
}

/** With what they import. */
function allFiles(roots: readonly DescFile[]): Map<string, DescFile> {
	const files = new Map<string, DescFile>();
	const add = (file: DescFile) => {
		if (files.has(file.proto.name)) return;
		files.set(file.proto.name, file);
		file.dependencies.forEach(add);
	};
	roots.forEach(add);
	return files;
}

function symbolsOf(files: ReadonlyMap<string, DescFile>): Map<string, DescFile> {
	const symbols = new Map<string, DescFile>();
	for (const file of files.values()) {
		const messages = [...file.messages];
		for (const message of messages) messages.push(...message.nestedMessages);
		const enums = [...file.enums, ...messages.flatMap(({ nestedEnums }) => nestedEnums)];
		for (const { typeName } of [...messages, ...enums, ...file.services]) symbols.set(typeName, file);
		for (const { typeName, methods } of file.services)
			for (const { name } of methods) symbols.set(`${typeName}.${name}`, file);
	}
	return symbols;
}

/** A file with everything it needs, itself first: a tool that asked for one name asks no further. */
const found = (file: DescFile | undefined) =>
	file
		? ({
				case: "fileDescriptorResponse",
				value: {
					fileDescriptorProto: [...allFiles([file]).values()].map(({ proto }) =>
						toBinary(FileDescriptorProtoSchema, proto),
					),
				},
			} as const)
		: missing("there is no such file or symbol");

const missing = (message: string) => failed(Code.NotFound, message);
const failed = (errorCode: Code, errorMessage: string) =>
	({ case: "errorResponse", value: { errorCode, errorMessage } }) as const;
