/** The HTTP API as typed calls: the one place on the client's side that knows its paths. */

import type {
	AccountChangesJson,
	AccountHealthJson,
	AccountListJson,
	DeliveryAccepted,
	DeliveryListJson,
	DeliveryRequest,
	EventJson,
	EventListJson,
	LabAccepted,
	LabFaultRequest,
	LabFaultSet,
	LabRequest,
	LabStateJson,
	MessageAccepted,
	MessageRequest,
	PairingJson,
	PairingListJson,
	PairingRemovedJson,
	RunJson,
	RunListJson,
	RunStatusJson,
	SessionListJson,
	SignedInJson,
	SignInCodeJson,
	SignInRequest,
	TurnsJson,
} from "../protocol/protocol.ts";
import { type Http, linesOf } from "./http.ts";

type Param = string | number | undefined;

/** A page of a list: the newest ones, or those before the last one seen. */
interface Page {
	limit?: number | undefined;
	before?: Param;
}

export interface Api {
	/** Sends a message: it starts a run, or waits behind the active one. */
	send(session: string, message: MessageRequest): Promise<MessageAccepted>;
	/** Stops a run; resolves once it has settled. */
	abort(run: string): Promise<RunStatusJson>;
	run(run: string): Promise<RunJson>;
	runs(query?: Page & { session?: Param }): Promise<RunListJson>;
	/** The frames so far, as JSON lines; line k has offset `after` + k. */
	frames(run: string, query?: { after?: number; limit?: number }): AsyncGenerator<string>;
	sessions(query?: Page): Promise<SessionListJson>;
	turns(session: string, query?: Page): Promise<TurnsJson>;
	event(event: string): Promise<EventJson>;
	events(query?: Page & { session?: Param; channel?: Param; state?: Param }): Promise<EventListJson>;
	accounts(): Promise<AccountListJson>;
	checkAccount(channel: string, account: string): Promise<AccountHealthJson>;
	reloadAccounts(): Promise<AccountChangesJson>;
	deliver(request: DeliveryRequest): Promise<DeliveryAccepted>;
	deliveries(
		query?: Page & { run?: Param; channel?: Param; account?: Param; state?: Param },
	): Promise<DeliveryListJson>;
	pairings(): Promise<PairingListJson>;
	approve(code: string): Promise<PairingJson>;
	removePairing(channel: string, account: string, sender: string): Promise<PairingRemovedJson>;
	lab(request: LabRequest): Promise<LabAccepted>;
	labState(): Promise<LabStateJson>;
	labFault(request: LabFaultRequest): Promise<LabFaultSet>;
	signIn(request: SignInRequest): Promise<SignedInJson>;
	signInCode(): Promise<SignInCodeJson>;
}

export function createApi({ json, request }: Pick<Http, "json" | "request">): Api {
	const get = <T>(path: string, query: object = {}) => json<T>("GET", path + queryOf(query));
	const post = <T>(path: string, body?: unknown) => json<T>("POST", path, body);
	return {
		send: (session, message) => post(pathOf("sessions", session, "messages"), message),
		abort: (run) => post(pathOf("runs", run, "abort")),
		run: (run) => get(pathOf("runs", run)),
		runs: (query) => get(pathOf("runs"), query),
		async *frames(run, query) {
			yield* linesOf(await request("GET", pathOf("runs", run, "frames") + queryOf({ ...query })));
		},
		sessions: (query) => get(pathOf("sessions"), query),
		turns: (session, query) => get(pathOf("sessions", session, "turns"), query),
		event: (event) => get(pathOf("events", event)),
		events: (query) => get(pathOf("events"), query),
		accounts: () => get(pathOf("accounts")),
		checkAccount: (channel, account) => post(pathOf("accounts", channel, account, "health")),
		reloadAccounts: () => post(pathOf("accounts", "reload")),
		deliver: (delivery) => post(pathOf("deliveries"), delivery),
		deliveries: (query) => get(pathOf("deliveries"), query),
		pairings: () => get(pathOf("pairings")),
		approve: (code) => post(pathOf("pairings", code, "approve")),
		removePairing: (channel, account, sender) => json("DELETE", pathOf("pairings", channel, account, sender)),
		lab: (message) => post(pathOf("lab"), message),
		labState: () => get(pathOf("lab", "state")),
		labFault: (fault) => post(pathOf("lab", "fault"), fault),
		signIn: (credentials) => post(pathOf("sign-in"), credentials),
		signInCode: () => post(pathOf("sign-in-codes")),
	};
}

/** `/v1/…` with every part escaped. */
export const pathOf = (...parts: readonly string[]): string => `/v1/${parts.map(encodeURIComponent).join("/")}`;

/** `?a=1&b=2`, without what is undefined; empty when nothing is left. */
export function queryOf(params: object): string {
	const pairs = Object.entries(params).filter(([, value]) => value !== undefined);
	return pairs.length === 0 ? "" : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}
