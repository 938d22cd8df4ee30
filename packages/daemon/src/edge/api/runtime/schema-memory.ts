/** The shapes of the API about memory. */

import type * as wire from "@nexus-stream/protocol";
import { isMemoryBank } from "@nexus-stream/protocol";
import { z } from "zod";
import { beforeId, component, count, type Fields, limit, offset, time } from "../schema.ts";

const id = z.string().min(1).max(64);
const bank = z
	.string()
	.refine(isMemoryBank, "must be `agent:<name>` or `person:<channel>/<account>/<sender>`")
	.describe("`agent:<name>` or `person:<channel>/<account>/<sender>`.");

export const memoryParams = z.object({ id });
export const memoryQuery = z.object({
	bank: bank.optional(),
	query: z.string().max(1000).optional().describe("Plain words: items with one of them or more, best first."),
	limit,
	before: beforeId("mem", "the id of an item").describe("Without a query: an item's id, only older ones."),
});
export const memoryChangesQuery = z.object({
	limit,
	before: offset.optional().describe("The `seq` of a change: only older ones."),
});

const provenance = z.object({
	at: time,
	run_id: z.string().exactOptional(),
	agent: z.string().exactOptional(),
	channel: z.string().exactOptional(),
	account: z.string().exactOptional(),
	sender: z.string().exactOptional(),
} satisfies Fields<wire.MemoryProvenanceJson>);

const MemoryView = component(
	"Memory",
	z.object({
		id: z.string(),
		bank,
		text: z.string(),
		provenance,
	} satisfies Fields<wire.MemoryJson>),
);
export const MemoryList = component(
	"MemoryList",
	z.object({
		enabled: z.boolean().describe("Whether agents may note and recall."),
		memory: z.array(MemoryView),
	} satisfies Fields<wire.MemoryListJson>),
);
export const MemoryForgotten = component(
	"MemoryForgotten",
	z.object({
		forgotten: z.literal(true),
		note: z.string().describe("What is still kept elsewhere."),
	} satisfies Fields<wire.MemoryForgottenJson>),
);
export const MemoryChanges = component(
	"MemoryChanges",
	z.object({
		changes: z.array(
			z.object({
				seq: count,
				id: z.string(),
				bank,
				change: z.enum(["added", "forgotten"]),
				provenance,
			} satisfies Fields<wire.MemoryChangeJson>),
		),
	} satisfies Fields<wire.MemoryChangesJson>),
);
