/** Steps 1 to 9 of a model call, in order, each with its own error: the first fault wins, and none leaves anything behind (Z9, K-STREAM-002). */

import { NexusError, type Reason, toNexusError } from "@nexus-stream/protocol";
import { observed } from "../connectors/observed.ts";
import type { ConnectorInfo, Connectors, InlineCredential, Provider } from "../connectors/port.ts";
import { defaultModelOf } from "../connectors/provider-types.ts";
import { checkKey } from "../kit/once.ts";
import { appOf, type Principal } from "../kit/principal.ts";
import { metadataOf, type ScenarioMetadata, userOf, type VerifyUserToken } from "./metadata.ts";
import {
	type AdmittedScenario,
	SCENARIO_TIMEOUT_MS,
	type ScenarioHead,
	type ScenarioRequest,
	type StoredScenario,
} from "./port.ts";
import { checkHead, checkSpec } from "./spec.ts";

export interface AdmissionDeps {
	connectors: Pick<Connectors, "find" | "checkEndpoint" | "endpointOf" | "checkInline" | "open" | "openInline">;
	verifyUser: VerifyUserToken;
}

export async function admitScenario(
	deps: AdmissionDeps,
	request: ScenarioRequest,
	principal: Principal,
): Promise<AdmittedScenario> {
	const { head, spec } = request;
	const metadata = parse(request);
	// 2: the user token, if there is one.
	const userId = await userOf(head.userId, metadata, deps.verifyUser);
	const appId = applicationOf(head, principal);
	const source = keySourceOf(deps, request, metadata, principal);
	const timeoutMs = head.timeoutMs ?? SCENARIO_TIMEOUT_MS[spec.kind];
	const admitted = { appId, userId, spec, timeoutMs, caller: principal.address };
	if ("inline" in source) {
		await checkInlineEndpoint(deps, source.inline, principal);
		const model = inlineModelOf(head);
		return { ...admitted, source, model, provider: await openInline(deps, source.inline) };
	}
	const connector = await loadConnector(deps, source.connectorId, principal);
	const provider = await openConnector(deps, connector, appId);
	await checkRemoteEndpoint(deps, connector);
	return { ...admitted, source: { connector }, model: modelOf(head, connector, spec.kind), provider };
}

/** The daemon itself: what it asks for was admitted for its caller before. */
const DAEMON: Principal = { owner: true, address: "local", isPrivate: true };

/** Steps 5 to 7 once more: since the call was stored, its connector may have been removed, disabled or moved. */
export async function readmitScenario(
	deps: AdmissionDeps,
	{ connector: { id, appId }, ...stored }: StoredScenario,
): Promise<AdmittedScenario> {
	const connector = await loadConnector(deps, id, DAEMON);
	// A connector of the same name that belongs to another application is not the one that was admitted.
	if (connector.appId !== appId) throw connectorNotFound(id);
	const provider = await openConnector(deps, connector, stored.appId);
	await checkRemoteEndpoint(deps, connector);
	return { ...stored, source: { connector }, provider };
}

/** 1: body and metadata. */
function parse({ head, spec, audio, metadata, idempotencyKey, timeoutMsMax }: ScenarioRequest): ScenarioMetadata {
	checkSpec(spec, audio !== undefined);
	checkHead(head, spec.kind, timeoutMsMax);
	checkKey(idempotencyKey);
	return metadataOf(metadata);
}

/** 3: the application. */
function applicationOf({ appId }: ScenarioHead, principal: Principal): string {
	if (appId === "" && principal.appId === undefined)
		throw fault("invalid", "APP_ID_REQUIRED", "app_id is missing: name the application that the call is for");
	return appOf(principal, appId);
}

/** 4: a connector, or credentials in metadata; never both. */
function keySourceOf(
	{ connectors }: AdmissionDeps,
	{ head, durable = false }: ScenarioRequest,
	metadata: ScenarioMetadata,
	{ appId: app }: Principal,
): { connectorId: string } | { inline: InlineCredential } {
	const { connectorId = "" } = head;
	const { keySource, providerType, providerEndpoint, apiKey } = metadata;
	const hasInline = (providerType ?? providerEndpoint ?? apiKey) !== undefined;
	const source = keySource ?? (hasInline ? "inline" : "managed");
	if (source === "managed" ? hasInline : connectorId !== "")
		throw fault("invalid", "AI_REQUEST_CREDENTIAL_CONFLICT", "name a connector_id or send credentials, not both");
	if (source === "managed") {
		if (connectorId !== "") return { connectorId };
		throw fault("invalid", "AI_CONNECTOR_ID_REQUIRED", "connector_id is missing; `default` is the configured model");
	}
	if (providerType === undefined || apiKey === undefined) throw credentialMissing("x-nexus-provider-{type,api-key}");
	const inline = { providerType, apiKey, endpoint: providerEndpoint, app };
	try {
		connectors.checkInline(inline);
	} catch (cause) {
		throw scrubbedError(cause, apiKey);
	}
	if (connectors.endpointOf(inline) === undefined) throw credentialMissing("x-nexus-provider-endpoint");
	if (durable)
		throw fault(
			"precondition",
			"AI_REQUEST_CREDENTIAL_CONFLICT",
			"credentials of a request cannot survive a restart: create a connector for jobs and workflows",
		);
	return { inline };
}

