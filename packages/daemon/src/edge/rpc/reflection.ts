/** Server reflection of gRPC: tools such as grpcurl read here which services there are, and their messages. */

import { type DescFile, type DescService, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ServiceImpl } from "@connectrpc/connect";
import type {
	ServerReflection,
	ServerReflectionRequest,
	ServerReflectionResponse,
} from "@nexus-stream/client/gen/grpc/reflection/v1/reflection_pb";

type ReflectionResponse = ServerReflectionResponse["messageResponse"];

/** Both versions of the protocol have the same messages under two names. */
export function reflectionMethods(services: readonly DescService[]): ServiceImpl<typeof ServerReflection> {
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
