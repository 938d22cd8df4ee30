/** `nexus inbox`, `pair`, `deliveries` and `adapters`: chat platforms as a person asks about them. */

import { text as readAll } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { NexusError } from "@nexus-stream/protocol";
import type { DeliveryJson, DeliveryRequest } from "@nexus-stream/protocol/api";
import { overRestarts } from "../client.ts";
import {
	type CommandContext,
	type Declarations,
	type JsonOption,
	type ListOptions,
	remoteJson,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { list, since } from "../table.ts";
import { noteDrop, oneLine, tell } from "../terminal.ts";

export const declare: Declarations = {
	inbox: (command, local) =>
		remoteRows(command)
			.option("--channel <channel>", "only this channel's")
			.option("-s, --session <session>", "only this session's")
			.option(
				"--state <state>",
				"started, queued, batched, injected, superseded, rejected, dropped, cancelled, handled or answered",
			)
			.option("--limit <count>", "at most this many", wholeNumber, 20)
			.action(withDaemon(local, inbox)),
	pair: (command, local) =>
		remoteRows(command)
			.argument("[code]", "the code that the sender received")
			.option("--remove <channel/account/sender>", "withdraw a sender's access")
			.addHelpText("after", "\nExamples:\n  nexus pair\n  nexus pair AB2CD3\n  nexus pair --remove telegram/main/42")
			.action(withDaemon(local, pair)),
	deliver: (command, local) =>
		remoteJson(command, "print the delivery as JSON")
			.argument("[text]", "the text; - reads it from stdin")
			.requiredOption("--channel <channel>", "telegram, slack …")
			.option("--account <account>", "which account of the channel", "main")
			.requiredOption("--to <address>", "the chat's id on the platform (see the platform's README)")
			.option("--thread <id>", "the thread or topic in it")
			.option(
				"--run <run>",
				"deliver this run's answer, live or finished; continues a delivery that failed or went stale",
			)
			.option("--tools", "show tool status while the answer is written (default: as the channel's config says)")
			.option("--no-tools", "do not show it")
			.option("--reasoning", "show the reasoning, quoted (default: as the channel's config says)")
			.option("--no-reasoning", "do not show it")
			.option("--no-wait", "do not wait until it is delivered")
			.addHelpText(
				"after",
				'\nExamples:\n  nexus deliver "Backup done" --channel telegram --to 1001\n  nexus deliver --run run_01JD… --channel slack --to C012345',
			)
			.action(withDaemon(local, deliver)),
	deliveries: (command, local) =>
		remoteRows(command)
			.option("--run <run>", "only this run's")
			.option("--channel <channel>", "only this channel's")
			.option("--state <state>", "active, complete, failed, unknown, stale or damaged")
			.option("--limit <count>", "at most this many", wholeNumber, 20)
			.action(withDaemon(local, deliveries)),
	adapters: (command, local) => remoteRows(command).action(withDaemon(local, adapters)),
};

async function inbox({ client, terminal }: CommandContext, options: ListOptions<"channel" | "session" | "state">) {
	const { channel, session, state, limit, json } = options;
	const { events } = await client.api.events({ channel, session, state, limit });
	return list(terminal, json, events, {
		none: "no messages",
		columns: {
			EVENT: (event) => event.event_id,
			RECEIVED: (event) => since(event.received_at),
			FROM: ({ channel = "web", account = "web", sender = "", sender_name = sender }) =>
				`${channel}/${account} ${sender_name}`.trim(),
			BECAME: ({ disposition, run_id, because, superseded_by }) =>
				[disposition, run_id ?? because ?? superseded_by ?? ""].join(" ").trim(),
			MESSAGE: ({ text }) => text,
		},
		optional: ["EVENT", "RECEIVED"],
		clipped: true,
	});
}

async function pair(
	{ client, terminal }: CommandContext,
	code: string | undefined,
	{ json, remove }: JsonOption & { remove?: string },
) {
	if (remove !== undefined) {
		const [channel, account, ...sender] = remove.split("/");
		if (!channel || !account || sender.length === 0)
			throw new NexusError("invalid", "--remove takes channel/account/sender, as `nexus pair` lists them");
		await client.api.removePairing(channel, account, sender.join("/"));
		return terminal.out(`${remove} no longer has access\n`);
	}
	if (code === undefined) {
		const { pairings } = await client.api.pairings();
		return list(terminal, json, pairings, {
			none: "no pairing requests",
			columns: {
				CODE: ({ code }) => code,
				SENDER: ({ channel, account, sender }) => `${channel}/${account}/${sender}`,
				NAME: ({ sender_name = "" }) => sender_name,
				ASKED: (pairing) => since(pairing.requested_at),
				STATE: (pairing) => (pairing.approved_at === undefined ? "waiting" : "approved"),
			},
			clipped: true,
		});
	}
	const approved = await client.api.approve(code);
	const { channel, account, sender, sender_name = sender } = approved;
	tell(terminal, json, approved, oneLine(`approved: ${sender_name} on ${channel}/${account}`, 500));
}

async function deliveries({ client, terminal }: CommandContext, options: ListOptions<"run" | "channel" | "state">) {
	const { run, channel, state, limit, json } = options;
	const { deliveries } = await client.api.deliveries({ run, channel, state, limit });
	return list(terminal, json, deliveries, {
		none: "no deliveries",
		columns: {
			DELIVERY: (one) => one.delivery_id,
			STATE: (one) => one.state,
			TO: (one) => `${one.channel}/${one.account} ${one.target.to}`,
			MODE: (one) => one.mode ?? "",
			POSITION: (one) => String(one.position),
			MESSAGES: (one) => String(one.messages.length),
			CHANGED: (one) => since(one.updated_at),
			RUN: (one) => one.run_id,
			ERROR: (one) => one.error ?? "",
		},
		optional: ["MODE", "POSITION", "MESSAGES", "RUN", "CHANGED"],
		clipped: true,
	});
}

async function adapters({ client, terminal }: CommandContext, { json }: JsonOption) {
	const { accounts, without_account: idle = [] } = await client.api.accounts();
	for (const channel of idle.map((name) => oneLine(name, 100)))
		terminal.note(
			`${channel} has an adapter and no account, so it is not started: \`nexus adapter add ${channel}\` adds one`,
		);
	return list(terminal, json, accounts, {
		none: idle.length === 0 ? "no accounts: add one with `nexus adapter add telegram`" : undefined,
		columns: {
			ACCOUNT: ({ channel, account, lab }) => `${channel}/${account}${lab ? " (lab)" : ""}`,
			PROCESSES: ({ processes }) =>
				Object.entries(processes)
					.map(([verb, { state, restarts }]) => `${verb} ${state}${restarts > 0 ? ` (${restarts} restarts)` : ""}`)
					.join(", "),
			RATE: ({ rate: { blocked_until: until } }) =>
				until === undefined ? "" : `waits ${Math.max(0, until - Date.now())} ms`,
			DELIVERIES: ({ deliveries }) =>
				Object.entries(deliveries)
					.filter(([, count]) => count > 0)
					.map(([state, count]) => `${count} ${state}`)
					.join(", "),
			ERROR: ({ last_error = "" }) => last_error,
		},
		clipped: true,
	});
}

interface DeliverOptions extends JsonOption, Pick<DeliveryRequest, "channel" | "account" | "tools" | "reasoning"> {
	to: string;
	thread?: string;
	run?: string;
	wait: boolean;
}

const POLL_MS = 200;

async function deliver(context: CommandContext, words: string | undefined, options: DeliverOptions) {
	const { client, terminal, host } = context;
	const { channel, account, to, thread, run, tools, reasoning, json } = options;
	if ((words === undefined) === (run === undefined))
		throw new NexusError("invalid", "give a text or --run, and not both");
	const text = words === "-" ? await readAll(host.stdin) : words;
	const place = { channel, account, target: { to, thread_id: thread }, tools, reasoning };
	const what = run === undefined ? { text: text ?? "" } : { run_id: run };
	const { delivery_id: id, run_id } = await client.api.deliver({ ...place, ...what });
	if (!options.wait) return tell(terminal, json, { delivery_id: id, run_id }, id);
	const delivery = await ended(context, id, channel);
	const { state, messages, error } = delivery;
	const count = `${messages.length} ${messages.length === 1 ? "message" : "messages"}`;
	tell(terminal, json, delivery, `${id} ${state} (${count})`);
	if (state !== "complete") throw new NexusError("unavailable", `not delivered: ${error ?? state}`);
}

async function ended({ client, terminal }: CommandContext, id: string, channel: string): Promise<DeliveryJson> {
	const list = () => client.api.deliveries({ channel, limit: 200 });
	for (;;) {
		const { deliveries } = await overRestarts(list, noteDrop(terminal));
		const found = deliveries.find(({ delivery_id }) => delivery_id === id);
		if (!found) throw new NexusError("not_found", `the daemon no longer lists ${id}; see \`nexus deliveries\``);
		if (found.state !== "active") return found;
		await sleep(POLL_MS);
	}
}
