/** `nexus deliver`: a text, or a run's answer, to a chat on a platform. */

import { text as readAll } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { type DeliveryDestination, type DeliveryJson, NexusError } from "@nexus-stream/protocol";
import { overRestarts } from "../client.ts";
import type { CommandContext, CommandExit } from "../command.ts";
import { noteDrop } from "../terminal.ts";

export interface DeliverCommandOptions {
	channel: string;
	account: string;
	to: string;
	thread?: string;
	run?: string;
	tools?: boolean;
	reasoning?: boolean;
	wait: boolean;
	json?: boolean;
}

const POLL_MS = 200;

export async function deliver(
	context: CommandContext,
	words: string | undefined,
	options: DeliverCommandOptions,
): CommandExit {
	const { client, terminal, host } = context;
	const { channel, account, to, thread, run, tools, reasoning } = options;
	if ((words === undefined) === (run === undefined))
		throw new NexusError("invalid", "give a text or --run, and not both");
	const text = words === "-" ? await readAll(host.stdin) : words;
	const place: DeliveryDestination = {
		channel,
		account,
		target: { to, ...(thread !== undefined && { thread_id: thread }) },
		tools,
		reasoning,
	};
	const what = run === undefined ? { text: text ?? "" } : { run_id: run };
	const { delivery_id: id, run_id } = await client.api.deliver({ ...place, ...what });
	if (!options.wait) {
		if (options.json) terminal.json({ delivery_id: id, run_id });
		else terminal.out(`${id}\n`);
		return 0;
	}
	const delivery = await ended(context, id, channel);
	const { state, messages, error } = delivery;
	if (options.json) terminal.json(delivery);
	else terminal.out(`${id} ${state} (${messages.length} ${messages.length === 1 ? "message" : "messages"})\n`);
	if (state === "complete") return 0;
	throw new NexusError("unavailable", `not delivered: ${error ?? state}`);
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
