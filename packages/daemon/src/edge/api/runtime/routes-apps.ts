/** The routes about applications. */

import { json, route } from "../route.ts";
import * as shape from "./schema-apps.ts";

export const APP_ROUTES = {
	listApps: route({
		method: "GET",
		path: "/v1/apps",
		summary: "Applications, oldest first, removed ones included.",
		auth: true,
		status: 200,
		answer: json(shape.AppList),
		errors: [],
	}),
	addApp: route({
		method: "POST",
		path: "/v1/apps",
		summary: "Adds an application and tells its token, once. A removed one is back with a new token.",
		auth: true,
		body: shape.AppRequest,
		status: 201,
		answer: json(shape.AppAdded),
		errors: ["conflict"],
	}),
	clearApp: route({
		method: "POST",
		path: "/v1/apps/{app}/clear",
		summary:
			"Removes what an application has stored and what is over: finished jobs and workflows, logs of model calls, artifacts. Messages and what is under way stay.",
		auth: true,
		params: shape.appParams,
		status: 200,
		answer: json(shape.AppCleared),
		errors: ["not_found"],
	}),
	removeApp: route({
		method: "DELETE",
		path: "/v1/apps/{app}",
		summary: "Takes an application's token back, at once; what it made stays.",
		auth: true,
		params: shape.appParams,
		status: 200,
		answer: json(shape.AppRemoved),
		errors: ["not_found"],
	}),
};
