/** Memory and its changes, page by page, for the owner. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	type MemoryChangeSchema,
	MemoryEventType,
	type RuntimeMemoryService,
} from "@nexus-stream/client/gen/nexus/runtime/v1/memory_pb";
import { requireOwner } from "../../services/kit/principal.ts";
import type { MemoryChange } from "../../services/memory/rows.ts";
import { checkedQuery, inBanks, itemOf } from "./memory.ts";
import { pageSizeOf, pageTokenOf, sequenceNumberOf } from "./paging.ts";
import { principalOf, type RpcDeps } from "./rpc.ts";

export const memoryLists = ({ deps, limits }: RpcDeps): Partial<ServiceImpl<typeof RuntimeMemoryService>> => ({
	async listMemory({ bank, query, pageSize, pageToken }, context) {
		requireOwner(principalOf(context));
		const { memory } = deps.rows;
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
		const changes = await deps.rows.memory.changes({ limit, ...from });
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
