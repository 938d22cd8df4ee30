/** An application's token against every remote procedure there is. */

import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as account from "../../../packages/client/src/gen/nexus/runtime/v1/account_pb.ts";
import * as agent from "../../../packages/client/src/gen/nexus/runtime/v1/agent_pb.ts";
import * as ai from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import * as app from "../../../packages/client/src/gen/nexus/runtime/v1/app_pb.ts";
import * as audit from "../../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import * as connector from "../../../packages/client/src/gen/nexus/runtime/v1/connector_pb.ts";
import * as local from "../../../packages/client/src/gen/nexus/runtime/v1/local_pb.ts";
import * as memory from "../../../packages/client/src/gen/nexus/runtime/v1/memory_pb.ts";
import * as realtime from "../../../packages/client/src/gen/nexus/runtime/v1/realtime_pb.ts";
import * as workflow from "../../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { reachesProcedure } from "../../../packages/daemon/src/edge/rpc/admit.ts";
import { OWNER } from "../../services/parts.ts";
import { type GrpcKit, PROTOCOLS, startGrpcKit, statusOf } from "./kit.ts";

const isService = (value: unknown): value is DescService => (value as Partial<DescService>).kind === "service";
const methods: DescMethod[] = [account, agent, ai, app, audit, connector, local, memory, realtime, workflow]
	.flatMap((file) => Object.values<unknown>(file).filter(isService))
	.flatMap((service) => service.methods);
const nameOf = ({ parent, name }: DescMethod) => `${parent.typeName}/${name}`;
/** The registry of applications is in a service that applications reach for their messages. */
const OWNERS_OF_APPS = ["ListApps", "AddApp", "ClearApp", "RemoveApp"];
const OWNER_ONLY = ["Audit", "Agent", "Account", "Memory", "Connector", "Realtime"];

/** The error that the call is refused with; undefined when it succeeds. */
async function call(transport: Transport, method: DescMethod): Promise<ConnectError | undefined> {
	try {
		if (method.methodKind === "unary") await transport.unary(method as never, undefined, undefined, undefined, {});
		else {
			const input = (async function* () {
				yield {};
			})();
			const { message } = await transport.stream(method as never, undefined, undefined, undefined, input as never);
			for await (const _ of message) return undefined;
		}
		return undefined;
	} catch (cause) {
		return ConnectError.from(cause);
	}
}

describe("Z25: an application's token", () => {
	let kit: GrpcKit;
	let token: string;
	beforeAll(async () => {
		kit = await startGrpcKit();
		token = (await kit.rig.apps.add({ id: "shop" }, OWNER)).token;
	});
	afterAll(() => kit.close());

	it("there are many procedures, and most services are the owner's", () => {
		expect(methods.length).toBeGreaterThan(40);
		for (const method of methods) {
			const isOwners =
				OWNERS_OF_APPS.includes(method.name) ||
				OWNER_ONLY.some((service) => method.parent.name === `Runtime${service}Service`);
			expect([nameOf(method), reachesProcedure({ owner: false }, nameOf(method))]).toEqual([nameOf(method), !isOwners]);
			expect(reachesProcedure({ owner: true }, nameOf(method))).toBe(true);
		}
		expect(reachesProcedure({ owner: false }, "nexus.runtime.v1.RuntimeNewService/Anything")).toBe(false);
	});

	const [open, closed] = [true, false].map((isOpen) =>
		methods
			.filter((method) => reachesProcedure({ owner: false }, nameOf(method)) === isOpen)
			.map((method) => [nameOf(method), method] as const),
	);

	it.each(closed!)("%s is refused", async (_, method) => {
		const refusal = await call(kit.transport("grpc", token), method);
		expect(statusOf(refusal)).toEqual({ code: "PermissionDenied", reason: "REASON_CODE_FORBIDDEN" });
	});

	it.each(open!.filter(([, { methodKind }]) => methodKind === "unary"))("%s is not", async (_, method) => {
		const refusal = await call(kit.transport("grpc", token), method);
		expect(refusal?.code).not.toBe(Code.PermissionDenied);
	});

	it.each(PROTOCOLS)("is refused over %s as over gRPC", async (protocol) => {
		const refusal = await call(kit.transport(protocol, token), account.RuntimeAccountService.method.listAccounts);
		expect(statusOf(refusal)).toEqual({ code: "PermissionDenied", reason: "REASON_CODE_FORBIDDEN" });
	});

	it("is refused once the application is removed", async () => {
		const gone = (await kit.rig.apps.add({ id: "gone" }, OWNER)).token;
		await kit.rig.apps.remove("gone", OWNER);
		const refusal = await call(kit.transport("grpc", gone), app.RuntimeAppService.method.ackAppMessage);
		expect(statusOf(refusal)).toEqual({ code: "Unauthenticated", reason: "REASON_CODE_UNAUTHENTICATED" });
	});
});
