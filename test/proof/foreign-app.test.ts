/** An application's token against every remote procedure and every route, with what another application really has: nothing is there for it. */

import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DescMethod, JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WorkflowNodeKind, WorkflowState } from "../../packages/client/src/gen/nexus/runtime/v1/workflow_pb.ts";
import { ROUTES } from "../../packages/daemon/src/edge/api/api.ts";
import type { Route } from "../../packages/daemon/src/edge/api/resource.ts";
import { type Daemon, startDaemon } from "../../packages/daemon/src/runtime/runtime.ts";
import { silentLog } from "../../packages/protocol/src/log.ts";
import { methods, procedureOf } from "../edge/grpc/descriptors.ts";
import { errorOf, readStream, statusOf } from "../edge/grpc/kit.ts";
import { removeFolder } from "../runtime/folder.ts";
import { until } from "../until.ts";
import { type Clients, clientsOf, textOf } from "./runtime.ts";

const OWNER_TOKEN = "the-owner's-token-of-this-proof";
/** In everything that the other application says, names and keeps. */
const SECRET = "xyzzy-theirs";
const ENDLESS = "/demo tokens=90 rate=400 stall_after=40";

/** Something of each kind. */
interface Things {
	appId: string;
	runId: string;
	jobId: string;
	workflowId: string;
	artifactId: string;
	/** An upload that is not complete. */
	uploadId: string;
	transferId: string;
	messageId: string;
	connectorId: string;
	realtimeSessionId: string;
	sessionRunId: string;
	memoryId: string;
}

const folder = mkdtempSync(join(tmpdir(), "nexus-foreign-"));
let daemon: Daemon;
let owner: Clients;
let mine: Clients;
let myBearer: { authorization: string };
let own: Things;
let theirs: Things;
/** Ids of nothing, of the same form. */
let nothing: Things;

async function post<T>(path: string, body: object): Promise<T> {
	const answer = await fetch(daemon.url + path, {
		method: "POST",
		headers: { authorization: `Bearer ${OWNER_TOKEN}`, "content-type": "application/json" },
		body: JSON.stringify(body),
	});
	expect(answer.ok, `${path}: ${answer.status}`).toBe(true);
	return (await answer.json()) as T;
}

const node = (nodeId: string, kind: WorkflowNodeKind, config: JsonObject = {}) => ({ nodeId, kind, config });
const piece = (appId: string, sizeBytes: bigint) => ({
	appId,
	name: `${SECRET}.txt`,
	mimeType: "text/plain",
	sizeBytes,
	offset: 0n,
	chunk: Buffer.from("hi"),
});

async function make(appId: string, { ai, workflows, local, apps }: Clients): Promise<Things> {
	const connectorId = `connector-${appId}`;
	await owner.connectors.createConnector({ connectorId, appId, providerType: "demo" });
	const said = `/demo tokens=4 rate=0 ${SECRET}`;
	const { runId } = await ai.executeScenario({ scenario: textOf(said, { appId }) });
	const { job } = await ai.submitScenarioJob({ scenario: textOf(ENDLESS, { appId }) });
	const nodes = [node("a", WorkflowNodeKind.AI_STREAM, { prompt: ENDLESS })];
	const { workflow } = await workflows.submitWorkflow({ appId, definition: { name: SECRET, nodes } });
	const { artifact } = await local.uploadArtifact(piece(appId, 2n));
	const upload = await local.uploadArtifact(piece(appId, 5n));
	const message = { fromAppId: appId, toAppId: appId, messageType: SECRET, payload: Buffer.from(SECRET) };
	const { messageId } = await apps.sendAppMessage({ ...message, requireAck: true });
	const { realtimeSessionId } = await owner.realtime.openRealtimeSession({ appId });
	const { runId: sessionRunId } = await owner.agents.sendMessage({ session: `s-${appId}`, text: ENDLESS });
	const { item } = await owner.memory.retain({ bank: "agent:a", text: `${SECRET} of ${appId}` });
	return {
		appId,
		runId,
		jobId: job!.jobId,
		workflowId: workflow!.workflowId,
		artifactId: artifact!.artifactId,
		uploadId: upload.artifact!.artifactId,
		transferId: upload.transferId,
		messageId,
		connectorId,
		realtimeSessionId,
		sessionRunId,
		memoryId: item!.memoryId,
	};
}

