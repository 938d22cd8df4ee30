/** RuntimeMemoryService over gRPC. */

import { Code } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { MemoryEventType, RuntimeMemoryService } from "../../../packages/client/src/gen/nexus/runtime/v1/memory_pb.ts";
import type { MemoryConfig } from "../../../packages/daemon/src/services/memory/memory.ts";
import { until } from "../../until.ts";
import { auditOptions } from "../audit-kit.ts";
import { errorOf, following, kitForTest, statusOf } from "./kit.ts";

async function started(enabled = true, config: MemoryConfig = {}) {
	const kit = await kitForTest({ ...auditOptions(), memory: { ...config, enabled } });
	return kit.client(RuntimeMemoryService);
}

it("notes, recalls and forgets, and tells of it bank by bank", async () => {
	const client = await started();
	const only = { banks: ["agent:main"], after: 0n };
	const { seen } = following((signal) => client.subscribeMemoryEvents(only, { signal }));
	const { item } = await client.retain({ bank: "agent:main", text: "likes green tea" });
	await client.retain({ bank: "agent:other", text: "likes coffee" });
	const { items } = await client.recall({ query: "tea", banks: ["agent:main"] });
	expect(items).toMatchObject([{ memoryId: item!.memoryId, bank: "agent:main", text: "likes green tea" }]);
	expect((await client.recall({})).items).toHaveLength(2);
	await client.forget({ memoryId: item!.memoryId });
	await until("both events", () => seen.length === 2);
	expect(seen).toMatchObject([
		{ sequence: 1n, eventType: MemoryEventType.RETAINED, memoryId: item!.memoryId, bank: "agent:main" },
		{ sequence: 3n, eventType: MemoryEventType.FORGOTTEN, memoryId: item!.memoryId },
	]);
	expect((await errorOf(client.forget({ memoryId: item!.memoryId }))).code).toBe(Code.NotFound);
});

it("says what is wrong with a request", async () => {
	const client = await started();
	const codes = [
		client.retain({ bank: "elsewhere", text: "x" }),
		client.retain({ bank: "agent:a", text: " " }),
		client.retain({ bank: "agent:", text: "x" }),
		client.retain({ bank: "agent:a b", text: "x" }),
		client.retain({ bank: "person:42", text: "x" }),
		client.retain({ bank: "person:telegram/main/", text: "x" }),
		client.retain({ bank: "person:telegram/main/4\n2", text: "x" }),
		client
			.subscribeMemoryEvents({ banks: ["agent:\u0000"] })
			[Symbol.asyncIterator]()
			.next(),
		client.recall({ banks: ["x"] }),
		client.recall({ limit: -1 }),
		client.recall({ query: "x".repeat(1001) }),
	].map(async (call) => (await errorOf(call)).code);
	expect(await Promise.all(codes)).toEqual(Array.from(codes, () => Code.InvalidArgument));
	const off = await started(false);
	expect((await errorOf(off.retain({ bank: "agent:a", text: "x" }))).code).toBe(Code.FailedPrecondition);
});

it("I11: a full bank is RESOURCE_EXHAUSTED, and a recall gives as much as is configured", async () => {
	const client = await started(true, { itemsMax: 3, recallItemsMax: 2 });
	for (const text of ["one", "two", "three"]) await client.retain({ bank: "agent:main", text });
	const full = await errorOf(client.retain({ bank: "agent:main", text: "four" }));
	expect(statusOf(full)).toEqual({ code: "ResourceExhausted", reason: "REASON_CODE_QUOTA_EXCEEDED" });
	await client.retain({ bank: "person:telegram/main/Ann B", text: "four" });
	for (const limit of [0, 100]) expect((await client.recall({ limit })).items).toHaveLength(2);
	expect((await client.recall({ limit: 1 })).items).toHaveLength(1);
});