/** 5: the connector. */
async function loadConnector({ connectors }: AdmissionDeps, id: string, principal: Principal): Promise<ConnectorInfo> {
	const connector = await connectors.find(id, principal);
	if (connector) return connector;
	throw connectorNotFound(id);
}

/** 6: its owner, its state, and its key. */
async function openConnector(
	{ connectors }: AdmissionDeps,
	connector: ConnectorInfo,
	appId: string,
): Promise<Provider> {
	const { id } = connector;
	if (connector.appId !== undefined && connector.appId !== appId) throw connectorNotFound(id);
	if (!connector.enabled) throw fault("precondition", "AI_CONNECTOR_DISABLED", `the connector ${id} is disabled`);
	return connectors.open(connector);
}

/** 7: the address of a connector. The daemon's own model has none to be checked. */
async function checkRemoteEndpoint({ connectors }: AdmissionDeps, connector: ConnectorInfo): Promise<void> {
	const endpoint = connector.builtIn ? undefined : connectors.endpointOf(connector);
	if (endpoint !== undefined) await connectors.checkEndpoint(endpoint);
}

/** 8: the address that came with the request, and the way that the key came. */
async function checkInlineEndpoint(
	{ connectors }: AdmissionDeps,
	inline: InlineCredential,
	{ isPrivate }: Principal,
): Promise<void> {
	if (!isPrivate)
		throw fault("forbidden", "FORBIDDEN", "credentials are not taken over a connection that is not encrypted: use TLS");
	await connectors.checkEndpoint(connectors.endpointOf(inline)!, inline.app).catch((cause: unknown) => {
		throw scrubbedError(cause, inline.apiKey);
	});
}

/** 9: the model, and whether the connector does this kind of work. */
function modelOf(
	{ model = "" }: ScenarioHead,
	connector: ConnectorInfo,
	kind: AdmittedScenario["spec"]["kind"],
): string {
	const { id, models, kinds } = connector;
	if (!kinds.includes(kind))
		throw fault("not_found", "AI_SCENARIO_UNSUPPORTED", `the connector ${id} has no model for ${kind}`);
	const wanted = model === "" ? (defaultModelOf(connector, kind) ?? "") : model;
	if (wanted === "") throw modelNotFound(`the connector ${id} has no default model: name a model_id`);
	if (models.length > 0 && !models.includes(wanted))
		throw modelNotFound(`the connector ${id} has no model ${wanted}; it has ${models.join(", ")}`);
	return wanted;
}

/** The key is in no error of the provider. */
async function openInline({ connectors }: AdmissionDeps, inline: InlineCredential): Promise<Provider> {
	const clean = (cause: unknown): never => {
		throw scrubbedError(cause, inline.apiKey);
	};
	const provider = await connectors.openInline(inline).catch(clean);
	return observed(provider, (outcome) => outcome.ok || clean(outcome.error));
}

/** The error without the secret, and without its cause, which may have it anywhere. Providers quote keys as they are, and as a part of an address. */
function scrubbedError(cause: unknown, secret: string): NexusError {
	const { code, message, reason } = toNexusError(cause, "engine_failed");
	const spellings = [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)];
	const clean = spellings.reduce((text, spelling) => text.replaceAll(spelling, "[redacted]"), message);
	return new NexusError(code, clean, reason && { reason });
}

/** 9, for credentials of the request. */
function inlineModelOf({ model = "" }: ScenarioHead): string {
	if (model !== "") return model;
	throw modelNotFound("credentials of a request have no default model: name a model_id");
}

const credentialMissing = (name: string): NexusError =>
	fault("invalid", "AI_REQUEST_CREDENTIAL_MISSING", `inline credentials need the metadata ${name}`);

const connectorNotFound = (id: string): NexusError =>
	fault("not_found", "AI_CONNECTOR_NOT_FOUND", `there is no connector ${id}`);

const modelNotFound = (message: string): NexusError => fault("not_found", "AI_MODEL_NOT_FOUND", message);

const fault = (code: NexusError["code"], reason: Reason, message: string): NexusError =>
	new NexusError(code, message, { reason });
