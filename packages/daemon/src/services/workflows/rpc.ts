/** Workflows: submit, look up, cancel, list, and watch (close mode B). */

import type { ServiceImpl } from "@connectrpc/connect";
import type { RuntimeWorkflowService } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { LOG_KINDS, NexusError } from "@nexus-stream/protocol";
import { afterOf, checkedReason, logStream, pageSizeOf, pageTokenOf, principalOf } from "../../edge/rpc/rpc.ts";
import { definitionJson, definitionMessage, eventMessages, workflowMessage, workflowStateOf } from "./codec.ts";
import type { Workflows } from "./port.ts";

export interface WorkflowRpcParts {
	workflows: Workflows;
	limits: { listItemsMax: number };
}

export const workflowMethods = ({
	workflows,
	limits,
}: WorkflowRpcParts): Partial<ServiceImpl<typeof RuntimeWorkflowService>> => ({
	async submitWorkflow({ appId, subjectUserId: userId, definition, idempotencyKey }, context) {
		const principal = principalOf(context);
		if (!definition) throw new NexusError("invalid", "definition is missing", { reason: "WORKFLOW_INVALID" });
		if (appId === "" && principal.owner)
			throw new NexusError("invalid", "app_id is missing: name the application that the workflow is for", {
				reason: "APP_ID_REQUIRED",
			});
		const metadata = (name: string) => context.requestHeader.get(name) ?? undefined;
		const submitted = { appId, userId, definition: definitionJson(definition), idempotencyKey, metadata };
		return { workflow: workflowMessage(await workflows.submit(submitted, principal)) };
	},

	async getWorkflow({ workflowId }, context) {
		const found = await workflows.find(workflowId, principalOf(context));
		if (!found) throw new NexusError("not_found", `there is no workflow ${workflowId}`);
		return { workflow: workflowMessage(found.workflow), definition: definitionMessage(found.definition) };
	},

	async cancelWorkflow({ workflowId, reason }, context) {
		return {
			workflow: workflowMessage(await workflows.cancel(workflowId, checkedReason(reason), principalOf(context))),
		};
	},

	async listWorkflows({ appId, states, pageSize, pageToken }, context) {
		const limit = pageSizeOf(pageSize, limits.listItemsMax);
		const query = {
			limit,
			appId: appId || undefined,
			states: states.length > 0 ? states.map(workflowStateOf) : undefined,
			...pageTokenOf(pageToken, "wf"),
		};
		const found = await workflows.list(query, principalOf(context));
		return {
			workflows: found.map(workflowMessage),
			nextPageToken: found.length === limit ? found.at(-1)!.workflow_id : "",
		};
	},

	async *subscribeWorkflowEvents({ workflowId, after }, context) {
		const cursor = await workflows.cursor(workflowId, afterOf(after), principalOf(context));
		yield* logStream(context, { cursor, messages: eventMessages, closes: LOG_KINDS.workflow.closes });
	},
});
