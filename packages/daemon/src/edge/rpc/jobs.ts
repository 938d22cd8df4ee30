/** Jobs: submitted, looked up, cancelled, listed and watched (close mode B). */

import { createHash } from "node:crypto";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { RuntimeAiService, SubmitScenarioJobRequest } from "@nexus-stream/client/gen/nexus/runtime/v1/ai_pb";
import { LOG_KINDS, NexusError } from "@nexus-stream/protocol";
import type { Job } from "../../services/jobs/port.ts";
import type { Principal } from "../../services/kit/principal.ts";
import type { AdmittedScenario, ScenarioRequest } from "../../services/scenarios/port.ts";
import type { Services } from "../../services/services.ts";
import { jobEventMessages, jobMessage, jobStateOf } from "./job-codec.ts";
import { afterOf, checkedReason, pageSizeOf, pageTokenOf } from "./paging.ts";
import { logStream, principalOf, type RpcDeps } from "./rpc.ts";
import { scenarioRequestOf } from "./scenario-codec.ts";

export const jobMethods = ({ services, limits }: RpcDeps): Partial<ServiceImpl<typeof RuntimeAiService>> => ({
	async submitScenarioJob(request, context) {
		return { job: jobMessage(await submit(services, request, context)) };
	},
	async getScenarioJob({ jobId }, context) {
		return { job: jobMessage(await found(services, jobId, principalOf(context))) };
	},
	async cancelScenarioJob({ jobId, reason }, context) {
		return { job: jobMessage(await services.jobs.cancel(jobId, checkedReason(reason), principalOf(context))) };
	},
	async listScenarioJobs({ appId, states, pageSize, pageToken }, context) {
		const limit = pageSizeOf(pageSize, limits.listItemsMax);
		const query = {
			limit,
			states: states.map(jobStateOf),
			appId: appId || undefined,
			...pageTokenOf(pageToken, "job"),
		};
		const { jobs, queued, running } = await services.jobs.list(query, principalOf(context));
		const nextPageToken = jobs.length === limit ? jobs.at(-1)!.id : "";
		return { jobs: jobs.map(jobMessage), queued, running, nextPageToken };
	},
	async *subscribeScenarioJobEvents({ jobId, after }, context) {
		const cursor = await services.jobs.cursor(jobId, afterOf(after), principalOf(context));
		yield* logStream(context, { cursor, messages: jobEventMessages, closes: LOG_KINDS.job.closes });
	},
});

async function submit(services: Services, request: SubmitScenarioJobRequest, context: HandlerContext): Promise<Job> {
	const { idempotencyKey, retryMaxAttempts, retryBackoffMs } = request;
	const metadata = (name: string) => context.requestHeader.get(name) ?? undefined;
	const asked = { ...scenarioRequestOf(request.scenario, metadata), idempotencyKey, durable: true };
	const admitted = await services.scenarios.admit(asked, principalOf(context));
	return services.jobs.submit(await withArtifact(services, asked, admitted), {
		idempotencyKey,
		attemptsMax: retryMaxAttempts || undefined,
		backoffMs: retryBackoffMs || undefined,
	});
}

/** Audio that came in the body has to be there when the job runs. The same audio is the same artifact, so a repeated request is the same. */
async function withArtifact(
	{ artifacts }: Services,
	{ audio }: ScenarioRequest,
	admitted: AdmittedScenario,
): Promise<AdmittedScenario> {
	const { spec, appId } = admitted;
	if (spec.kind !== "transcribe" || !audio) return admitted;
	const name = `audio-${createHash("sha256").update(audio.data).digest("hex").slice(0, 16)}`;
	const { id } = await artifacts.store({ appId, name, mimeType: audio.mimeType }, audio.data);
	return { ...admitted, spec: { ...spec, artifactId: id } };
}

async function found({ jobs }: Services, id: string, principal: Principal): Promise<Job> {
	const job = await jobs.find(id, principal);
	if (!job) throw new NexusError("not_found", `there is no job ${id}`);
	return job;
}
