/** The HTTP API as typed calls: the one place on the client's side that knows its paths. */

import type * as wire from "@nexus-stream/protocol/api";
import { type Http, linesOf } from "./http.ts";

type Param = string | number | undefined;

/** A page of a list: the newest ones, or those before the last one seen. */
interface PageQuery {
	limit?: number | undefined;
	before?: Param;
}

export type Api = ReturnType<typeof createApi>;

export function createApi({ json, request }: Http) {
	const get = <T>(path: string, query: object = {}) => json<T>("GET", path + queryOf(query));
	const post = <T>(path: string, body?: unknown) => json<T>("POST", path, body);
	return {
		/** Sends a message: it starts a run, or waits behind the active one. */
		send: (session: string, message: wire.MessageRequest) =>
			post<wire.MessageAccepted>(pathOf("sessions", session, "messages"), message),
		/** Stops a run; resolves once it has settled. */
		abort: (run: string) => post<wire.RunStatusJson>(pathOf("runs", run, "abort")),
		/** Continues an interrupted run; resolves once the new run has begun. */
		continue: (run: string) => post<wire.RunContinuedJson>(pathOf("runs", run, "continue")),
		/** Answers the messages of a run that was cut off from the start; resolves once the new run has begun. */
		retry: (run: string) => post<wire.RunRetriedJson>(pathOf("runs", run, "retry")),
		run: (run: string) => get<wire.RunJson>(pathOf("runs", run)),
		runs: (query?: PageQuery & { session?: Param }) => get<wire.RunListJson>(pathOf("runs"), query),
		/** The frames so far, as JSON lines; line k has offset `after` + k. */
		async *frames(run: string, query: { after?: number; limit?: number } = {}) {
			yield* linesOf(await request("GET", pathOf("runs", run, "frames") + queryOf(query)));
		},
		sessions: (query?: PageQuery) => get<wire.SessionListJson>(pathOf("sessions"), query),
		turns: (session: string, query?: PageQuery) =>
			get<wire.SessionTurnsJson>(pathOf("sessions", session, "turns"), query),
		settings: (session: string) => get<wire.SessionSettingsJson>(pathOf("sessions", session, "settings")),
		setSettings: (session: string, settings: wire.SessionSettingsRequest) =>
			json<wire.SessionSettingsJson>("PUT", pathOf("sessions", session, "settings"), settings),
		phase: (session: string) => get<wire.SessionPhaseJson>(pathOf("sessions", session, "phase")),
		setPhase: (session: string, phase: wire.PhaseRequest) =>
			json<wire.SessionPhaseJson>("PUT", pathOf("sessions", session, "phase"), phase),
		log: (session: string, query?: PageQuery & { run?: Param }) =>
			get<wire.SessionLogJson>(pathOf("sessions", session, "log"), query),
		event: (event: string) => get<wire.EventJson>(pathOf("events", event)),
		/** Takes back a message that waits. */
		cancel: (event: string) => json<wire.EventJson>("DELETE", pathOf("events", event)),
		events: (query?: PageQuery & { session?: Param; channel?: Param; state?: Param }) =>
			get<wire.EventListJson>(pathOf("events"), query),
		approvals: (query?: { state?: Param; session?: Param; limit?: Param }) =>
			get<wire.ApprovalListJson>(pathOf("approvals"), query),
		decideApproval: (run: string, id: string, decision: wire.ApprovalRequest) =>
			post<wire.ApprovalJson>(pathOf("runs", run, "approvals", id), decision),
		answerQuestion: (run: string, id: string, answer: wire.AnswerRequest) =>
			post<wire.ApprovalJson>(pathOf("runs", run, "questions", id), answer),
		grants: () => get<wire.GrantListJson>(pathOf("grants")),
		revokeGrant: (grant: string) => json<wire.GrantRevokedJson>("DELETE", pathOf("grants", grant)),
		accounts: () => get<wire.AccountListJson>(pathOf("accounts")),
		checkAccount: (channel: string, account: string) =>
			post<wire.AccountHealthJson>(pathOf("accounts", channel, account, "health")),
		reloadAccounts: () => post<wire.AccountChangesJson>(pathOf("accounts", "reload")),
		deliver: (delivery: wire.DeliveryRequest) => post<wire.DeliveryAccepted>(pathOf("deliveries"), delivery),
		deliveries: (query?: PageQuery & { run?: Param; channel?: Param; account?: Param; state?: Param }) =>
			get<wire.DeliveryListJson>(pathOf("deliveries"), query),
		pairings: () => get<wire.PairingListJson>(pathOf("pairings")),
		approve: (code: string) => post<wire.PairingJson>(pathOf("pairings", code, "approve")),
		removePairing: (channel: string, account: string, sender: string) =>
			json<wire.PairingRemovedJson>("DELETE", pathOf("pairings", channel, account, sender)),
		/** The bytes of an artifact. */
		artifact: (artifact: string) => request("GET", pathOf("artifacts", artifact), { accept: "*/*" }),
		mcp: () => get<wire.McpListJson>(pathOf("mcp")),
		/** Starts all MCP servers; resolves when each has started or failed. */
		startMcp: () => post<wire.McpListJson>(pathOf("mcp", "start")),
		lab: (message: wire.LabRequest) => post<wire.LabAccepted>(pathOf("lab"), message),
		labState: () => get<wire.LabStateJson>(pathOf("lab", "state")),
		labFault: (fault: wire.LabFaultRequest) => post<wire.LabFaultSetJson>(pathOf("lab", "fault"), fault),
		labQuestion: (question: wire.LabRequest) => post<wire.LabAskedJson>(pathOf("lab", "question"), question),
		labPress: (press: wire.LabPressRequest) => post<wire.LabPressedJson>(pathOf("lab", "press"), press),
		signIn: (credentials: wire.SignInRequest) => post<wire.SignedInJson>(pathOf("sign-in"), credentials),
		/** Signs this page out: its cookie is worth nothing any more. */
		signOut: () => post<wire.SignedOutJson>(pathOf("sign-out")),
		signInCode: () => post<wire.SignInCodeJson>(pathOf("sign-in-codes")),
	};
}

/** `/v1/…` with every part escaped. */
export const pathOf = (...parts: readonly string[]): string => `/v1/${parts.map(encodeURIComponent).join("/")}`;

/** `?a=1&b=2`, without what is undefined; empty when nothing is left. */
export function queryOf(params: object): string {
	const pairs = Object.entries(params).filter(([, value]) => value !== undefined);
	return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}
