/** The workflows page: workflows and jobs, newest first, as they proceed. */

import { ScenarioJobState as JobState, type ScenarioJob } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { type Workflow, WorkflowState } from "@nexus-stream/client/gen/nexus/runtime/v1/workflow_pb";
import { RunLink } from "../adapters/channels.tsx";
import { formatRoute } from "../app/route.ts";
import { msOf, nameOf } from "../app/runtime.ts";
import { Elapsed } from "../ui/clock.tsx";
import { CopyButton } from "../ui/code-block.tsx";
import { Icon } from "../ui/element.tsx";
import { ageText } from "../ui/format.ts";
import { CancelButton, ListPage, ListTable, Section } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import type { ShownFile } from "./workflow.ts";
import {
	artifactPath,
	isJobOver,
	isOver,
	jobDetail,
	jobWords,
	KIND_WORDS,
	sizeText,
	stateWords,
	type WorkflowsPage,
} from "./workflows.ts";

export { openWorkflows } from "./workflows.ts";

const EXAMPLE = "nexus workflow run examples/workflows/summary.yaml";

export function Workflows({ page }: { page: WorkflowsPage }) {
	const view = page.view.value;
	return (
		<ListPage title="Workflows" view={view}>
			<Section id="workflows-title" title="Workflows">
				{view.workflows.length === 0 ? <Empty /> : <Table page={page} />}
			</Section>
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

function Table({ page: { view, actions } }: { page: WorkflowsPage }) {
	const { workflows, canceling } = view.value;
	return (
		<ListTable
			label="Workflows"
			class="workflows-list"
			rows={workflows}
			keyOf={({ workflowId }) => workflowId}
			dataOf={({ state }) => ({ "data-state": nameOf(WorkflowState, state) })}
			columns={[
				{
					name: "Name",
					cell: ({ workflowId, name }) => (
						<a class="row-link" href={formatRoute({ name: "workflow", workflowId })} title={workflowId}>
							{name || workflowId}
						</a>
					),
				},
				{ name: "State", cell: (workflow) => <WorkflowProgress workflow={workflow} /> },
				{
					name: "Nodes",
					class: "figure",
					cell: (workflow) => (
						<span>
							<Progress workflow={workflow} />
							{workflow.nodes.filter(isOver).length}/{workflow.nodes.length}
						</span>
					),
				},
				{ name: "Took", class: "figure", cell: tookOf },
				{ name: "Application", cell: ({ appId }) => appId },
				{ name: "Started", class: "figure", cell: ageOf },
				{
					name: "(Cancel)",
					class: "row-do",
					cell: (workflow) =>
						!isOver(workflow) && (
							<CancelButton
								class="quiet"
								aria-label={`Cancel ${workflow.name || workflow.workflowId}`}
								isCanceling={canceling.has(workflow.workflowId)}
								onClick={() => actions.cancelWorkflow(workflow.workflowId)}
							/>
						),
				},
			]}
		/>
	);
}

const WorkflowProgress = ({ workflow }: { workflow: Workflow }) => (
	<>
		<div class="row wrap state-line">
			<Status words={stateWords(workflow)} />
		</div>
		{workflow.state === WorkflowState.FAILED && workflow.reason !== "" && <p class="error">{workflow.reason}</p>}
	</>
);

export const Progress = ({ workflow: { progressPercent: percent, state } }: { workflow: Workflow }) => (
	<progress
		class="workflow-progress"
		data-state={nameOf(WorkflowState, state)}
		max={100}
		value={percent}
		aria-label={`${percent} % done`}
	/>
);

function Jobs({ page: { view, actions } }: { page: WorkflowsPage }) {
	const { jobs, queued, running, canceling } = view.value;
	return (
		<section aria-labelledby="jobs-title">
			<div class="row wrap section-head">
				<h2 id="jobs-title">Jobs</h2>
				<span class="figure note jobs-count">
					{running} running · {queued} queued
				</span>
			</div>
			{jobs.length === 0 ? (
				<p class="blank">
					None yet. A job is one model call that waits its turn: <code>SubmitScenarioJob</code>, or a node of a
					workflow.
				</p>
			) : (
				<ListTable
					label="Jobs"
					class="jobs-list"
					rows={jobs}
					keyOf={({ jobId }) => jobId}
					dataOf={({ state }) => ({ "data-state": nameOf(JobState, state) })}
					columns={[
						{ name: "Job", cell: (job) => <JobName job={job} /> },
						{ name: "State", cell: (job) => <JobProgress job={job} /> },
						{ name: "Took", class: "figure", cell: tookOf },
						{
							name: "Files",
							cell: ({ artifacts }) =>
								artifacts.length === 0 ? "–" : <Files artifacts={artifacts.filter(({ complete }) => complete)} />,
						},
						{ name: "Application", cell: ({ appId }) => appId },
						{ name: "Submitted", class: "figure", cell: ageOf },
						{
							name: "(Cancel)",
							class: "row-do",
							cell: (job) =>
								!isJobOver(job) && (
									<CancelButton
										class="quiet"
										aria-label={`Cancel the job ${job.jobId}`}
										isCanceling={canceling.has(job.jobId)}
										onClick={() => actions.cancelJob(job.jobId)}
									/>
								),
						},
					]}
				/>
			)}
		</section>
	);
}

const tookOf = ({ startedAt, finishedAt }: Pick<Workflow, "startedAt" | "finishedAt">) =>
	startedAt ? <Elapsed from={msOf(startedAt) ?? 0} to={msOf(finishedAt)} /> : "–";

const ageOf = ({ createdAt }: Pick<Workflow, "createdAt">) => ageText(msOf(createdAt) ?? 0, Date.now());

const JobName = ({ job: { jobId, scenarioType, connectorId, modelId, demo } }: { job: ScenarioJob }) => (
	<span title={jobId}>
		{KIND_WORDS[scenarioType]}
		<small>
			{connectorId === modelId ? modelId : `${connectorId} · ${modelId}`}
			{demo && modelId !== "demo" && " · demo"}
		</small>
	</span>
);

function JobProgress({ job }: { job: ScenarioJob }) {
	const detail = jobDetail(job);
	return (
		<>
			<div class="row wrap state-line">
				<Status words={jobWords(job)} />
				{detail !== "" && <span class="note">{detail}</span>}
				<RunLink runId={job.runId} />
				{job.workflowId !== "" && <WorkflowLink workflowId={job.workflowId} node={job.nodeId} />}
			</div>
			{job.reason !== "" && job.state !== JobState.COMPLETED && <p class="error">{job.reason}</p>}
		</>
	);
}

const WorkflowLink = ({ workflowId, node }: { workflowId: string; node: string }) => (
	<a class="mark inspect" href={formatRoute({ name: "workflow", workflowId })} title={workflowId}>
		<Icon name="graph" /> {node || "Workflow"}
	</a>
);

export const Files = ({ artifacts }: { artifacts: readonly ShownFile[] }) => (
	<span class="row wrap files">
		{artifacts.map(({ artifactId: id, name, sizeBytes }) => (
			<a class="mark" key={id} href={artifactPath(id)} download={name} title={`Download ${name}`}>
				<Icon name="file" /> {name} <small>{sizeText(Number(sizeBytes))}</small>
			</a>
		))}
	</span>
);
