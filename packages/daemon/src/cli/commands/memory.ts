/** `nexus memory`: what agents have noted, for a person who looks it up or has it forgotten. */

import type { MemoryJson, MemoryProvenanceJson } from "@nexus-stream/protocol";
import type { Command } from "commander";
import {
	type CommandContext,
	type CommandExit,
	type Declarations,
	remote,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { since, table } from "../table.ts";
import { oneLine } from "../terminal.ts";

const ofBank = (command: Command): Command =>
	remoteRows(command)
		.option("--bank <bank>", "only this bank: agent:<name> or person:<channel>/<account>/<sender>")
		.option("--limit <count>", "at most this many", wholeNumber, 20);

export const declare: Declarations = {
	memory(command, local) {
		command.addHelpText(
			"after",
			"\nExamples:\n  nexus memory\n  nexus memory search tea --bank person:telegram/main/42\n  nexus memory rm mem_01JD…",
		);
		ofBank(command.command("list", { isDefault: true }))
			.description("list notes, newest first")
			.action(withDaemon(local, listMemory));
		ofBank(command.command("search"))
			.description("find notes, best first")
			.argument("<words...>", "plain words; a note has to hold one of them")
			.action(withDaemon(local, searchMemory));
		remote(command.command("rm"))
			.description("forget notes for good; turns keep what was said in them")
			.argument("<id...>", "as `nexus memory` lists them")
			.action(withDaemon(local, removeMemory));
		remoteRows(command.command("log"))
			.description("list what was noted and forgotten, newest first, without the texts")
			.option("--limit <count>", "at most this many", wholeNumber, 20)
			.action(withDaemon(local, memoryLog));
	},
};

export interface MemoryOptions {
	json?: boolean;
	bank?: string;
	limit: number;
}

export async function listMemory(context: CommandContext, options: MemoryOptions): CommandExit {
	const { bank, limit } = options;
	const { memory, enabled } = await context.client.api.memory({ bank, limit });
	const off = "; memory is off: `memory: { enabled: true }` in the configuration switches it on";
	return show(context, options, memory, `nothing is noted${enabled ? "" : off}`);
}

export async function searchMemory(
	context: CommandContext,
	words: readonly string[],
	options: MemoryOptions,
): CommandExit {
	const { bank, limit } = options;
	const { memory } = await context.client.api.memory({ bank, limit, query: words.join(" ") });
	return show(context, options, memory, "nothing is noted about that");
}

export async function removeMemory({ client, terminal }: CommandContext, ids: readonly string[]): CommandExit {
	for (const id of ids) {
		const { note } = await client.api.forgetMemory(id);
		terminal.out(`forgotten: ${oneLine(id, 100)} (${note})\n`);
	}
	return 0;
}

export async function memoryLog(
	{ client, terminal }: CommandContext,
	options: Omit<MemoryOptions, "bank">,
): CommandExit {
	const { changes } = await client.api.memoryChanges({ limit: options.limit });
	if (changes.length === 0) terminal.note("nothing was noted or forgotten");
	if (options.json) for (const change of changes) terminal.json(change);
	else
		table(
			terminal,
			["CHANGED", "CHANGE", "MEMORY", "BANK", "BY"],
			changes.map(({ change, id, bank, provenance }) => [
				since(provenance.at),
				change,
				id,
				oneLine(bank, 80),
				oneLine(byOf(provenance), 200),
			]),
		);
	return 0;
}

function show(
	{ terminal }: CommandContext,
	options: MemoryOptions,
	memory: readonly MemoryJson[],
	none: string,
): number {
	if (memory.length === 0) terminal.note(none);
	if (options.json) for (const item of memory) terminal.json(item);
	else
		table(
			terminal,
			["MEMORY", "NOTED", "BANK", "BY", "TEXT"],
			memory.map(({ id, bank, text, provenance }) => [
				id,
				since(provenance.at),
				oneLine(bank, 80),
				oneLine(byOf(provenance), 80),
				oneLine(text, 500),
			]),
			["NOTED", "BY"],
		);
	return 0;
}

const byOf = ({ agent, channel, account, sender, run_id }: MemoryProvenanceJson): string =>
	[agent ?? "operator", sender === undefined ? "" : `for ${channel}/${account}/${sender}`, run_id ?? ""]
		.filter(Boolean)
		.join(" ");
