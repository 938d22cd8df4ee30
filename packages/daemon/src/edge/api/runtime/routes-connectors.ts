/** The routes about connectors. */

import { json, route } from "../route.ts";
import * as shape from "./schema-connectors.ts";

export const CONNECTOR_ROUTES = {
	listConnectors: route({
		method: "GET",
		path: "/v1/connectors",
		summary: "Model providers: `default`, then those that were added, without their keys.",
		auth: true,
		status: 200,
		answer: json(shape.ConnectorList),
		errors: [],
	}),
	createConnector: route({
		method: "POST",
		path: "/v1/connectors",
		summary: "Adds a model provider. Its key is kept encrypted, and its address has to pass the address guard.",
		auth: true,
		body: shape.ConnectorRequest,
		status: 201,
		answer: json(shape.ConnectorView),
		errors: ["conflict"],
	}),
	getConnector: route({
		method: "GET",
		path: "/v1/connectors/{connector}",
		summary: "One connector, without its key.",
		auth: true,
		params: shape.connectorParams,
		status: 200,
		answer: json(shape.ConnectorView),
		errors: ["not_found"],
	}),
	updateConnector: route({
		method: "PUT",
		path: "/v1/connectors/{connector}",
		summary: "Changes a connector; what is left out stays. Another endpoint needs the key again.",
		auth: true,
		params: shape.connectorParams,
		body: shape.ConnectorChangeRequest,
		status: 200,
		answer: json(shape.ConnectorView),
		errors: ["not_found", "conflict", "precondition"],
	}),
	deleteConnector: route({
		method: "DELETE",
		path: "/v1/connectors/{connector}",
		summary: "Removes a connector and its key.",
		auth: true,
		params: shape.connectorParams,
		status: 200,
		answer: json(shape.ConnectorRemoved),
		errors: ["not_found", "conflict", "precondition"],
	}),
	testConnector: route({
		method: "POST",
		path: "/v1/connectors/{connector}/test",
		summary: "Asks the provider for its models, and says what came of it. Costs nothing at the provider.",
		auth: true,
		params: shape.connectorParams,
		status: 200,
		answer: json(shape.ConnectorTest),
		errors: ["not_found"],
	}),
};
