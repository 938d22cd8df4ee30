/** The handlers about workflows. */

import { NexusError } from "@nexus-stream/protocol";
import type { Workflows } from "../../../services/workflows/port.ts";
import { principalOfCaller } from "../../http/gate.ts";
import type { Handlers } from "../../http/handler.ts";
import type { EdgeDeps, EdgeLimits } from "../../port.ts";
import { resumeAfter, SSE } from "../../stream/stream.ts";
import { type Streaming, sendStream } from "../send-stream.ts";
import { WORKFLOW_ROUTES } from "./routes-workflows.ts";

const LIMIT_DEFAULT = 50;

interface WorkflowHandlerParts extends Streaming {
	deps: EdgeDeps;
	limits: EdgeLimits;
}

export function workflowHandlers({ deps, limits, ...streaming }: WorkflowHandlerParts) {
	return {
		submitWorkflow({ body }, { caller, headers }) {
			const { definition, app_id: appId = "", user_id: userId = "", idempotency_key: idempotencyKey } = body;
			const metadata = (name: string) => headers.get(name) ?? undefined;
			const submitted = { appId, userId, definition, idempotencyKey, metadata };
			return workflowsOf(deps).submit(submitted, principalOfCaller(caller));
		},
		async listWorkflows({ query: { app_id: appId, state, limit = LIMIT_DEFAULT, before } }, { caller }) {
			const query = { limit: Math.min(limit, limits.listItemsMax), appId, states: state && [state], before };
			return { workflows: await workflowsOf(deps).list(query, principalOfCaller(caller)) };
		},
		async getWorkflow({ params: { workflow } }, { caller }) {
			const found = await workflowsOf(deps).find(workflow, principalOfCaller(caller));
			if (!found) throw new NexusError("not_found", `there is no workflow ${workflow}`);
			return found;
		},
		cancelWorkflow({ params: { workflow }, body: { reason = "" } }, { caller }) {
			return workflowsOf(deps).cancel(workflow, reason, principalOfCaller(caller));
		},
		async streamWorkflow({ params: { workflow }, query }, { caller, headers, outgoing }) {
			streaming.admitStream();
			const after = resumeAfter(headers.get("last-event-id"), query.after);
			const cursor = await workflowsOf(deps).cursor(workflow, after, principalOfCaller(caller));
			if (after === undefined || cursor.offset >= after)
				return sendStream(streaming, outgoing, { cursor, dialect: SSE, closes: WORKFLOW_ROUTES.streamWorkflow.close });
			// It has ended and the reader has all of it: a browser asks again until it is told so.
			cursor.close();
			return new Response(null, { status: 204 });
		},
	} satisfies Partial<Handlers>;
}

function workflowsOf({ services }: EdgeDeps): Workflows {
	if (!services) throw new NexusError("unavailable", "this daemon has no workflows");
	return services.workflows;
}
