/** The workflows page: workflows and jobs, newest first, as they proceed. */

import { type Workflow, WorkflowState } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { Notice, Status } from "../adapters/channel-parts.tsx";
import type { WebApp } from "../app/app.ts";
import { formatRoute } from "../app/route.ts";
import { msOf, nameOf } from "../app/runtime.ts";
import { ageText } from "../app/words.ts";
import { CopyButton } from "../ui/code-block.tsx";
import { Elapsed } from "../ui/elapsed.tsx";
import { Head } from "../ui/head.tsx";
import { Scrollable } from "../ui/scrollable.tsx";
import { Jobs } from "./jobs.tsx";
import { isOver, stateWords, type WorkflowsView } from "./workflows.ts";

const EXAMPLE = "nexus workflow run examples/workflows/summary.yaml";

export function Workflows({ workflows: view, app }: { workflows: WorkflowsView; app: WebApp }) {
	const { phase, failure, notice } = view;
	return (
		<div class="adapters">
			<Head app={app} title="Workflows">
				<span class="link-state" data-state={failure === undefined ? "live" : "reconnecting"}>
					<i /> {failure === undefined ? "Live" : "Trying again…"}
				</span>
			</Head>
			<div class="scroll">
				<div class="adapters-body">
					{failure !== undefined && <Notice tone="bad">{failure}</Notice>}
					{notice !== undefined && <Notice tone="bad">{notice}</Notice>}
					{phase === "loading" && <p class="note">Loading…</p>}
					{phase === "ready" && (
						<>
							<List view={view} app={app} />
							<Jobs view={view} app={app} />
						</>
					)}
				</div>
			</div>
		</div>
	);
}

function List({ view, app }: { view: WorkflowsView; app: WebApp }) {
	return (
		<section aria-labelledby="workflows-title">
			<h2 id="workflows-title">Workflows</h2>
			{view.workflows.length === 0 ? <Empty /> : <Table view={view} app={app} />}
		</section>
	);
}

const Empty = () => (
	<div class="blank workflows-empty">
		<p>None yet. A workflow is a graph of model calls, scripts and agent runs that survives the daemon. Run one:</p>
		<p class="command">
			<code>{EXAMPLE}</code>
			<CopyButton text={EXAMPLE} what="command" />
		</p>
	</div>
);

const Table = ({ view, app }: { view: WorkflowsView; app: WebApp }) => (
	<Scrollable as="div" class="list-frame" label="Workflows">
		<table class="list workflows-list">
			<thead>
				<tr>
					<th>Name</th>
					<th>State</th>
					<th>Nodes</th>
					<th>Took</th>
					<th>Application</th>
					<th>Started</th>
					<th>
						<span class="sr">Cancel</span>
					</th>
				</tr>
			</thead>
			<tbody>
				{view.workflows.map((workflow) => (
					<Row
						key={workflow.workflowId}
						workflow={workflow}
						canceling={view.canceling.has(workflow.workflowId)}
						app={app}
					/>
				))}
			</tbody>
		</table>
	</Scrollable>
);

function Row({ workflow, canceling, app }: { workflow: Workflow; canceling: boolean; app: WebApp }) {
	const { workflowId, name, state, nodes, reason } = workflow;
	const startedAt = msOf(workflow.startedAt);
	return (
		<tr data-state={nameOf(WorkflowState, state)}>
			<td data-label="Name">
				<a class="row-link" href={formatRoute({ name: "workflow", workflowId })} title={workflowId}>
					{name || workflowId}
				</a>
			</td>
			<td data-label="State">
				<div class="state-line">
					<Status words={stateWords(workflow)} />
				</div>
				{state === WorkflowState.FAILED && reason !== "" && <p class="account-error">{reason}</p>}
			</td>
			<td data-label="Nodes" class="figure">
				<span>
					<Progress workflow={workflow} />
					{nodes.filter(isOver).length}/{nodes.length}
				</span>
			</td>
			<td data-label="Took" class="figure">
				{startedAt === undefined ? "–" : <Elapsed from={startedAt} to={msOf(workflow.finishedAt)} />}
			</td>
			<td data-label="Application">{workflow.appId}</td>
			<td data-label="Started" class="figure">
				{ageText(msOf(workflow.createdAt) ?? 0, Date.now())}
			</td>
			<td class="row-do">
				{!isOver(workflow) && (
					<button
						type="button"
						class="quiet"
						aria-label={`Cancel ${name || workflowId}`}
						disabled={canceling}
						onClick={() => app.workflows()?.cancelWorkflow(workflowId)}
					>
						{canceling ? "Canceling…" : "Cancel"}
					</button>
				)}
			</td>
		</tr>
	);
}

export const Progress = ({ workflow: { progressPercent: percent, state } }: { workflow: Workflow }) => (
	<progress
		class="workflow-progress"
		data-state={nameOf(WorkflowState, state)}
		max={100}
		value={percent}
		aria-label={`${percent} % done`}
	/>
);
