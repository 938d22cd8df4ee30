/** The memory page in words. */

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { MemoryItemSchema } from "../../packages/client/src/gen/nexus/runtime/v1/memory_pb.ts";
import { bankWords, provenanceWords } from "../../packages/web/src/memory/memory.tsx";

it("A17: says whose a note is", () => {
	expect(bankWords("agent:writer")).toBe("Agent writer");
	expect(bankWords("person:telegram/main/42")).toBe("Person telegram/main/42");
	expect(bankWords("other")).toBe("other");
});

it("A17: says where a note comes from, as far as that is known", () => {
	const now = 10 * 60_000;
	const words = (at: number, more = {}) =>
		provenanceWords(create(MemoryItemSchema, { createdAt: timestampFromMs(at), ...more }), now);
	expect(words(now)).toBe("now");
	expect(words(0, { agent: "writer" })).toBe("10 min by writer");
	const from = { agent: "writer", sender: "42", channel: "telegram" };
	expect(words(0, from)).toBe("10 min by writer, said by 42 on telegram");
});
