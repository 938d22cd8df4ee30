/** The route of the page: the part of the address after the `#`. */

/** Pages whose address is their name. */
const NAMED = ["lab", "adapters", "memory", "workflows"] as const;

export type PageRoute =
	| { name: "home" }
	| { name: "chat"; session: string }
	| { name: "run"; runId: string }
	| { name: (typeof NAMED)[number] }
	| { name: "workflow"; workflowId: string };

export function parseRoute(hash: string): PageRoute {
	const name = NAMED.find((each) => hash === `#/${each}`);
	if (name) return { name };
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
		default:
			return `#/${route.name}`;
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
