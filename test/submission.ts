/** A workflow's definition as a file spells it, as the body of `POST /v1/workflows`. */

import type { WorkflowDefinitionJson } from "../packages/daemon/src/services/workflows/port.ts";

export const submissionOf = ({ nodes, ...definition }: WorkflowDefinitionJson, app_id = "owner"): object => ({
	app_id,
	definition: {
		...definition,
		nodes: nodes.map(({ id, kind, ...node }) => ({ ...node, node_id: id, kind: `WORKFLOW_NODE_KIND_${kind}` })),
	},
});
