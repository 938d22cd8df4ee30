/** What agents have noted, and what was noted and forgotten. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	type MemoryChangeSchema,
	MemoryEventType,
	type MemoryItemSchema,
	type RuntimeMemoryService,
	type SubscribeMemoryEventsResponseSchema,
} from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import { isMemoryBank, NexusError, STREAM_PROCEDURES } from "@nexus-stream/protocol";
import type { MemoryChange, MemoryItem } from "../../ledger/ledger.ts";
import { MEMORY_TOPIC, type MemoryEvent, requireOwner } from "../../services/services.ts";
import { filtered } from "./filtered.ts";
import { afterOf, pageSizeOf, pageTokenOf, sequenceNumberOf } from "./paging.ts";
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
		const { memory } = deps.ledger;
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

function checkedQuery(query: string): string {
	if (query.length <= QUERY_CHARS_MAX) return query;
	throw new NexusError("invalid", `query: at most ${QUERY_CHARS_MAX} characters`);
}

/** None is all of them. */
function inBanks(banks: readonly string[]): { banks?: readonly string[] } {
	if (banks.length > BANKS_MAX) throw new NexusError("invalid", `banks: at most ${BANKS_MAX}`);
	return banks.length === 0 ? {} : { banks: banks.map(checkedBank) };
}

const itemOf = ({ id, bank, text, provenance }: MemoryItem): MessageInitShape<typeof MemoryItemSchema> => ({
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

export const memoryLists = ({ deps, limits }: RpcDeps): Partial<ServiceImpl<typeof RuntimeMemoryService>> => ({
	async listMemory({ bank, query, pageSize, pageToken }, context) {
		requireOwner(principalOf(context));
		const { memory } = deps.ledger;
		const limit = pageSizeOf(pageSize, limits.listItemsMax);
		const page = { limit, ...inBanks(bank === "" ? [] : [bank]) };
		const isSearch = checkedQuery(query).trim() !== "";
		const found = isSearch
			? await memory.search(query, page)
			: await memory.list({ ...page, ...pageTokenOf(pageToken, "mem") });
		const isFull = !isSearch && found.length === limit;
		return {
			enabled: deps.remembers ?? false,
			items: found.map(itemOf),
			nextPageToken: isFull ? found.at(-1)!.id : "",
		};
	},

	async listMemoryChanges({ pageSize, before }, context) {
		requireOwner(principalOf(context));
		const limit = pageSizeOf(pageSize, limits.listItemsMax);
		const from = before === undefined ? {} : { before: sequenceNumberOf(before) };
		const changes = await deps.ledger.memory.changes({ limit, ...from });
		const next = changes.length === limit ? { nextBefore: BigInt(changes.at(-1)!.seq) } : {};
		return { changes: changes.map(changeOf), ...next };
	},
});

const changeOf = ({
	seq,
	id,
	bank,
	change,
	provenance,
}: MemoryChange): MessageInitShape<typeof MemoryChangeSchema> => ({
	sequence: BigInt(seq),
	eventType: change === "added" ? MemoryEventType.RETAINED : MemoryEventType.FORGOTTEN,
	memoryId: id,
	bank,
	runId: provenance.runId ?? "",
	agent: provenance.agent ?? "",
	at: timestampFromMs(provenance.at),
	channel: provenance.channel ?? "",
	account: provenance.account ?? "",
	sender: provenance.sender ?? "",
});
