/** The page follows a workflow: over a lost connection, with the texts of its nodes, to its end. */

import type { JsonObject } from "@bufbuild/protobuf";
import { expect, it, onTestFinished, vi } from "vitest";
import { WorkflowState } from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import type { PageContext } from "../../packages/web/src/ui/page.ts";
import type { WorkflowView } from "../../packages/web/src/workflows/workflow.ts";
import { openWorkflow } from "../../packages/web/src/workflows/workflow-feed.ts";
import { openWorkflows } from "../../packages/web/src/workflows/workflows.ts";

const CONTEXT: PageContext = { onSignedOut() {}, schedule: (run) => run() };

const node = (state: string, node_id = "draft"): JsonObject => ({
	node_id,
	kind: "WORKFLOW_NODE_KIND_AI_STREAM",
	state: `WORKFLOW_STATE_${state}`,
	attempt: 1,
	run_id: `run_${node_id}`,
});

const workflow = (nodes: JsonObject[], state = "RUNNING"): JsonObject => ({
	workflow_id: "wf_1",
	app_id: "owner",
	name: "w",
	state: `WORKFLOW_STATE_${state}`,
	nodes,
});

/** A message of a Connect stream: flags, length, JSON. */
function envelope(message: JsonObject, flags = 0): Uint8Array {
	const text = Buffer.from(JSON.stringify(message));
	const head = Buffer.alloc(5);
	head[0] = flags;
	head.writeUInt32BE(text.length, 1);
	return Buffer.concat([head, text]);
}

const event = (sequence: number, type: string, state: JsonObject): Uint8Array =>
	envelope({ sequence: String(sequence), event_type: `WORKFLOW_EVENT_TYPE_${type}`, workflow: state });

/** The clean end of a Connect stream. */
const END = envelope({}, 2);

/** A response whose body a test writes. */
function opened(type = "application/connect+json") {
	const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
	const writer = writable.getWriter();
	return {
		response: new Response(readable, { headers: { "content-type": type } }),
		write: (bytes: Uint8Array | string) => void writer.write(Buffer.from(bytes as string)).catch(() => {}),
		close: () => void writer.close().catch(() => {}),
		cut: () => void writer.abort(new Error("cut")).catch(() => {}),
	};
}

type Asked = { path: string; after: unknown };

const refused = (code: string, message: string, status: number): Response =>
	Response.json({ code, message }, { status, headers: { "x-nexus-reason-code": `REASON_CODE_${code.toUpperCase()}` } });

