/** The routes about memory. */

import { json, route } from "../route.ts";
import * as shape from "./schema-memory.ts";

export const MEMORY_ROUTES = {
	listMemory: route({
		method: "GET",
		path: "/v1/memory",
		summary: "What agents have noted: newest first, or what fits a query best.",
		auth: true,
		query: shape.memoryQuery,
		status: 200,
		answer: json(shape.MemoryList),
		errors: [],
	}),
	listMemoryChanges: route({
		method: "GET",
		path: "/v1/memory/changes",
		summary: "What was noted and forgotten, newest first: ids and provenance, never the text.",
		auth: true,
		query: shape.memoryChangesQuery,
		status: 200,
		answer: json(shape.MemoryChanges),
		errors: [],
	}),
	forgetMemory: route({
		method: "DELETE",
		path: "/v1/memory/{id}",
		summary: "Forgets an item for good. Turns keep what was said in them.",
		auth: true,
		params: shape.memoryParams,
		status: 200,
		answer: json(shape.MemoryForgotten),
		errors: ["not_found"],
	}),
};
