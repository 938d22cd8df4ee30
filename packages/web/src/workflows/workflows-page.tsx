/** The workflows page: workflows and jobs, newest first, as they proceed. */

import type { WorkflowJson } from "@nexus-stream/protocol";
import { formatRoute } from "../app/route.ts";
import { Elapsed } from "../ui/clock.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { ageText } from "../ui/format.ts";
import { CancelButton, ListPage, ListTable } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import { Jobs } from "./jobs.tsx";
import { isOver, stateWords, type WorkflowsPage } from "./workflows.ts";

const EXAMPLE = "nexus workflow run examples/workflows/summary.yaml";

export function Workflows({ page }: { page: WorkflowsPage }) {
	const view = page.view.value;
	return (
		<ListPage title="Workflows" view={view}>
			<section aria-labelledby="workflows-title">
				<h2 id="workflows-title">Workflows</h2>
				{view.workflows.length === 0 ? <Empty /> : <Table page={page} />}
			</section>
			<Jobs page={page} />
		</ListPage>
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

const COLUMNS = ["Name", "State", "Nodes", "Took", "Application", "Started", "(Cancel)"];

function Table({ page: { view, actions } }: { page: WorkflowsPage }) {
	const { workflows, canceling } = view.value;
	return (
		<ListTable label="Workflows" class="workflows-list" columns={COLUMNS}>
			{workflows.map((workflow) => (
				<Row
					key={workflow.workflow_id}
					workflow={workflow}
					isCanceling={canceling.has(workflow.workflow_id)}
					onCancel={() => actions.cancelWorkflow(workflow.workflow_id)}
				/>
			))}
		</ListTable>
	);
}

function Row(props: { workflow: WorkflowJson; isCanceling: boolean; onCancel(): void }) {
	const { workflow, isCanceling, onCancel } = props;
	const { workflow_id: workflowId, name, state, nodes, error } = workflow;
	return (
		<tr data-state={state}>
			<td data-label="Name">
				<a class="row-link" href={formatRoute({ name: "workflow", workflowId })} title={workflowId}>
					{name || workflowId}
				</a>
			</td>
			<td data-label="State">
				<div class="state-line">
					<Status words={stateWords(workflow)} />
				</div>
				{error !== undefined && state === "failed" && <p class="account-error">{error.message}</p>}
			</td>
			<td data-label="Nodes" class="figure">
				<span>
					<Progress workflow={workflow} />
					{nodes.filter(isOver).length}/{nodes.length}
				</span>
			</td>
			<td data-label="Took" class="figure">
				{workflow.started_at === undefined ? "–" : <Elapsed from={workflow.started_at} to={workflow.finished_at} />}
			</td>
			<td data-label="Application">{workflow.app_id}</td>
			<td data-label="Started" class="figure">
				{ageText(workflow.created_at, Date.now())}
			</td>
			<td class="row-do">
				{!isOver(workflow) && (
					<CancelButton label={`Cancel ${name || workflowId}`} isCanceling={isCanceling} onCancel={onCancel} />
				)}
			</td>
		</tr>
	);
}

export const Progress = ({ workflow: { progress_percent: percent, state } }: { workflow: WorkflowJson }) => (
	<progress class="workflow-progress" data-state={state} max={100} value={percent} aria-label={`${percent} % done`} />
);
