/** One workflow: its graph, and every node with its state, its text so far and its output. */

import type { Workflow as WorkflowMessage } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { useMemo, useRef } from "preact/hooks";
import { formatRoute } from "../app/route.ts";
import { msOf } from "../app/runtime.ts";
import { Elapsed } from "../ui/clock.tsx";
import { ageText } from "../ui/format.ts";
import { CancelButton, Head, Notices, PageFrame } from "../ui/list-page.tsx";
import { LinkBadge, Status } from "../ui/status.tsx";
import { layersOf, resultNodesOf, type WorkflowView } from "./workflow.ts";
import type { WorkflowPage } from "./workflow-feed.ts";
import { WorkflowGraph } from "./workflow-graph.tsx";
import { WorkflowNode } from "./workflow-node.tsx";
import { isOver, stateWords } from "./workflows.ts";
import { Progress } from "./workflows-page.tsx";

export { openWorkflow } from "./workflow-feed.ts";

export function Workflow({ page: { view: signal, actions } }: { page: WorkflowPage }) {
	const view = signal.value;
	const { workflow, failure, notice } = view;
	const head = (
		<Head
			title={workflow?.name || <code>{view.workflowId}</code>}
			back={{ href: formatRoute({ name: "workflows" }), label: "Workflows" }}
		>
			<Link view={view} />
			{workflow && !isOver(workflow) && (
				<CancelButton class="quiet cancel" icon="stop" isCanceling={view.canceling} onClick={actions.cancel} />
			)}
		</Head>
	);
	return (
		<PageFrame class="workflow" head={head}>
			<Notices view={{ failure, notice, isLoaded: workflow !== undefined }} />
			{workflow && <Summary workflow={workflow} />}
			{workflow && <Nodes view={view} workflow={workflow} />}
		</PageFrame>
	);
}

/** Whether the shown state is live; nothing once the workflow has ended. */
function Link({ view: { link } }: { view: WorkflowView }) {
	if (link === "ended" || link === "refused") return null;
	const label = link === "live" ? "Live" : link === "connecting" ? "Connecting…" : "Reconnecting…";
	return <LinkBadge state={link} label={label} />;
}

function Summary({ workflow }: { workflow: WorkflowMessage }) {
	const { appId, workflowId: id, nodes, reason } = workflow;
	const startedAt = msOf(workflow.startedAt);
	const words = stateWords(workflow);
	return (
		<section class="workflow-summary" aria-label="State">
			<div class="row wrap workflow-facts">
				<span role="status">
					<Status words={words} />
				</span>
				<Progress workflow={workflow} />
				<span class="figure">
					{nodes.filter(isOver).length} of {nodes.length} nodes
				</span>
				{startedAt !== undefined && <Elapsed from={startedAt} to={msOf(workflow.finishedAt)} />}
			</div>
			<p class="workflow-why" data-tone={words.tone}>
				{reason !== "" && reason !== "canceled" ? (
					reason
				) : (
					<>
						{appId} · {ageText(msOf(workflow.createdAt) ?? 0, Date.now())} · <code>{id}</code>
					</>
				)}
			</p>
		</section>
	);
}

function Nodes({ view, workflow }: { view: WorkflowView; workflow: WorkflowMessage }) {
	const list = useRef<HTMLOListElement>(null);
	const { nodes } = workflow;
	const ordered = useMemo(() => layersOf(nodes).flat(), [nodes]);
	const results = useMemo(() => resultNodesOf(nodes), [nodes]);
	const pick = (nodeId: string) => {
		const at = ordered.findIndex((node) => node.nodeId === nodeId);
		const card = list.current?.children[at];
		if (!(card instanceof HTMLElement)) return;
		card.focus({ preventScroll: true });
		card.scrollIntoView({ block: "nearest", behavior: "smooth" });
	};
	return (
		<div class="workflow-parts">
			<WorkflowGraph nodes={nodes} onPick={pick} />
			<ol class="nodes" ref={list} aria-label="Nodes">
				{ordered.map((node) => (
					<WorkflowNode
						key={node.nodeId}
						node={node}
						nodes={nodes}
						output={view.outputs[node.nodeId]}
						text={view.texts[node.runId]}
						isResult={results.has(node.nodeId)}
						workflowId={workflow.workflowId}
					/>
				))}
			</ol>
		</div>
	);
}
