/** The workflows page: workflows and jobs, newest first, as they proceed. */

import { type Workflow, WorkflowState } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { formatRoute } from "../app/route.ts";
import { msOf, nameOf } from "../app/runtime.ts";
import { Elapsed } from "../ui/clock.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { ageText } from "../ui/format.ts";
import { CancelButton, ListPage, ListTable } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import { Jobs } from "./jobs.tsx";
import { isOver, stateWords, type WorkflowsPage } from "./workflows.ts";

export { openWorkflows } from "./workflows.ts";

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
		<p class="row wrap command">
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
					key={workflow.workflowId}
					workflow={workflow}
					isCanceling={canceling.has(workflow.workflowId)}
					onCancel={() => actions.cancelWorkflow(workflow.workflowId)}
				/>
			))}
		</ListTable>
	);
}

function Row(props: { workflow: Workflow; isCanceling: boolean; onCancel(): void }) {
	const { workflow, isCanceling, onCancel } = props;
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
				<div class="row wrap state-line">
					<Status words={stateWords(workflow)} />
				</div>
				{state === WorkflowState.FAILED && reason !== "" && <p class="error">{reason}</p>}
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
					<CancelButton label={`Cancel ${name || workflowId}`} isCanceling={isCanceling} onCancel={onCancel} />
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
