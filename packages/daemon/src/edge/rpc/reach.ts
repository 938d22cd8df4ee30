/** Which remote procedures an application's token reaches: those whose answers are the application's own, and no others (Z25). */

import { NexusError } from "@nexus-stream/protocol";
import type { Principal } from "../port.ts";

const RUNTIME = "nexus.runtime.v1";

/** As `service/method`; what is not here is the owner's. */
const APP_PROCEDURES: ReadonlySet<string> = new Set([
	...proceduresOf("RuntimeAiService", [
		"ExecuteScenario",
		"StreamScenario",
		"SubmitScenarioJob",
		"GetScenarioJob",
		"CancelScenarioJob",
		"ListScenarioJobs",
		"SubscribeScenarioJobEvents",
		"GetArtifact",
	]),
	...proceduresOf("RuntimeWorkflowService", [
		"SubmitWorkflow",
		"GetWorkflow",
		"CancelWorkflow",
		"ListWorkflows",
		"SubscribeWorkflowEvents",
	]),
	...proceduresOf("RuntimeAppService", ["SendAppMessage", "AckAppMessage", "SubscribeAppMessages"]),
	...proceduresOf("RuntimeLocalService", [
		"UploadArtifact",
		"ListLocalTransfers",
		"PauseLocalTransfer",
		"ResumeLocalTransfer",
		"CancelLocalTransfer",
		"WatchLocalTransfers",
	]),
	// Shows nothing but the contract.
	"grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
	"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
]);

function proceduresOf(service: string, methods: readonly string[]): string[] {
	return methods.map((method) => `${RUNTIME}.${service}/${method}`);
}

export const reachesProcedure = ({ owner }: Pick<Principal, "owner">, procedure: string): boolean =>
	owner || APP_PROCEDURES.has(procedure);

export function requireProcedure(principal: Principal, procedure: string): void {
	if (reachesProcedure(principal, procedure)) return;
	throw new NexusError("forbidden", `an application's token does not reach ${procedure}: use the owner's`);
}
