import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ScenarioType } from "../../../packages/client/src/gen/nexus/runtime/v1/ai_pb.ts";
import { ProviderState, RuntimeAuditService } from "../../../packages/client/src/gen/nexus/runtime/v1/audit_pb.ts";
import { ReasonCode } from "../../../packages/client/src/gen/nexus/runtime/v1/common_pb.ts";
import { RuntimeConnectorService } from "../../../packages/client/src/gen/nexus/runtime/v1/connector_pb.ts";
import { fakeProvider, refuse } from "../../services/connectors/fake-provider.ts";
import { rig as connectorRig, KEY, OWNER } from "../../services/connectors/rig.ts";
import { until } from "../../until.ts";
import { errorOf, following, kitForTest, statusOf } from "./kit.ts";

async function kit() {
	const { connectors } = connectorRig();
	const grpc = await kitForTest({ services: { connectors } });
	return { grpc, connectors, calls: grpc.client(RuntimeConnectorService) };
}

test("a connector is made, read, changed, tested and removed; its key never comes out", async () => {
	const { calls } = await kit();
	const fake = await fakeProvider();
	const { connector } = await calls.createConnector({
		connectorId: "c",
		appId: "shop",
		providerType: "openai-compatible",
		endpoint: `${fake.url}/v1`,
		apiKey: KEY,
		defaultModelId: "m1",
		modelIds: ["m1", "m2"],
		scenarioTypes: [ScenarioType.SPEECH_SYNTHESIZE, ScenarioType.TEXT_GENERATE],
	});
	expect(connector).toMatchObject({
		connectorId: "c",
		appId: "shop",
		keyHint: "…cdef",
		enabled: true,
		defaultModelId: "m1",
		builtIn: false,
		scenarioTypes: [ScenarioType.TEXT_GENERATE, ScenarioType.SPEECH_SYNTHESIZE],
	});
	expect((await calls.getConnector({ connectorId: "c" })).connector).toEqual(connector);
	const { connectors } = await calls.listConnectors({});
	expect(connectors.map(({ connectorId, builtIn }) => [connectorId, builtIn])).toEqual([
		["default", true],
		["c", false],
	]);
	expect(JSON.stringify(connectors, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
		KEY,
	);
	expect(await calls.testConnector({ connectorId: "c" })).toMatchObject({ ok: true, modelIds: ["m1", "m2"] });
	fake.on("/v1/models", refuse(500, "broken"));
	expect(await calls.testConnector({ connectorId: "c" })).toMatchObject({
		ok: false,
		reasonCode: ReasonCode.AI_PROVIDER_FAILED,
	});
	const changed = await calls.updateConnector({ connectorId: "c", enabled: false });
	expect(changed.connector).toMatchObject({ enabled: false, defaultModelId: "m1", keyHint: "…cdef" });
	const limited = await calls.updateConnector({ connectorId: "c", modelIds: ["m1", "m2"] });
	expect(limited.connector?.modelIds).toEqual(["m1", "m2"]);
	const both = { connectorId: "c", modelIds: ["m1"], clearModelIds: true };
	expect((await errorOf(calls.updateConnector(both))).code).toBe(Code.InvalidArgument);
	expect((await calls.updateConnector({ connectorId: "c" })).connector?.modelIds).toEqual(["m1", "m2"]);
	expect((await calls.updateConnector({ connectorId: "c", clearModelIds: true })).connector?.modelIds).toEqual([]);
	await calls.deleteConnector({ connectorId: "c" });
	expect(statusOf(await errorOf(calls.getConnector({ connectorId: "c" })))).toEqual({
		code: "NotFound",
		reason: "REASON_CODE_AI_CONNECTOR_NOT_FOUND",
	});
});

test("Z27: an address that is not allowed is PERMISSION_DENIED, with its reason", async () => {
	const { calls } = await kit();
	const given = { connectorId: "c", providerType: "openai-compatible", endpoint: "https://10.0.0.1/v1" };
	expect(statusOf(await errorOf(calls.createConnector(given)))).toEqual({
		code: "PermissionDenied",
		reason: "REASON_CODE_AI_ENDPOINT_FORBIDDEN",
	});
	const other = { ...given, endpoint: "https://models.example", scenarioTypes: [99 as ScenarioType] };
	expect((await errorOf(calls.createConnector(other))).code).toBe(Code.InvalidArgument);
});

test("Z2: provider health begins with the current states, then tells every change; it never ends by itself", async () => {
	const { grpc, connectors } = await kit();
	const fake = await fakeProvider();
	await connectors.create({ id: "c", providerType: "openai-compatible", endpoint: `${fake.url}/v1` }, OWNER);
	const calls = grpc.client(RuntimeAuditService);
	const { seen, ended, stop } = following((signal) => calls.subscribeAIProviderHealthEvents({}, { signal }));
	const has = (name: string, state: ProviderState) =>
		seen.some(({ provider }) => provider?.providerName === name && provider.state === state);
	await until("both are well", () => has("default", ProviderState.HEALTHY) && has("c", ProviderState.HEALTHY));
	const { providers } = await calls.listAIProviderHealth({});
	expect(providers.map(({ providerName, state }) => [providerName, state])).toEqual([
		["default", ProviderState.HEALTHY],
		["c", ProviderState.HEALTHY],
	]);
	await connectors.remove("c", OWNER);
	await until("it is reported as removed", () => has("c", ProviderState.REMOVED));
	stop();
	expect((await ended).error?.code).toBe(Code.Canceled);
});