beforeAll(async () => {
	daemon = await startDaemon({
		data: folder,
		port: 0,
		token: OWNER_TOKEN,
		engine: "demo",
		logger: silentLog,
		stopDeadlineMs: 500,
		memory: { enabled: true },
	});
	owner = clientsOf(daemon.grpc!, OWNER_TOKEN);
	const [my, their] = await Promise.all(
		["mine", "theirs"].map(async (app_id) => (await post<{ token: string }>("/v1/apps", { app_id })).token),
	);
	mine = clientsOf(daemon.grpc!, my);
	myBearer = { authorization: `Bearer ${my}` };
	own = await make("mine", mine);
	theirs = await make("theirs", clientsOf(daemon.grpc!, their));
	nothing = Object.fromEntries(
		Object.entries(theirs).map(([name, id]) => [name, (id as string).replace(/[^_-]{1,8}$/, "ZZZZZZZZ")]),
	) as unknown as Things;
	nothing.appId = "theirs";
});

afterAll(async () => {
	await daemon?.close();
	removeFolder(folder);
});

interface Row {
	/** The request with another application's ids. */
	asks?(tables: Things): object;
	/** Names the other application outright: PERMISSION_DENIED. */
	names?(tables: Things): object;
	/** The same with its own ids, which works. Left out: the same request. */
	works?(tables: Things): object;
}

/** The owner's alone, whatever is asked. */
type OwnersRow = { owners(tables: Things): object };
/** Shows nothing but the daemon itself. */
type OpenRow = "open";

const scenario = (connectorId: string) => ({ scenario: textOf("/demo tokens=1 rate=0", { appId: "", connectorId }) });
const naming = ({ appId }: Things) => ({ scenario: textOf("/demo tokens=1 rate=0", { appId }) });
const jobOf = ({ jobId }: Things) => ({ jobId });
const workflowOf = ({ workflowId }: Things) => ({ workflowId });
const transferOf = ({ transferId }: Things) => ({ transferId });
const appOf = ({ appId }: Things) => ({ appId });
const connectorOf = ({ connectorId }: Things) => ({ connectorId });
const realtimeOf = ({ realtimeSessionId }: Things) => ({ realtimeSessionId });
const none = () => ({});
const withConnector: Row = { asks: ({ connectorId }) => scenario(connectorId), names: naming };
const noop = [node("a", WorkflowNodeKind.CONTROL_NOOP)];

