/** The list of jobs with their states and files. */

import { ScenarioJobState as JobState, type ScenarioJob } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { RunLink } from "../adapters/channel-parts.tsx";
import { formatRoute } from "../app/route.ts";
import { msOf, nameOf } from "../app/runtime.ts";
import { Elapsed } from "../ui/clock.tsx";
import { ageText } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { CancelButton, ListTable } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import type { ShownFile } from "./workflow.ts";
import { artifactPath, isJobOver, jobDetail, jobWords, KIND_WORDS, sizeText, type WorkflowsPage } from "./workflows.ts";

const COLUMNS = ["Job", "State", "Took", "Files", "Application", "Submitted", "(Cancel)"];

export function Jobs({ page: { view, actions } }: { page: WorkflowsPage }) {
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
				<ListTable label="Jobs" class="jobs-list" columns={COLUMNS}>
					{jobs.map((job) => (
						<Row
							key={job.jobId}
							job={job}
							isCanceling={canceling.has(job.jobId)}
							onCancel={() => actions.cancelJob(job.jobId)}
						/>
					))}
				</ListTable>
			)}
		</section>
	);
}

function Row({ job, isCanceling, onCancel }: { job: ScenarioJob; isCanceling: boolean; onCancel(): void }) {
	const detail = jobDetail(job);
	const startedAt = msOf(job.startedAt);
	return (
		<tr data-state={nameOf(JobState, job.state)}>
			<td data-label="Job">
				<span title={job.jobId}>
					{KIND_WORDS[job.scenarioType]}
					<small>
						{job.connectorId === job.modelId ? job.modelId : `${job.connectorId} · ${job.modelId}`}
						{job.demo && job.modelId !== "demo" && " · demo"}
					</small>
				</span>
			</td>
			<td data-label="State">
				<div class="row wrap state-line">
					<Status words={jobWords(job)} />
					{detail !== "" && <span class="note">{detail}</span>}
					<RunLink runId={job.runId} />
					{job.workflowId !== "" && <WorkflowLink workflowId={job.workflowId} node={job.nodeId} />}
				</div>
				{job.reason !== "" && job.state !== JobState.COMPLETED && <p class="error">{job.reason}</p>}
			</td>
			<td data-label="Took" class="figure">
				{startedAt === undefined ? "–" : <Elapsed from={startedAt} to={msOf(job.finishedAt)} />}
			</td>
			<td data-label="Files">
				{job.artifacts.length === 0 ? "–" : <Files artifacts={job.artifacts.filter(({ complete }) => complete)} />}
			</td>
			<td data-label="Application">{job.appId}</td>
			<td data-label="Submitted" class="figure">
				{ageText(msOf(job.createdAt) ?? 0, Date.now())}
			</td>
			<td class="row-do">
				{!isJobOver(job) && (
					<CancelButton label={`Cancel the job ${job.jobId}`} isCanceling={isCanceling} onCancel={onCancel} />
				)}
			</td>
		</tr>
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
