/** The memory of agents: noted, recalled, forgotten and listed by the owner, with its changes as a stream. */

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
import { withDefaults } from "@nexus-stream/protocol/defaults";
import {
	afterOf,
	filtered,
	logStream,
	pageSizeOf,
	pageTokenOf,
	principalOf,
	sequenceNumberOf,
} from "../../edge/rpc/rpc.ts";
import type { MemoryPort } from "../../engine/engine.ts";
import type { MemoryEvent } from "../audit/events.ts";
import type { NoticeLogs } from "../audit/notices.ts";
import { MEMORY_TOPIC } from "../audit/topics.ts";
import { inCapitals } from "../kit/codec.ts";
import { requireOwner } from "../kit/principal.ts";
import { MEMORY_DEFAULTS, type MemoryConfig } from "./memory.ts";
import type { MemoryChange, MemoryItem, MemoryRows } from "./rows.ts";

const { closes } = STREAM_PROCEDURES["nexus.runtime.v1.RuntimeMemoryService/SubscribeMemoryEvents"];

const BANKS_MAX = 100;
const QUERY_CHARS_MAX = 1000;

export interface MemoryRpcParts {
	memory: Pick<MemoryPort, "add" | "forget">;
	rows: { memory: MemoryRows };
	memoryConfig: MemoryConfig | undefined;
	notices: Pick<NoticeLogs, "cursor">;
	limits: { listItemsMax: number };
}

export const memoryMethods = (parts: MemoryRpcParts): Partial<ServiceImpl<typeof RuntimeMemoryService>> => ({
	async retain({ bank, text }, context) {
		requireOwner(principalOf(context));
		if (!parts.memoryConfig?.enabled)
			throw new NexusError("precondition", "memory is off: set `memory: { enabled: true }` in nexus.yaml");
		if (text.trim() === "") throw new NexusError("invalid", "text: there is nothing to note");
		const { id } = await parts.memory.add(checkedBank(bank), text, {});
		return { item: itemOf((await parts.rows.memory.get(id))!) };
	},

	async recall({ query, banks, limit }, context) {
		requireOwner(principalOf(context));
		const { limits, memoryConfig, rows } = parts;
		// As many as a tool's `recall` gives, whatever is asked for.
		const { recallItemsMax } = withDefaults(MEMORY_DEFAULTS, memoryConfig);
		const most = Math.min(recallItemsMax, limits.listItemsMax);
		const asked = { limit: pageSizeOf(limit, most, "limit"), ...inBanks(banks) };
		const found =
			checkedQuery(query).trim() === "" ? await rows.memory.list(asked) : await rows.memory.search(query, asked);
		return { items: found.map(itemOf) };
	},

	async forget({ memoryId }, context) {
		requireOwner(principalOf(context));
		await parts.memory.forget(memoryId, {});
		return {};
	},

	async *subscribeMemoryEvents({ banks, after }, context) {
		requireOwner(principalOf(context));
		const wanted = new Set(inBanks(banks).banks);
		const fits = wanted.size === 0 ? undefined : ({ bank }: MemoryEvent) => wanted.has(bank);
		const cursor = await parts.notices.cursor(MEMORY_TOPIC, afterOf(after));
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

const itemOf = ({ id, provenance, ...item }: MemoryItem): MessageInitShape<typeof MemoryItemSchema> => ({
	...item,
	...provenance,
	memoryId: id,
	createdAt: timestampFromMs(provenance.at),
});

type MemoryEventMessage = MessageInitShape<typeof SubscribeMemoryEventsResponseSchema>;

const messageOf = (sequence: number, event: MemoryEvent): MemoryEventMessage => ({
	sequence: BigInt(sequence),
	eventType: MemoryEventType[inCapitals(event.event_type)],
	memoryId: event.memory_id,
	bank: event.bank,
	runId: event.run_id,
	agent: event.agent,
	at: timestampFromMs(event.at),
});

/** Lists page by page. */
export const memoryLists = ({
	rows,
	memoryConfig,
	limits,
}: MemoryRpcParts): Partial<ServiceImpl<typeof RuntimeMemoryService>> => ({
	async listMemory({ bank, query, pageSize, pageToken }, context) {
		requireOwner(principalOf(context));
		const { memory } = rows;
		const limit = pageSizeOf(pageSize, limits.listItemsMax);
		const page = { limit, ...inBanks(bank === "" ? [] : [bank]) };
		const isSearch = checkedQuery(query).trim() !== "";
		const found = isSearch
			? await memory.search(query, page)
			: await memory.list({ ...page, ...pageTokenOf(pageToken, "mem") });
		const isFull = !isSearch && found.length === limit;
		return {
			enabled: memoryConfig?.enabled ?? false,
			items: found.map(itemOf),
			nextPageToken: isFull ? found.at(-1)!.id : "",
		};
	},

	async listMemoryChanges({ pageSize, before }, context) {
		requireOwner(principalOf(context));
		const limit = pageSizeOf(pageSize, limits.listItemsMax);
		const from = before === undefined ? undefined : sequenceNumberOf(before);
		const changes = await rows.memory.changes({ limit, before: from });
		const nextBefore = changes.length === limit ? BigInt(changes.at(-1)!.seq) : undefined;
		return { changes: changes.map(changeOf), nextBefore };
	},
});

const changeOf = ({ provenance, ...change }: MemoryChange): MessageInitShape<typeof MemoryChangeSchema> => ({
	...provenance,
	sequence: BigInt(change.seq),
	eventType: change.change === "added" ? MemoryEventType.RETAINED : MemoryEventType.FORGOTTEN,
	memoryId: change.id,
	bank: change.bank,
	at: timestampFromMs(provenance.at),
});