/** A daemon of which the test answers every request. */
function daemon(answer: (url: URL) => Response | Promise<Response>): Asked[] {
	const asked: Asked[] = [];
	// After the feed has been closed, which was opened later.
	onTestFinished(() => void vi.unstubAllGlobals());
	vi.stubGlobal("document", { visibilityState: "visible", addEventListener() {}, removeEventListener() {} });
	vi.stubGlobal("location", { origin: "http://127.0.0.1" });
	vi.stubGlobal("fetch", async (path: string, { body }: RequestInit) => {
		const url = new URL(path, "http://127.0.0.1");
		const request =
			body instanceof Uint8Array
				? Buffer.from(body)
						.toString()
						.replace(/^[^{]*/, "")
				: "{}";
		asked.push({ path: url.pathname, after: (JSON.parse(request) as { after?: unknown }).after });
		return answer(url);
	});
	return asked;
}

const isStream = ({ pathname }: Pick<URL, "pathname">) => pathname.endsWith("/SubscribeWorkflowEvents");

function follow(): { view(): WorkflowView } {
	const { view, close } = openWorkflow("wf_1", CONTEXT);
	onTestFinished(close);
	return { view: () => view.peek() };
}

it("R4-50: resumes after the last event, and the snapshot then replaces what was shown", async () => {
	const [first, second] = [opened(), opened()];
	const streams = [first, second];
	const done = { ...node("COMPLETED"), output: { text: "all of it" } };
	let isDone = false;
	const asked = daemon((url) => {
		if (isStream(url)) return streams.shift()!.response;
		if (url.pathname.startsWith("/v1/runs/")) return new Response(null, { status: 204 });
		return Response.json({ workflow: workflow([isDone ? done : node("RUNNING")]) });
	});
	const { view } = follow();
	const streamed = () => asked.filter(({ path }) => path.endsWith("/SubscribeWorkflowEvents"));
	await vi.waitFor(() => expect(streamed()).toHaveLength(1), 15_000);
	first.write(event(4, "NODE_STARTED", workflow([node("RUNNING")])));
	await vi.waitFor(() => expect(view()?.link).toBe("live"));
	first.cut();
	await vi.waitFor(() => expect(view().link).toBe("reconnecting"));
	isDone = true;
	await vi.waitFor(() => expect(streamed()).toHaveLength(2), 15_000);
	// Connected again, although nothing has happened since.
	await vi.waitFor(() => expect(view().link).toBe("live"));
	second.write(event(5, "COMPLETED", workflow([node("COMPLETED")], "COMPLETED")));
	second.write(END);
	second.close();
	await vi.waitFor(() => expect(view().link).toBe("ended"), 5000);
	expect(streamed().map(({ after }) => after)).toEqual([undefined, "4"]);
	expect(view().workflow?.state).toBe(WorkflowState.COMPLETED);
	// The node's output is in no event: it was read for it.
	await vi.waitFor(() => expect(view().outputs).toEqual({ draft: { text: "all of it" } }));
});

it("reads the texts of few nodes at a time, because a browser has few connections", async () => {
	const events = opened();
	const runs = new Map<string, ReturnType<typeof opened>>();
	daemon((url) => {
		if (isStream(url)) return events.response;
		const [, run] = /^\/v1\/runs\/(\w+)\/stream$/.exec(url.pathname) ?? [];
		if (run === undefined) return refused("unavailable", "later", 503);
		const stream = opened("text/event-stream");
		runs.set(run, stream);
		return stream.response;
	});
	const { view } = follow();
	const nodes = ["a", "b", "c", "d"].map((id) => node("RUNNING", id));
	events.write(event(1, "NODE_STARTED", workflow(nodes)));
	await vi.waitFor(() => expect([...runs.keys()]).toEqual(["run_a", "run_b", "run_c"]));
	const frame = (id: number, type: string, more: object) =>
		`id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ type, message_id: "run_a.1", ts: 1, ...more })}\n\n`;
	const begin = { run_id: "run_a", correlation_group: "run_a", modality: "text", content_type: "text/plain" };
	runs
		.get("run_a")!
		.write(
			frame(1, "stream.begin", { ...begin, trace_id: "0".repeat(32) }) +
				frame(2, "stream.chunk", { seq_no: 1, payload: "so far", is_partial: true }),
		);
	await vi.waitFor(() => expect(view().texts.run_a?.messages[0]?.text).toBe("so far"));
	expect(runs.has("run_d")).toBe(false);
	runs
		.get("run_a")!
		.write(frame(3, "stream.end", { final: true, reason: "completed", total_chunks: 1, checksum: "crc32:00000000" }));
	await vi.waitFor(() => expect(runs.has("run_d")).toBe(true));
});

it("says that there is no such workflow, and stops asking", async () => {
	const asked = daemon(() => refused("not_found", "there is no workflow wf_1", 404));
	const { view } = follow();
	await vi.waitFor(() => expect(view()?.failure).toContain("no such workflow"));
	expect(view().link).toBe("refused");
	expect(asked.filter(({ path }) => path.endsWith("/SubscribeWorkflowEvents"))).toHaveLength(1);
});

it("a job that cannot be canceled is said, and the lists are read again", async () => {
	const job = { job_id: "job_1", state: "SCENARIO_JOB_STATE_RUNNING" };
	const asked = daemon(({ pathname }) => {
		if (pathname.endsWith("/CancelScenarioJob")) return refused("not_found", "there is no job job_1", 404);
		return Response.json(pathname.endsWith("/ListScenarioJobs") ? { jobs: [job], running: 1 } : {});
	});
	const { view, actions, close } = openWorkflows(CONTEXT);
	onTestFinished(close);
	await vi.waitFor(() => expect([view.peek().isLoaded, view.peek().running]).toEqual([true, 1]));
	const before = asked.length;
	actions.cancelJob("job_1");
	expect(view.peek().canceling.has("job_1")).toBe(true);
	await vi.waitFor(() => expect(view.peek().notice?.text).toBe("there is no job job_1"));
	await vi.waitFor(() =>
		expect(asked.slice(before).map(({ path }) => path)).toContain(
			"/nexus.runtime.v1.RuntimeAiService/ListScenarioJobs",
		),
	);
	expect(view.peek().canceling.size).toBe(0);
});
