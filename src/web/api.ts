/** The daemon's HTTP API as the page uses it: typed answers, one error for everything that goes wrong. */

import { type ErrorCode, isErrorCode, NexusError, type Usage } from "../protocol/protocol.ts";
import type {
	AccountRow,
	DeliveryRow,
	DeliveryState,
	Disposition,
	EventRow,
	FaultKind,
	LabStateRow,
	PairingRow,
	TraceRow,
} from "./api-channels.ts";

export interface SessionRow {
	session: string;
	created_at: number;
	updated_at: number;
	turns: number;
	title: string;
	live_run_id?: string;
}

export interface AttachmentRow {
	name: string;
	content_type: string;
	bytes: number;
}

export interface MessageRow {
	role: "user" | "assistant";
	text: string;
	message_id?: string;
	event_id?: string;
	attachments?: AttachmentRow[];
}

export interface ToolCallRow {
	call_id: string;
	name: string;
	args?: unknown;
	status: string;
	summary?: string;
	result?: unknown;
	/** Index into the messages. */
	message?: number;
	started_at?: number;
	ended_at?: number;
}

export interface RunRow {
	run_id: string;
	session: string;
	engine: string;
	status: "running" | "stopping" | "completed" | "aborted" | "failed";
	reason?: string;
	error?: { code: string; message: string };
	started_at: number;
	ended_at?: number;
	first_token_ms?: number;
	usage?: Usage;
	messages: MessageRow[];
	tool_calls?: ToolCallRow[];
	/** The way of its message through the pipeline, once it has settled. */
	trace?: TraceRow;
	frames_available?: boolean;
}

export interface QueuedRow {
	event_id: string;
	text: string;
	received_at: number;
}

export interface TurnsPage {
	turns: RunRow[];
	live: RunRow | null;
	queued: QueuedRow[];
	stream_offset: number;
}

export interface Accepted {
	event_id: string;
	disposition: Disposition;
	run_id?: string;
}

export interface OutgoingAttachment {
	name: string;
	content_type: string;
	data: string;
}

const path = encodeURIComponent;

export const api = {
	sessions: (query: { limit: number; before?: number | undefined }) =>
		call<{ sessions: SessionRow[]; engine?: string }>("GET", `/v1/sessions?${params(query)}`),
	turns: (session: string, query: { limit: number; before?: string }) =>
		call<TurnsPage>("GET", `/v1/sessions/${path(session)}/turns?${params(query)}`),
	run: (run: string) => call<RunRow>("GET", `/v1/runs/${path(run)}`),
	frames: (run: string, query: { after: number; limit: number }) =>
		request("GET", `/v1/runs/${path(run)}/frames?${params(query)}`).then((response) => response.text()),
	send: (session: string, body: { text: string; idempotency_key: string; attachments?: OutgoingAttachment[] }) =>
		call<Accepted>("POST", `/v1/sessions/${path(session)}/messages`, body),
	abort: (run: string) => call<{ run_id: string; status: string }>("POST", `/v1/runs/${path(run)}/abort`),
	events: (query: { session?: string; limit: number }) =>
		call<{ events: EventRow[] }>("GET", `/v1/events?${params(query)}`),
	accounts: () => call<{ now: number; accounts: AccountRow[] }>("GET", "/v1/accounts"),
	checkAccount: (channel: string, account: string) =>
		call<{ ok: boolean; detail: string }>("POST", `/v1/accounts/${path(channel)}/${path(account)}/health`),
	deliveries: (query: { run?: string; channel?: string; state?: DeliveryState; limit: number }) =>
		call<{ deliveries: DeliveryRow[] }>("GET", `/v1/deliveries?${params(query)}`),
	pairings: () => call<{ pairings: PairingRow[] }>("GET", "/v1/pairings"),
	approve: (code: string) => call<PairingRow>("POST", `/v1/pairings/${path(code)}/approve`),
	lab: (body: { text: string; channels: readonly string[] }) => call<{ run_id: string }>("POST", "/v1/lab", body),
	labState: () => call<LabStateRow>("GET", "/v1/lab/state"),
	labFault: (body: { channel: string; kind: FaultKind; count: number }) => call("POST", "/v1/lab/fault", body),
	signIn: (body: { code: string } | { token: string }) => request("POST", "/v1/sign-in", body).then(() => undefined),
	sessionStreamUrl: (session: string) => `/v1/sessions/${path(session)}/stream`,
	runStreamUrl: (run: string) => `/v1/runs/${path(run)}/stream`,
};

function params(query: Record<string, string | number | undefined>): string {
	const pairs = Object.entries(query).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]]));
	return new URLSearchParams(pairs).toString();
}

async function call<T>(method: string, url: string, body?: unknown): Promise<T> {
	const response = await request(method, url, body);
	return (await response.json()) as T;
}

async function request(method: string, url: string, body?: unknown): Promise<Response> {
	let response: Response;
	try {
		response = await fetch(url, {
			method,
			credentials: "same-origin",
			cache: "no-store",
			headers: body === undefined ? {} : { "content-type": "application/json" },
			body: body === undefined ? null : JSON.stringify(body),
		});
	} catch (cause) {
		throw new NexusError("unavailable", "The daemon cannot be reached.", { cause });
	}
	if (!response.ok) throw await errorOf(response);
	return response;
}

const CODE_OF_STATUS: Record<number, ErrorCode> = {
	401: "unauthenticated",
	403: "forbidden",
	404: "not_found",
	409: "conflict",
	410: "expired",
};

async function errorOf(response: Response): Promise<NexusError> {
	const fallback = CODE_OF_STATUS[response.status] ?? (response.status >= 500 ? "unavailable" : "invalid");
	const text = await response.text();
	try {
		const { error } = JSON.parse(text) as { error: { code: string; message: string } };
		return new NexusError(isErrorCode(error.code) ? error.code : fallback, error.message);
	} catch (cause) {
		return new NexusError(fallback, `The daemon answered ${response.status}.`, { cause });
	}
}
