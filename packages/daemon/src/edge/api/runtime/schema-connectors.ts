/** The shapes of the API about connectors. */

import type * as wire from "@nexus-stream/protocol";
import { z } from "zod";
import { component, type Fields, time } from "../schema.ts";

const id = z.string().min(1).max(64);
const model = z.string().min(1).max(200);
const kind = z.enum(["text", "speech", "image", "embed", "transcribe"]);
const endpoint = z.string().max(2048).describe("An https address, such as `https://models.example/v1`.");
const apiKey = z.string().min(1).max(4096).describe("Kept encrypted, and never given back.");

export const connectorParams = z.object({ connector: id });

export const ConnectorView = component(
	"Connector",
	z.object({
		id: z.string(),
		app_id: z.string().exactOptional().describe("The application that may use it; absent: all."),
		provider_type: z.string().describe("`openai`, `anthropic`, `google`, `openai-compatible`, `demo` or `configured`."),
		endpoint: z.string().exactOptional(),
		key_hint: z.string().exactOptional().describe("The last four characters of its key."),
		enabled: z.boolean(),
		default_model: z.string().exactOptional(),
		models: z.array(z.string()).describe("Models that may be asked for; none = any."),
		kinds: z.array(kind),
		created_at: time,
		updated_at: time,
		built_in: z.boolean().describe("Part of the daemon: it cannot be changed or removed."),
	} satisfies Fields<wire.ConnectorJson>),
);
export const ConnectorList = component(
	"ConnectorList",
	z.object({ connectors: z.array(ConnectorView) } satisfies Fields<wire.ConnectorListJson>),
);
export const ConnectorRequest = component(
	"ConnectorRequest",
	z.strictObject({
		id,
		app_id: id.exactOptional(),
		provider_type: z.string().min(1).max(64),
		endpoint: endpoint.exactOptional(),
		api_key: apiKey.exactOptional(),
		default_model: model.exactOptional(),
		models: z.array(model).max(200).exactOptional(),
		kinds: z.array(kind).exactOptional().describe("Absent: all that the provider is known for."),
	} satisfies Fields<wire.ConnectorRequest>),
);
export const ConnectorChangeRequest = component(
	"ConnectorChangeRequest",
	z.strictObject({
		endpoint: endpoint.exactOptional().describe("Another one needs the key again; empty = the provider's usual."),
		api_key: apiKey.exactOptional(),
		enabled: z.boolean().exactOptional(),
		default_model: z.string().max(200).exactOptional(),
		models: z.array(model).max(200).exactOptional(),
	} satisfies Fields<wire.ConnectorChangeRequest>),
);
export const ConnectorRemoved = component(
	"ConnectorRemoved",
	z.object({ removed: z.literal(true) } satisfies Fields<wire.ConnectorRemovedJson>),
);
export const ConnectorTest = component(
	"ConnectorTest",
	z.object({
		ok: z.boolean(),
		reason: z.string().exactOptional(),
		message: z.string().describe("What was found, and what to do."),
		models: z.array(z.string()),
	} satisfies Fields<wire.ConnectorTestJson>),
);