const ROWS: Readonly<Record<string, Row | OwnersRow | OpenRow>> = {
	"RuntimeAiService/ExecuteScenario": withConnector,
	"RuntimeAiService/StreamScenario": { ...withConnector, works: ({ runId }) => ({ runId }) },
	"RuntimeAiService/SubmitScenarioJob": withConnector,
	"RuntimeAiService/GetScenarioJob": { asks: jobOf },
	"RuntimeAiService/SubscribeScenarioJobEvents": { asks: jobOf },
	"RuntimeAiService/ListScenarioJobs": { names: appOf, works: none },
	"RuntimeAiService/CancelScenarioJob": { asks: jobOf },
	"RuntimeAiService/GetArtifact": { asks: ({ artifactId }) => ({ artifactId }) },
	"RuntimeWorkflowService/SubmitWorkflow": {
		names: ({ appId }) => ({ appId, definition: { name: "w", nodes: noop } }),
		works: () => ({ definition: { name: "w", nodes: noop } }),
	},
	"RuntimeWorkflowService/GetWorkflow": { asks: workflowOf },
	"RuntimeWorkflowService/SubscribeWorkflowEvents": { asks: workflowOf },
	"RuntimeWorkflowService/ListWorkflows": { names: appOf, works: none },
	"RuntimeWorkflowService/CancelWorkflow": { asks: workflowOf },
	"RuntimeAppService/SendAppMessage": {
		names: ({ appId }) => ({ fromAppId: appId, toAppId: "mine", messageType: "t", payload: Buffer.from("x") }),
		// To write to another application is what messages are for.
		works: () => ({ toAppId: "theirs", messageType: "t", payload: Buffer.from("x") }),
	},
	"RuntimeAppService/AckAppMessage": {
		asks: ({ messageId }) => ({ messageId }),
		names: ({ messageId }) => ({ appId: "theirs", messageId }),
	},
	"RuntimeAppService/ListApps": { owners: none },
	"RuntimeAppService/AddApp": { owners: () => ({ appId: "another" }) },
	"RuntimeAppService/ClearApp": { owners: appOf },
	"RuntimeAppService/RemoveApp": { owners: appOf },
	"RuntimeAppService/SubscribeAppMessages": { names: appOf, works: () => ({ after: 0n }) },
	"RuntimeLocalService/UploadArtifact": {
		asks: ({ uploadId }) => ({ artifactId: uploadId, offset: 2n, chunk: Buffer.from("h") }),
		names: ({ appId }) => piece(appId, 2n),
	},
	"RuntimeLocalService/ListLocalTransfers": { names: appOf, works: none },
	"RuntimeLocalService/WatchLocalTransfers": { names: appOf, works: none },
	"RuntimeLocalService/PauseLocalTransfer": { asks: transferOf },
	"RuntimeLocalService/ResumeLocalTransfer": { asks: transferOf },
	"RuntimeLocalService/CancelLocalTransfer": { asks: transferOf },
	"RuntimeRealtimeService/OpenRealtimeSession": { owners: appOf },
	"RuntimeRealtimeService/AppendRealtimeInput": { owners: (ids) => ({ ...realtimeOf(ids), text: "x", commit: true }) },
	"RuntimeRealtimeService/ReadRealtimeEvents": { owners: (ids) => ({ ...realtimeOf(ids), after: 0n }) },
	"RuntimeRealtimeService/CloseRealtimeSession": { owners: realtimeOf },
	"RuntimeAuditService/ListAuditEvents": { owners: none },
	"RuntimeAuditService/ExportAuditEvents": { owners: none },
	"RuntimeAuditService/GetRuntimeHealth": { owners: none },
	"RuntimeAuditService/SubscribeRuntimeHealthEvents": { owners: none },
	"RuntimeAuditService/ListAIProviderHealth": { owners: none },
	"RuntimeAuditService/SubscribeAIProviderHealthEvents": { owners: none },
	"RuntimeAccountService/ListAccounts": { owners: none },
	"RuntimeAccountService/SubscribeAccountSessionEvents": { owners: none },
	"RuntimeMemoryService/Retain": { owners: () => ({ bank: "agent:a", text: "x" }) },
	"RuntimeMemoryService/Recall": { owners: () => ({ query: SECRET }) },
	"RuntimeMemoryService/ListMemory": { owners: () => ({ query: SECRET }) },
	"RuntimeMemoryService/ListMemoryChanges": { owners: none },
	"RuntimeMemoryService/Forget": { owners: ({ memoryId }) => ({ memoryId }) },
	"RuntimeMemoryService/SubscribeMemoryEvents": { owners: () => ({ after: 0n }) },
	"RuntimeAgentService/ListAgents": { owners: none },
	"RuntimeAgentService/SendMessage": { owners: () => ({ session: "s-theirs", text: "x" }) },
	"RuntimeAgentService/AbortRun": { owners: ({ sessionRunId: runId }) => ({ runId }) },
	"RuntimeAgentService/SubscribeAgentEvents": { owners: () => ({ after: 0n }) },
	"RuntimeConnectorService/CreateConnector": { owners: () => ({ connectorId: "new", providerType: "demo" }) },
	"RuntimeConnectorService/GetConnector": { owners: connectorOf },
	"RuntimeConnectorService/ListConnectors": { owners: none },
	"RuntimeConnectorService/UpdateConnector": { owners: (ids) => ({ ...connectorOf(ids), enabled: false }) },
	"RuntimeConnectorService/DeleteConnector": { owners: connectorOf },
	"RuntimeConnectorService/TestConnector": { owners: connectorOf },
	"Health/Check": "open",
	"Health/List": "open",
	"Health/Watch": "open",
	"ServerReflection/ServerReflectionInfo": "open",
};

