import { expect, it } from "vitest";
import { responseOf } from "../../../packages/daemon/src/nex/inbox/response.ts";
import { turnOf } from "../../ledger/rig.ts";

it("P3.10: plugins see the answer without hidden words", () => {
	const turn = turnOf("run_1", {
		messages: [
			{ role: "user", text: "hi" },
			{ role: "assistant", text: "secret", agent: "lead", visible: false },
			{ role: "assistant", text: "Hello", agent: "writer" },
		],
	});
	expect(responseOf({ turn, deliveries: [], chunks: 2 }).text).toBe("Hello");
});
