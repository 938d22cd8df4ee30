/** `nexus memory`: list and search what agents have noted, and forget it. */

import {
	type MemoryChange,
	MemoryChangeSchema,
	MemoryEventType,
	type MemoryItem,
	MemoryItemSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import type { Command } from "commander";
import {
	type CommandContext,
	type Declarations,
	type ListOptions,
	remote,
	remoteRows,
	wholeNumber,
	withDaemon,
} from "../command.ts";
import { forEach, jsonOf, runtimeOf, sinceTime, wordOf } from "../runtime.ts";
import { list } from "../table.ts";
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
			.action(withDaemon(local, (context, options: MemoryOptions) => listMemory(context, "", options)));
		ofBank(command.command("search"))
			.description("find notes, best first")
			.argument("<words...>", "plain words; a note has to hold one of them")
			.action(
				withDaemon(local, (context, words: readonly string[], options: MemoryOptions) =>
					listMemory(context, words.join(" "), options),
				),
			);
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

type MemoryOptions = ListOptions<"bank">;

async function listMemory(context: CommandContext, query: string, { bank = "", limit: pageSize, json }: MemoryOptions) {
	const { items, enabled } = await runtimeOf(context).memory.listMemory({ bank, pageSize, query });
	const off = "; memory is off: `memory: { enabled: true }` in the configuration switches it on";
	return list(context.terminal, json, items, {
		none: query === "" ? `nothing is noted${enabled ? "" : off}` : "nothing is noted about that",
		json: (item) => jsonOf(MemoryItemSchema, item),
		columns: {
			MEMORY: (item) => item.memoryId,
			NOTED: (item) => sinceTime(item.createdAt),
			BANK: (item) => oneLine(item.bank, 80),
			BY: (item) => oneLine(authorOf(item), 80),
			TEXT: (item) => oneLine(item.text, 500),
		},
		optional: ["NOTED", "BY"],
	});
}

const removeMemory = (context: CommandContext, ids: readonly string[]) =>
	forEach(context, ids, async (memoryId) => {
		await runtimeOf(context).memory.forget({ memoryId });
		return `forgotten: ${memoryId} (turns keep their text)`;
	});

async function memoryLog(context: CommandContext, { json, limit }: ListOptions) {
	const { changes } = await runtimeOf(context).memory.listMemoryChanges({ pageSize: limit });
	return list(context.terminal, json, changes, {
		none: "nothing was noted or forgotten",
		json: (change) => jsonOf(MemoryChangeSchema, change),
		columns: {
			CHANGED: (change) => sinceTime(change.at),
			CHANGE: (change) => wordOf(MemoryEventType, change.eventType),
			MEMORY: (change) => change.memoryId,
			BANK: (change) => oneLine(change.bank, 80),
			BY: (change) => oneLine(authorOf(change), 200),
		},
	});
}

const authorOf = ({ agent, channel, account, sender, runId }: MemoryItem | MemoryChange): string =>
	[agent || "operator", sender === "" ? "" : `for ${channel}/${account}/${sender}`, runId].filter(Boolean).join(" ");
