/** The page follows a workflow: over a lost connection, with the texts of its nodes, to its end. */

import { expect, it, onTestFinished, vi } from "vitest";
import type { WorkflowEventJson, WorkflowJson, WorkflowNodeStatusJson } from "../../packages/protocol/src/protocol.ts";
import type { PageContext } from "../../packages/web/src/ui/page.ts";
import type { WorkflowView } from "../../packages/web/src/workflows/workflow.ts";
import { openWorkflow } from "../../packages/web/src/workflows/workflow-feed.ts";
import { openWorkflows } from "../../packages/web/src/workflows/workflows.ts";

const CONTEXT: PageContext = { onSignedOut() {}, schedule: (run) => run() };

const node = (state: WorkflowNodeStatusJson["state"], id = "draft"): WorkflowNodeStatusJson => ({
	node_id: id,
	kind: "AI_STREAM",
	state,
	depends_on: [],
	attempt: 1,
	run_id: `run_${id}`,
});

const workflow = (nodes: WorkflowNodeStatusJson[], state: WorkflowJson["state"] = "running"): WorkflowJson => ({
	workflow_id: "wf_1",
	app_id: "owner",
	user_id: "owner",
	name: "w",
	state,
	progress_percent: 0,
	nodes,
	created_at: 1,
});

const sse = (id: number, type: WorkflowEventJson["type"], told: WorkflowJson): string =>
	`id: ${id}\nevent: message\ndata: ${JSON.stringify({ type, at: 1, workflow: told } satisfies WorkflowEventJson)}\n\n`;

/** A response whose body a test writes. */
function opened() {
	const { readable, writable } = new TransformStream<string, string>();
	const writer = writable.getWriter();
	return {
		response: new Response(readable.pipeThrough(new TextEncoderStream()), {
			headers: { "content-type": "text/event-stream" },
		}),
		write: (text: string) => void writer.write(text).catch(() => {}),
		cut: () => void writer.abort(new Error("cut")).catch(() => {}),
	};
}

type Asked = { path: string; after: string | null };

/** A daemon of which the test answers every request. */
function daemon(answer: (url: URL) => Response | Promise<Response>): Asked[] {
	const asked: Asked[] = [];
	// After the feed has been closed, which was opened later.
	onTestFinished(() => void vi.unstubAllGlobals());
	vi.stubGlobal("document", { visibilityState: "visible", addEventListener() {}, removeEventListener() {} });
	vi.stubGlobal("fetch", async (path: string) => {
		const url = new URL(path, "http://127.0.0.1");
		asked.push({ path: url.pathname, after: url.searchParams.get("after") });
		return answer(url);
	});
	return asked;
}

function follow(): { view(): WorkflowView } {
	const { view, close } = openWorkflow("wf_1", CONTEXT);
	onTestFinished(close);
	return { view: () => view.peek() };
}

it("R4-50: resumes after the last event, and the snapshot then replaces what was shown", async () => {
	const [first, second] = [opened(), opened()];
	const streams = [first, second];
	const done = { ...node("completed"), output: { text: "all of it" } };
	let isDone = false;
	const asked = daemon(({ pathname }) => {
		if (pathname.endsWith("/wf_1/stream")) return streams.shift()!.response;
		if (pathname.startsWith("/v1/runs/")) return new Response(null, { status: 204 });
		return Response.json({ workflow: workflow([isDone ? done : node("running")]), definition: { nodes: [] } });
	});
	const { view } = follow();
	first.write(sse(4, "node_started", workflow([node("running")])));
	await vi.waitFor(() => expect(view()?.link).toBe("live"));
	first.cut();
	await vi.waitFor(() => expect(view().link).toBe("reconnecting"));
	isDone = true;
	await vi.waitFor(() => expect(asked.filter(({ path }) => path.endsWith("/wf_1/stream"))).toHaveLength(2), 15_000);
	// Connected again, although nothing has happened since.
	await vi.waitFor(() => expect(view().link).toBe("live"));
	second.write(sse(5, "completed", workflow([node("completed")], "completed")));
	await vi.waitFor(() => expect(view().link).toBe("ended"));
	expect(asked.filter(({ path }) => path.endsWith("/wf_1/stream")).map(({ after }) => after)).toEqual([null, "4"]);
	expect(view().workflow?.state).toBe("completed");
	// What the node gave is in no event: it was read for it.
	await vi.waitFor(() => expect(view().outputs).toEqual({ draft: { text: "all of it" } }));
});

it("reads the texts of few nodes at a time, because a browser has few connections", async () => {
	const events = opened();
	const runs = new Map<string, ReturnType<typeof opened>>();
	daemon(({ pathname }) => {
		if (pathname.endsWith("/wf_1/stream")) return events.response;
		const [, run] = /^\/v1\/runs\/(\w+)\/stream$/.exec(pathname) ?? [];
		if (run === undefined) return Response.json({ error: { code: "unavailable", message: "later" } }, { status: 503 });
		const stream = opened();
		runs.set(run, stream);
		return stream.response;
	});
	const { view } = follow();
	const nodes = ["a", "b", "c", "d"].map((id) => node("running", id));
	events.write(sse(1, "node_started", workflow(nodes)));
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

it("says that there is no such workflow, and does not ask for ever", async () => {
	const asked = daemon(() =>
		Response.json({ error: { code: "not_found", message: "there is no workflow wf_1" } }, { status: 404 }),
	);
	const { view } = follow();
	await vi.waitFor(() => expect(view()?.failure).toContain("no such workflow"));
	expect(view().link).toBe("refused");
	expect(asked.filter(({ path }) => path.endsWith("/stream"))).toHaveLength(1);
});

it("a job that cannot be canceled is said, and the lists are read again", async () => {
	const job = { job_id: "job_1", state: "running" };
	const asked = daemon(({ pathname }) => {
		if (pathname.endsWith("/cancel"))
			return Response.json({ error: { code: "not_found", message: "there is no job job_1" } }, { status: 404 });
		return Response.json(pathname === "/v1/jobs" ? { jobs: [job], queued: 0, running: 1 } : { workflows: [] });
	});
	const { view, actions, close } = openWorkflows(CONTEXT);
	onTestFinished(close);
	await vi.waitFor(() => expect([view.peek().isLoaded, view.peek().running]).toEqual([true, 1]));
	const before = asked.length;
	actions.cancelJob("job_1");
	expect(view.peek().canceling.has("job_1")).toBe(true);
	await vi.waitFor(() => expect(view.peek().notice?.text).toBe("there is no job job_1"));
	await vi.waitFor(() => expect(asked.slice(before).map(({ path }) => path)).toContain("/v1/jobs"));
	expect(view.peek().canceling.size).toBe(0);
});
