/** Fifty tools of one message on a real store: within the slots, by priority, each paired in log and turn, in the order of the calls. */

import fc from "fast-check";
import { expect, test } from "vitest";
import { textResult } from "../../packages/daemon/src/engine/tool.ts";
import { ask, rig, turnWhenSettled, verified } from "../broker/rig.ts";
import { atEffort } from "../effort.ts";
import { answer, asks, engineOf, text, toolOf } from "../engine/reason-act/kit.ts";

const COUNT = 50;

test("A21, I12: for all priorities and paces of 50 parallel tools", async () => {
	const specs = fc.array(
		fc.record({ priority: fc.integer({ min: 0, max: 4 }), turns: fc.nat(3), fails: fc.boolean() }),
		{
			minLength: COUNT,
			maxLength: COUNT,
		},
	);
	await fc.assert(
		fc.asyncProperty(specs, fc.integer({ min: 1, max: 16 }), async (plan, slots) => {
			let running = 0;
			let most = 0;
			const tools = plan.map(({ priority, turns, fails }, n) =>
				toolOf(`tool_${n}`, {
					priority,
					async execute() {
						most = Math.max(most, ++running);
						for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
						running--;
						if (fails) throw new Error(`no luck ${n}`);
						return textResult(`result ${n}`);
					},
				}),
			);
			const calls = plan.map((_, n) => asks(`tool_${n}`, {}, `call_${n}`));
			const made = await engineOf([answer(...calls), answer(text("all seen"))], {
				tools,
				setup: { toolsParallelMax: slots },
			});
			const under = rig((request, _, context) => made.engine.run(request, context), { connection: "none" });
			const { runId } = await ask(under.broker, "main", "use all of them");
			const turn = await turnWhenSettled(under.look, runId);

			expect([turn.status, most <= slots]).toEqual(["completed", true]);
			const log = await under.frames(runId);
			expect(verified(log)).toBeUndefined();
			expect(turn.toolCalls).toHaveLength(COUNT);
			for (const call of turn.toolCalls) {
				const n = Number(call.callId.slice("call_".length));
				expect([call.name, call.status]).toEqual([`tool_${n}`, plan[n]!.fails ? "failed" : "completed"]);
				expect(JSON.stringify(call)).toContain(plan[n]!.fails ? `no luck ${n}` : `result ${n}`);
			}
			// Started by priority: those of one priority in the order of the calls.
			const started = turn.toolCalls.map(({ callId }) => Number(callId.slice("call_".length)));
			const wanted = plan.map((_, n) => n).toSorted((a, b) => plan[b]!.priority - plan[a]!.priority || a - b);
			expect(started).toEqual(wanted);
			// The model reads the results in the order of its calls.
			const results = made.calls[1]!.messages.filter(({ role }) => role === "toolResult");
			expect(results.map((message) => "toolCallId" in message && message.toolCallId)).toEqual(
				plan.map((_, n) => `call_${n}`),
			);
		}),
		{ numRuns: atEffort(100, 5) },
	);
}, 300_000);
