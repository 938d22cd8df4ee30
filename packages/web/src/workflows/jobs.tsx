/** The list of jobs with their states and files. */

import type { JobJson } from "@nexus-stream/protocol";
import { RunLink } from "../adapters/channel-parts.tsx";
import { formatRoute } from "../app/route.ts";
import { Elapsed } from "../ui/clock.tsx";
import { ageText } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { CancelButton, ListTable } from "../ui/list-page.tsx";
import { Status } from "../ui/status.tsx";
import { artifactPath, isOver, jobDetail, jobWords, KIND_WORDS, sizeText, type WorkflowsPage } from "./workflows.ts";

const COLUMNS = ["Job", "State", "Took", "Files", "Application", "Submitted", "(Cancel)"];

export function Jobs({ page: { view, actions } }: { page: WorkflowsPage }) {
	const { jobs, queued, running, canceling } = view.value;
	return (
		<section aria-labelledby="jobs-title">
			<div class="section-head">
				<h2 id="jobs-title">Jobs</h2>
				<span class="note jobs-count">
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
							key={job.job_id}
							job={job}
							isCanceling={canceling.has(job.job_id)}
							onCancel={() => actions.cancelJob(job.job_id)}
						/>
					))}
				</ListTable>
			)}
		</section>
	);
}

function Row({ job, isCanceling, onCancel }: { job: JobJson; isCanceling: boolean; onCancel(): void }) {
	const detail = jobDetail(job);
	return (
		<tr data-state={job.state}>
			<td data-label="Job">
				<span title={job.job_id}>
					{KIND_WORDS[job.kind]}
					<small>
						{job.connector_id === job.model ? job.model : `${job.connector_id} · ${job.model}`}
						{job.demo && job.model !== "demo" && " · demo"}
					</small>
				</span>
			</td>
			<td data-label="State">
				<div class="state-line">
					<Status words={jobWords(job)} />
					{detail !== "" && <span class="note">{detail}</span>}
					<RunLink runId={job.run_id} />
					{job.workflow_id !== undefined && <WorkflowLink workflowId={job.workflow_id} node={job.node_id} />}
				</div>
				{job.error !== undefined && job.state !== "completed" && <p class="account-error">{job.error.message}</p>}
			</td>
			<td data-label="Took" class="figure">
				{job.started_at === undefined ? "–" : <Elapsed from={job.started_at} to={job.finished_at} />}
			</td>
			<td data-label="Files">
				{job.artifacts.length === 0 ? "–" : <Files artifacts={job.artifacts.filter(({ complete }) => complete)} />}
			</td>
			<td data-label="Application">{job.app_id}</td>
			<td data-label="Submitted" class="figure">
				{ageText(job.created_at, Date.now())}
			</td>
			<td class="row-do">
				{!isOver(job) && (
					<CancelButton label={`Cancel the job ${job.job_id}`} isCanceling={isCanceling} onCancel={onCancel} />
				)}
			</td>
		</tr>
	);
}

const WorkflowLink = ({ workflowId, node }: { workflowId: string; node: string | undefined }) => (
	<a class="inspect" href={formatRoute({ name: "workflow", workflowId })} title={workflowId}>
		<Icon name="graph" /> {node ?? "Workflow"}
	</a>
);

interface FileJson {
	artifact_id: string;
	name: string;
	size_bytes: number;
}

export const Files = ({ artifacts }: { artifacts: readonly FileJson[] }) => (
	<span class="files">
		{artifacts.map(({ artifact_id: id, name, size_bytes: bytes }) => (
			<a key={id} href={artifactPath(id)} download={name} title={`Download ${name}`}>
				<Icon name="file" /> {name} <small>{sizeText(bytes)}</small>
			</a>
		))}
	</span>
);