const nameOf = ({ parent, name }: DescMethod) => `${parent.name}/${name}`;

/** Its refusal, or the first message that it shows. Streams are closed then. */
async function call(method: DescMethod, input: object): Promise<{ error?: ConnectError; shown?: string }> {
	const show = (message: unknown) =>
		JSON.stringify(message, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
	const { transport } = mine;
	try {
		if (method.methodKind === "unary") {
			const { message } = await transport.unary(method as never, undefined, undefined, undefined, input as never);
			return { shown: show(message) };
		}
		const abort = new AbortController();
		const inputs = (async function* () {
			yield input;
		})();
		const { message } = await transport.stream(method as never, abort.signal, undefined, undefined, inputs as never);
		for await (const first of message) {
			abort.abort();
			return { shown: show(first) };
		}
		return { shown: "" };
	} catch (cause) {
		return { error: ConnectError.from(cause) };
	}
}

const withoutIds = (text: string, tables: Things) =>
	Object.values<string>(tables as never)
		.toSorted((one, other) => other.length - one.length)
		.reduce((rest, id) => rest.replaceAll(id, "…"), text);

function expectNoLeak(text: string, asked: object): void {
	expect(text).not.toContain(SECRET);
	const said = JSON.stringify(asked, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value));
	for (const id of Object.values<string>(theirs as never)) if (!said.includes(id)) expect(text).not.toContain(id);
}

const rowsOf = <R>(pick: (row: (typeof ROWS)[string]) => R | undefined) =>
	methods.flatMap((method) => {
		const row = ROWS[nameOf(method)];
		const found = row && pick(row);
		return found ? [[nameOf(method), method, found] as const] : [];
	});

