/** The close-mode table is the authority for every stream: it is held against the service descriptors and the protos (K-STREAM-001). */

import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { DescMethod } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { SERVICES } from "../../../packages/daemon/src/edge/rpc/routes.ts";
import { type CloseMode, STREAM_PROCEDURES } from "../../../packages/protocol/src/protocol.ts";
import { methods, procedureOf, services } from "./descriptors.ts";

const modes: Readonly<Record<string, { closes: CloseMode }>> = STREAM_PROCEDURES;
const streaming = methods.filter(({ methodKind }) => methodKind === "server_streaming");
const modeOf = (method: DescMethod) => modes[procedureOf(method)]?.closes;

it("R4-1 to R4-3, R4-78 to R4-80: every server-streaming procedure has its row, and every row is one", () => {
	expect(streaming.map(procedureOf).toSorted()).toEqual(Object.keys(STREAM_PROCEDURES).toSorted());
});

it("R4-4 to R4-21: the modes are those of the contract", () => {
	const inMode = (mode: CloseMode) =>
		streaming.filter((method) => modeOf(method) === mode).map(({ name, parent }) => `${parent.name}/${name}`);
	expect(inMode("A")).toEqual(["RuntimeAiService/StreamScenario"]);
	expect(inMode("B").toSorted()).toEqual([
		"RuntimeAiService/SubscribeScenarioJobEvents",
		"RuntimeWorkflowService/SubscribeWorkflowEvents",
	]);
	expect(inMode("C")).toEqual(["RuntimeAuditService/ExportAuditEvents"]);
	expect(inMode("D")).toHaveLength(9);
});

it("no other kind of stream: a dialogue is server reflection alone, and nothing is streamed by clients", () => {
	const others = methods.filter(({ methodKind }) => methodKind !== "unary" && methodKind !== "server_streaming");
	expect(others.map((method) => `${procedureOf(method)} ${method.methodKind}`).toSorted()).toEqual([
		"grpc.reflection.v1.ServerReflection/ServerReflectionInfo bidi_streaming",
		"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo bidi_streaming",
	]);
});

it("every service of the protos is served", () => {
	const names = (list: typeof services) => list.map(({ typeName }) => typeName).toSorted();
	expect(names(SERVICES)).toEqual(names(services));
});

it("R4-44, R4-52, R4-74: `done` is a field of mode A alone, `eof` of mode C alone", () => {
	for (const method of streaming) {
		const fields = method.output.fields.map(({ name }) => name);
		expect([procedureOf(method), fields.includes("done")]).toEqual([procedureOf(method), modeOf(method) === "A"]);
		expect([procedureOf(method), fields.includes("eof")]).toEqual([procedureOf(method), modeOf(method) === "C"]);
	}
});

it("the protos say the same in words", () => {
	const folder = fileURLToPath(new URL("../../../proto/nexus/", import.meta.url));
	const said: string[] = [];
	for (const file of globSync("**/*.proto", { cwd: folder })) {
		const text = readFileSync(folder + file, "utf8");
		for (const [, mode, rpc] of text.matchAll(/Close mode ([A-D])[^\n]*(?:\n\s*\/\/[^\n]*)*\n\s*rpc (\w+)/g))
			said.push(`${rpc} ${mode}`);
	}
	const declared = streaming
		.filter(({ parent }) => parent.typeName.startsWith("nexus."))
		.map((method) => `${method.name} ${modeOf(method)}`);
	expect(said.toSorted()).toEqual(declared.toSorted());
});
