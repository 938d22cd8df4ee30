/** The route of the page: the part of the address after the `#`. */

export type PageRoute =
	| { name: "home" }
	| { name: "chat"; session: string }
	| { name: "run"; runId: string }
	| { name: "lab" }
	| { name: "adapters" }
	| { name: "memory" }
	| { name: "workflows" }
	| { name: "workflow"; workflowId: string };

export function parseRoute(hash: string): PageRoute {
	if (hash === "#/lab") return { name: "lab" };
	if (hash === "#/adapters") return { name: "adapters" };
	if (hash === "#/memory") return { name: "memory" };
	if (hash === "#/workflows") return { name: "workflows" };
	const [, kind, rest] = /^#\/(s|run|workflow)\/([^/]+)$/.exec(hash) ?? [];
	const value = rest === undefined ? undefined : decode(rest);
	if (kind === "s" && value) return { name: "chat", session: value };
	if (kind === "run" && value) return { name: "run", runId: value };
	if (kind === "workflow" && value) return { name: "workflow", workflowId: value };
	return { name: "home" };
}

export function formatRoute(route: PageRoute): string {
	switch (route.name) {
		case "home":
			return "#/";
		case "chat":
			return `#/s/${encodeURIComponent(route.session)}`;
		case "run":
			return `#/run/${encodeURIComponent(route.runId)}`;
		case "workflow":
			return `#/workflow/${encodeURIComponent(route.workflowId)}`;
		case "lab":
		case "adapters":
		case "memory":
		case "workflows":
			return `#/${route.name}`;
		default:
			return route satisfies never;
	}
}

/** The one-time code of a printed address (`#code=…`). */
export const signInCodeOf = (hash: string): string | undefined => /^#code=([^&]+)$/.exec(hash)?.[1];

function decode(text: string): string | undefined {
	try {
		return decodeURIComponent(text);
	} catch {
		// This page never wrote such an address; it opens the home page.
		return undefined;
	}
}