describe("Z25: an application's token over gRPC", () => {
	it("every procedure has its row, and every row is one", () => {
		expect(Object.keys(ROWS).toSorted()).toEqual([...new Set(methods.map(nameOf))].toSorted());
		expect(new Set(methods.map(procedureOf)).size).toBe(methods.length);
	});

	it.each(rowsOf((row) => (row !== "open" && "owners" in row ? row.owners : undefined)))(
		"%s is the owner's",
		async (_, method, input) => {
			const { error } = await call(method, input(theirs));
			expect(statusOf(error)).toEqual({ code: "PermissionDenied", reason: "REASON_CODE_FORBIDDEN" });
			expectNoLeak(error!.message, {});
		},
	);

	it.each(rowsOf((row) => (row !== "open" && "asks" in row ? row.asks : undefined)))(
		"%s does not find another's, and says no more than of nothing",
		async (_, method, input) => {
			const asked = input(theirs);
			const { error } = await call(method, asked);
			expect([error && Code[error.code]]).toEqual(["NotFound"]);
			expectNoLeak(error!.message, asked);
			const { error: unknown } = await call(method, input(nothing));
			expect(statusOf(error)).toEqual(statusOf(unknown));
			expect(withoutIds(error!.message, theirs)).toBe(withoutIds(unknown!.message, nothing));
		},
	);

	it.each(rowsOf((row) => (row !== "open" && "names" in row ? row.names : undefined)))(
		"%s may not name another",
		async (_, method, input) => {
			const { error } = await call(method, input(theirs));
			expect(error && Code[error.code]).toBe("PermissionDenied");
			expectNoLeak(error!.message, input(theirs));
		},
	);

	it("another's recording is not transcribed, another's run is not read, and another's key finds nothing", async () => {
		const transcribe = {
			head: { connectorId: "default" },
			spec: { case: "speechTranscribe" as const, value: { artifactId: theirs.artifactId, mimeType: "audio/wav" } },
		};
		expect(statusOf(await errorOf(mine.ai.executeScenario({ scenario: transcribe })))?.code).toBe("NotFound");
		const { error } = await readStream(mine.ai.streamScenario({ runId: theirs.runId }));
		expect(statusOf(error)?.code).toBe("NotFound");
		const session = await readStream(mine.ai.streamScenario({ runId: theirs.sessionRunId }));
		expect(statusOf(session.error)?.code).toBe("NotFound");
		const keyed = { scenario: textOf("/demo tokens=1 rate=0", { appId: "theirs" }), idempotencyKey: "the same" };
		const { runId } = await owner.ai.executeScenario(keyed);
		const again = await mine.ai.executeScenario({ ...keyed, scenario: scenario("default").scenario });
		expect(again.runId).not.toBe(runId);
	});

	it("a workflow reaches nothing that its application does not", async () => {
		const submit = (one: ReturnType<typeof node>) =>
			mine.workflows.submitWorkflow({ definition: { name: "w", nodes: [one] } });
		const agent = node("a", WorkflowNodeKind.AGENT_RUN, { session: "s-theirs", text: "x" });
		expect(statusOf(await errorOf(submit(agent)))?.code).toMatch(/PermissionDenied|InvalidArgument/);
		const call = node("a", WorkflowNodeKind.AI_STREAM, { prompt: "x", connector_id: theirs.connectorId });
		const refused = await errorOf(submit(call));
		expect(statusOf(refused)?.code).toBe("InvalidArgument");
		expect(refused!.message).toMatch(/there is no/);
		expectNoLeak(refused!.message, call);
		const transcribe = node("a", WorkflowNodeKind.AI_STT, { artifact_id: theirs.artifactId });
		const { workflow } = await submit(transcribe);
		const { workflowId } = workflow!;
		const { messages } = await readStream(mine.workflows.subscribeWorkflowEvents({ workflowId }));
		const { state, nodes } = messages.at(-1)!.workflow!;
		expect(state).toBe(WorkflowState.FAILED);
		expect(nodes[0]!.reason).toMatch(/there is no/);
		expectNoLeak(nodes[0]!.reason, transcribe);
	});
});

/** The values of the names in a path. */
const PATHS: Readonly<Record<string, (tables: Things) => string>> = {
	job: ({ jobId }) => jobId,
	workflow: ({ workflowId }) => workflowId,
	artifact: ({ artifactId }) => artifactId,
	run: ({ sessionRunId }) => sessionRunId,
	session: ({ appId }) => `s-${appId}`,
	connector: ({ connectorId }) => connectorId,
	app: ({ appId }) => appId,
	id: ({ memoryId }) => memoryId,
	event: () => "evt_1",
	grant: () => "grant_1",
	channel: () => "telegram",
	account: () => "main",
	sender: () => "1",
	code: () => "ABCD",
};

const routes = Object.entries<Route>(ROUTES);
const nameIn = (path: string) => /\{(\w+)\}/.exec(path)?.[1];

async function request({ method, path }: Route, tables: Things, body: object = {}) {
	const at = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(PATHS[name]!(tables)));
	const answer = await fetch(daemon.url + at, {
		method,
		headers: { ...myBearer, ...(method !== "GET" && { "content-type": "application/json" }) },
		body: method !== "GET" && method !== "DELETE" ? JSON.stringify(body) : undefined,
	});
	// A stream has no end: what comes first is looked at.
	const first = await answer.body?.getReader().read();
	return { status: answer.status, text: Buffer.from(first?.value ?? []).toString() };
}

