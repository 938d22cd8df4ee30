/** The memory page in words. */

import { expect, it } from "vitest";
import { bankWords, provenanceWords } from "../../packages/web/src/memory/memory.ts";

it("A17: says whose a note is", () => {
	expect(bankWords("agent:writer")).toBe("Agent writer");
	expect(bankWords("person:telegram/main/42")).toBe("Person telegram/main/42");
	expect(bankWords("other")).toBe("other");
});

it("A17: says where a note comes from, as far as that is known", () => {
	const note = { id: "mem_1", bank: "agent:writer", text: "x" };
	const now = 10 * 60_000;
	expect(provenanceWords({ ...note, provenance: { at: now } }, now)).toBe("now");
	expect(provenanceWords({ ...note, provenance: { at: 0, agent: "writer" } }, now)).toBe("10 min by writer");
	const provenance = { at: 0, agent: "writer", sender: "42", channel: "telegram" };
	expect(provenanceWords({ ...note, provenance }, now)).toBe("10 min by writer, said by 42 on telegram");
});
