/** `nexus inbox`, `pair`, `deliveries` and `adapters`: chat platforms as a person asks about them. */

import { NexusError } from "../../protocol/protocol.ts";
import type { Context, Outcome } from "../command.ts";
import { since, table } from "../table.ts";
import { oneLine } from "../terminal.ts";

interface ListOptions {
	json?: boolean;
}

/** The rows as JSON lines, or as a table. */
function show<Row extends object>(
	{ terminal }: Context,
	options: ListOptions,
	rows: Row[],
	head: string[],
	cells: (row: Row) => string[],
	optional: readonly string[] = [],
) {
	if (options.json) for (const row of rows) terminal.json(row);
	else
		table(
			terminal,
			head,
			rows.map((row) => cells(row).map((cell, column) => oneLine(cell, column === head.length - 1 ? 500 : 80))),
			optional,
		);
	return 0;
}

const queryOf = (fields: Record<string, string | number | undefined>) =>
	new URLSearchParams(
		Object.entries(fields).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]])),
	).toString();

interface EventJson {
	event_id: string;
	session: string;
	text: string;
	received_at: number;
	disposition: string;
	run_id?: string;
	because?: string;
	superseded_by?: string;
	channel?: string;
	account?: string;
	sender?: string;
	sender_name?: string;
}

export interface InboxOptions extends ListOptions {
	channel?: string;
	session?: string;
	state?: string;
	limit: number;
}

export async function inbox(context: Context, options: InboxOptions): Outcome {
	const { channel, session, state, limit } = options;
	const query = queryOf({ channel, session, state, limit });
	const { events } = await context.client.get<{ events: EventJson[] }>(`/v1/events?${query}`);
	if (events.length === 0) context.terminal.note("no messages");
	const head = ["EVENT", "RECEIVED", "FROM", "BECAME", "MESSAGE"];
	const cells = (event: EventJson) => [
		event.event_id,
		since(event.received_at),
		`${event.channel ?? "web"}/${event.account ?? "web"} ${event.sender_name ?? event.sender ?? ""}`.trim(),
		[event.disposition, event.run_id ?? event.because ?? event.superseded_by ?? ""].join(" ").trim(),
		event.text,
	];
	return show(context, options, events, head, cells, ["EVENT", "RECEIVED"]);
}

interface PairingJson {
	code: string;
	channel: string;
	account: string;
	sender: string;
	sender_name?: string;
	requested_at: number;
	expires_at: number;
	approved_at?: number;
}

export async function pair(
	context: Context,
	code: string | undefined,
	options: ListOptions & { remove?: string },
): Outcome {
	const { client, terminal } = context;
	if (options.remove !== undefined) {
		const [channel, account, ...sender] = options.remove.split("/");
		if (!channel || !account || sender.length === 0)
			throw new NexusError("invalid", "--remove takes channel/account/sender, as `nexus pair` lists them");
		const path = [channel, account, sender.join("/")].map(encodeURIComponent).join("/");
		await client.delete(`/v1/pairings/${path}`);
		terminal.out(`${options.remove} no longer has access\n`);
		return 0;
	}
	if (code === undefined) {
		const { pairings } = await client.get<{ pairings: PairingJson[] }>("/v1/pairings");
		if (pairings.length === 0) terminal.note("no pairing requests");
		return show(context, options, pairings, ["CODE", "SENDER", "NAME", "ASKED", "STATE"], (pairing) => [
			pairing.code,
			`${pairing.channel}/${pairing.account}/${pairing.sender}`,
			pairing.sender_name ?? "",
			since(pairing.requested_at),
			pairing.approved_at === undefined ? "waiting" : "approved",
		]);
	}
	const approved = await client.post<PairingJson>(`/v1/pairings/${encodeURIComponent(code)}/approve`);
	if (options.json) terminal.json(approved);
	else
		terminal.out(
			oneLine(`approved: ${approved.sender_name ?? approved.sender} on ${approved.channel}/${approved.account}`, 500),
		);
	if (!options.json) terminal.feed(1);
	return 0;
}

export interface DeliveryJson {
	delivery_id: string;
	run_id: string;
	channel: string;
	account: string;
	target: { to: string };
	mode?: string;
	state: string;
	position: number;
	messages: object[];
	error?: string;
	updated_at: number;
}

export interface DeliveriesOptions extends ListOptions {
	run?: string;
	channel?: string;
	state?: string;
	limit: number;
}

export async function deliveries(context: Context, options: DeliveriesOptions): Outcome {
	const { run, channel, state, limit } = options;
	const query = queryOf({ run, channel, state, limit });
	const { deliveries } = await context.client.get<{ deliveries: DeliveryJson[] }>(`/v1/deliveries?${query}`);
	if (deliveries.length === 0) context.terminal.note("no deliveries");
	const head = ["DELIVERY", "STATE", "TO", "MODE", "POSITION", "MESSAGES", "CHANGED", "RUN", "ERROR"];
	const cells = (delivery: DeliveryJson) => [
		delivery.delivery_id,
		delivery.state,
		`${delivery.channel}/${delivery.account} ${delivery.target.to}`,
		delivery.mode ?? "",
		String(delivery.position),
		String(delivery.messages.length),
		since(delivery.updated_at),
		delivery.run_id,
		delivery.error ?? "",
	];
	return show(context, options, deliveries, head, cells, ["MODE", "POSITION", "MESSAGES", "RUN", "CHANGED"]);
}

interface AccountJson {
	channel: string;
	account: string;
	lab?: true;
	processes: Record<string, { state: string; restarts: number }>;
	rate: { blocked_until?: number };
	deliveries: Record<string, number>;
	last_error?: string;
}

export async function adapters(context: Context, options: ListOptions): Outcome {
	const { accounts } = await context.client.get<{ accounts: AccountJson[] }>("/v1/accounts");
	if (accounts.length === 0) context.terminal.note("no accounts: add one with `nexus adapter add telegram`");
	return show(context, options, accounts, ["ACCOUNT", "PROCESSES", "RATE", "DELIVERIES", "ERROR"], (account) => [
		`${account.channel}/${account.account}${account.lab ? " (lab)" : ""}`,
		Object.entries(account.processes)
			.map(([verb, { state, restarts }]) => `${verb} ${state}${restarts > 0 ? ` (${restarts} restarts)` : ""}`)
			.join(", "),
		account.rate.blocked_until === undefined ? "" : `waits ${Math.max(0, account.rate.blocked_until - Date.now())} ms`,
		Object.entries(account.deliveries)
			.filter(([, count]) => count > 0)
			.map(([state, count]) => `${count} ${state}`)
			.join(", "),
		account.last_error ?? "",
	]);
}