describe("Z25: an application's token over HTTP", () => {
	it("every name in a path is known", () => {
		const names = routes.flatMap(([, { path }]) => [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!));
		expect([...new Set(names)].filter((name) => !PATHS[name])).toEqual([]);
	});

	it.each(routes.filter(([, { auth, apps }]) => auth && !apps))("%s is the owner's", async (_, route) => {
		const { status, text } = await request(route, theirs);
		expect(status).toBe(403);
		expectNoLeak(text, {});
	});

	it.each(routes.filter(([, { apps, path }]) => apps && nameIn(path)))(
		"%s does not find another's, and says no more than of nothing",
		async (_, route) => {
			const { status, text } = await request(route, theirs);
			expect(status).toBe(404);
			const unknown = await request(route, nothing);
			expect(unknown.status).toBe(404);
			expect(withoutIds(text, theirs)).toBe(withoutIds(unknown.text, nothing));
		},
	);

	it.each(routes.filter(([, { apps, path }]) => apps && !nameIn(path)))(
		"%s may not name another, and shows nothing of it",
		async (_, route) => {
			const definition = { nodes: [{ id: "a", kind: "CONTROL_NOOP" }] };
			const named = await request(
				{ ...route, path: `${route.path}${route.method === "GET" ? "?app_id=theirs" : ""}` },
				theirs,
				{
					app_id: "theirs",
					definition,
				},
			);
			expect(named.status).toBe(403);
			const { status, text } = await request(route, own, { definition });
			expect(status).toBeLessThan(300);
			for (const id of [theirs.jobId, theirs.workflowId]) expect(text).not.toContain(id);
		},
	);
});

describe("Z25: what is its own works", () => {
	const works = rowsOf((row) => (row !== "open" && !("owners" in row) ? (row.works ?? row.asks) : undefined));
	/** Ends what others still have to look at. */
	const isLast = (name: string) => /Cancel|Ack|UploadArtifact/.test(name);

	it.each(routes.filter(([, { apps, path, method }]) => apps && nameIn(path) && method === "GET"))(
		"%s",
		async (_, route) => {
			expect((await request(route, own)).status).toBe(200);
		},
	);

	it.each([...works.filter(([name]) => !isLast(name)), ...works.filter(([name]) => isLast(name))])(
		"%s",
		async (_, method, input) => {
			const { error, shown } = await call(method, input(own));
			expect(error).toBeUndefined();
			// Its own workflows have named the other two.
			const { appId: _app, connectorId: _connector, artifactId: _artifact, ...unnamed } = theirs;
			for (const id of Object.values(unnamed)) expect(shown).not.toContain(id);
		},
	);

	it("and what the other has is untouched", async () => {
		const { job } = await owner.ai.getScenarioJob({ jobId: theirs.jobId });
		expect(job!.finishedAt).toBeUndefined();
		const { workflow } = await owner.workflows.getWorkflow({ workflowId: theirs.workflowId });
		expect(workflow!.finishedAt).toBeUndefined();
		const { connector } = await owner.connectors.getConnector({ connectorId: theirs.connectorId });
		expect(connector!.enabled).toBe(true);
		await until(
			"their run continues",
			async () =>
				(
					await fetch(`${daemon.url}/v1/runs/${theirs.sessionRunId}`, {
						headers: { authorization: `Bearer ${OWNER_TOKEN}` },
					})
				).ok,
		);
		const { messages } = await readStream(
			owner.apps.subscribeAppMessages({ appId: "theirs", after: 0n }, { timeoutMs: 500 }),
		);
		expect(messages.map(({ message }) => message!.messageType)).toEqual([SECRET, "t"]);
	});
});
