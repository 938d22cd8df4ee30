/** Jobs: what waits, what runs, and the files they made. */

import type { JobJson } from "../../protocol/protocol.ts";
import type { WebApp } from "../app.ts";
import { formatRoute } from "../route.ts";
import { ageText } from "../words.ts";
import { artifactPath, isOver, jobDetail, jobWords, KIND_WORDS, sizeText, type WorkflowsView } from "../workflows.ts";
import { Status } from "./channel-parts.tsx";
import { RunLink } from "./deliveries.tsx";
import { Elapsed } from "./elapsed.tsx";
import { Icon } from "./icon.tsx";
import { Scrollable } from "./scrollable.tsx";

export function Jobs({ view, app }: { view: WorkflowsView; app: WebApp }) {
	const { jobs, queued, running, canceling } = view;
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
				<Scrollable as="div" class="list-frame" label="Jobs">
					<table class="list jobs-list">
						<thead>
							<tr>
								<th>Job</th>
								<th>State</th>
								<th>Took</th>
								<th>Files</th>
								<th>Application</th>
								<th>Submitted</th>
								<th>
									<span class="sr">Cancel</span>
								</th>
							</tr>
						</thead>
						<tbody>
							{jobs.map((job) => (
								<Row key={job.job_id} job={job} canceling={canceling.has(job.job_id)} app={app} />
							))}
						</tbody>
					</table>
				</Scrollable>
			)}
		</section>
	);
}

function Row({ job, canceling, app }: { job: JobJson; canceling: boolean; app: WebApp }) {
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
					<button
						type="button"
						class="quiet"
						aria-label={`Cancel the job ${job.job_id}`}
						disabled={canceling}
						onClick={() => app.workflows()?.cancelJob(job.job_id)}
					>
						{canceling ? "Canceling…" : "Cancel"}
					</button>
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
