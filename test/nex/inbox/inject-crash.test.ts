/** A26: a process that dies at any commit leaves every message waiting or in its run's turn, and never in two places. */

import { copyFileSync, existsSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Play, started, tempFile, text, until, verified } from "../../broker/rig.ts";
import { atEffort } from "../../effort.ts";
import { copiesAtCommits, echo, nexRig, queueOf } from "./rig.ts";

const queue = queueOf("inject");

/** The messages that arrived during each of the run's tools, and whether the run writes text before it. */
const plans = fc.array(fc.record({ messages: fc.nat(2), speaks: fc.boolean() }), { minLength: 1, maxLength: 3 });

test("for all moments of death nothing is lost, nothing is answered twice, and the turn tells it in order", async () => {
	await fc.assert(
		fc.asyncProperty(plans, async (plan) => {
			const path = tempFile();
			let say = async (_: string): Promise<unknown> => undefined;
			const handed: string[] = [];
			const play: Play = async function* ({ messages }, _, { inbox }) {
				if (messages.at(-1)!.text !== "first") return void (yield text("a follow-up"));
				for (const [n, { messages: count, speaks }] of plan.entries()) {
					if (speaks) yield text(`part ${n} `);
					yield started(`c${n}`);
					for (let k = 0; k < count; k++) await say(`joins ${n}.${k}`);
					yield { type: "tool", callId: `c${n}`, name: "look", status: "completed" };
					handed.push(...(await inbox!.take()).map((message) => message.text));
				}
				yield text("end");
			};
			const dead = nexRig(play, { path, engine: { injects: true }, connection: "none" });
			const deaths = copiesAtCommits(dead, path);
			say = (said) => dead.submit({ session: "main", text: said, queue });
			const { runId } = await dead.submit({ session: "main", text: "first", queue });
			await dead.runSettled(runId!);
			const joins = plan.flatMap(({ messages: count }, n) =>
				Array.from({ length: count }, (_, k) => `joins ${n}.${k}`),
			);
			expect(handed).toEqual(joins);
			expect(deaths.length).toBeGreaterThan(plan.length);
			for (const copy of deaths) await checkLife(copy);
		}),
		{ numRuns: atEffort(30, 4) },
	);
}, 120_000);

async function checkLife(copy: string): Promise<void> {
	const path = tempFile();
	copyFileSync(copy, path);
	expect(existsSync(`${copy}-wal`)).toBe(false);
	const next = nexRig(echo, { path, engine: { injects: true }, connection: "none" });
	const { look, nex, broker } = next;
	await nex.recover();
	await until(() => look.queued().length === 0 && broker.liveRuns().length === 0, "everything is answered");
	await until(() =>
		look.events({ limit: 99 }).every(({ disposition: at }) => !("runId" in at) || look.turn(at.runId!)),
	);
	const events = look.events({ limit: 99 }).toReversed();
	const turns = look.turns({ limit: 99 }).toReversed();
	const told = turns.flatMap((turn) => turn.messages.flatMap(({ eventId = [] }) => eventId));
	// Each in one turn, in the order in which they came.
	expect(told).toEqual(events.map(({ eventId }) => eventId));
	for (const { disposition, eventId } of events) {
		expect(["started", "injected"]).toContain(disposition.state);
		const { runId } = disposition as { runId: string };
		expect(look.turn(runId)!.messages.map((message) => message.eventId)).toContain(eventId);
		expect(verified(await next.frames(runId))).toBeUndefined();
	}
	for (const { messages, toolCalls } of turns)
		for (const call of toolCalls) expect(messages[call.message]!.role).toBe("assistant");
}
