/** What agents have noted, and what was noted and forgotten. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	MemoryEventType,
	type MemoryItemSchema,
	type RuntimeMemoryService,
	type SubscribeMemoryEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import { isMemoryBank, NexusError, STREAM_PROCEDURES } from "@nexus-stream/protocol";
import type { MemoryEvent } from "../../services/audit/events.ts";
import { MEMORY_TOPIC } from "../../services/audit/topics.ts";
import { requireOwner } from "../../services/kit/principal.ts";
import type { MemoryItem } from "../../services/memory/rows.ts";
import { filtered } from "./filtered.ts";
import { afterOf, pageSizeOf } from "./paging.ts";
import { logStream, principalOf, type RpcDeps } from "./rpc.ts";

const { closes } = STREAM_PROCEDURES["nexus.runtime.v1.RuntimeMemoryService/SubscribeMemoryEvents"];

const BANKS_MAX = 100;
const QUERY_CHARS_MAX = 1000;

export const memoryMethods = ({
	deps,
	services,
	limits,
}: RpcDeps): Partial<ServiceImpl<typeof RuntimeMemoryService>> => ({
	async retain({ bank, text }, context) {
		requireOwner(principalOf(context));
		const { retain, remembers = false } = deps;
		if (!retain || !remembers)
			throw new NexusError("precondition", "memory is off: set `memory: { enabled: true }` in nexus.yaml");
		if (text.trim() === "") throw new NexusError("invalid", "text: there is nothing to note");
		return { item: itemOf(await retain(checkedBank(bank), text)) };
	},

	async recall({ query, banks, limit }, context) {
		requireOwner(principalOf(context));
		const { memory } = deps.rows;
		// As many as a tool's `recall` gives, whatever is asked for.
		const most = Math.min(deps.recallItemsMax ?? limits.listItemsMax, limits.listItemsMax);
		const asked = { limit: pageSizeOf(limit, most, "limit"), ...inBanks(banks) };
		const found = checkedQuery(query).trim() === "" ? await memory.list(asked) : await memory.search(query, asked);
		return { items: found.map(itemOf) };
	},

	async forget({ memoryId }, context) {
		requireOwner(principalOf(context));
		if (!deps.forget) throw new NexusError("not_found", `there is no memory ${memoryId}`);
		await deps.forget(memoryId);
		return {};
	},

	async *subscribeMemoryEvents({ banks, after }, context) {
		requireOwner(principalOf(context));
		const wanted = new Set(inBanks(banks).banks);
		const fits = wanted.size === 0 ? undefined : ({ bank }: MemoryEvent) => wanted.has(bank);
		const cursor = await services.notices.cursor(MEMORY_TOPIC, afterOf(after));
		yield* logStream(context, {
			cursor,
			closes,
			...filtered<MemoryEvent, MemoryEventMessage>({ fits, message: messageOf }),
		});
	},
});

function checkedBank(bank: string): string {
	if (isMemoryBank(bank)) return bank;
	throw new NexusError("invalid", "bank: `agent:<name>` or `person:<channel>/<account>/<sender>`");
}

export function checkedQuery(query: string): string {
	if (query.length <= QUERY_CHARS_MAX) return query;
	throw new NexusError("invalid", `query: at most ${QUERY_CHARS_MAX} characters`);
}

/** None is all of them. */
export function inBanks(banks: readonly string[]): { banks?: readonly string[] } {
	if (banks.length > BANKS_MAX) throw new NexusError("invalid", `banks: at most ${BANKS_MAX}`);
	return banks.length === 0 ? {} : { banks: banks.map(checkedBank) };
}

export const itemOf = ({ id, bank, text, provenance }: MemoryItem): MessageInitShape<typeof MemoryItemSchema> => ({
	memoryId: id,
	bank,
	text,
	createdAt: timestampFromMs(provenance.at),
	runId: provenance.runId ?? "",
	agent: provenance.agent ?? "",
	channel: provenance.channel ?? "",
	account: provenance.account ?? "",
	sender: provenance.sender ?? "",
});

const TYPES: Readonly<Record<MemoryEvent["event_type"], MemoryEventType>> = {
	retained: MemoryEventType.RETAINED,
	forgotten: MemoryEventType.FORGOTTEN,
};

type MemoryEventMessage = MessageInitShape<typeof SubscribeMemoryEventsResponseSchema>;

const messageOf = (sequence: number, event: MemoryEvent): MemoryEventMessage => ({
	sequence: BigInt(sequence),
	eventType: TYPES[event.event_type],
	memoryId: event.memory_id,
	bank: event.bank,
	runId: event.run_id ?? "",
	agent: event.agent ?? "",
	at: timestampFromMs(event.at),
});
